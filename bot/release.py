"""Which Midwatch this is. Never asks anybody outside."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def release() -> str:
    """The installed version of Midwatch."""
    try:
        return version("midwatch")
    except PackageNotFoundError:  # run from a checkout that was not installed
        return "unknown"
