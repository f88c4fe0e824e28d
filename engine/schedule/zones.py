"""Time zones by their IANA names. Never raises for a name, whatever it is."""

from __future__ import annotations

from zoneinfo import ZoneInfo


def zone_named(name: str) -> ZoneInfo | None:
    """The zone of that name; None if there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, malformed, or a folder of zones
        return None
