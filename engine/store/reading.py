"""Reads many rows so that one which cannot be read does not hide the others.

Decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import structlog

log = structlog.get_logger(__name__)
T = TypeVar("T")


def read_all(rows: Iterable[Any], key: Callable[[Any], int], made: Callable[[Any], T]) -> dict[int, T]:
    """Each row's value by its key. One that cannot be made is logged and left out: whoever needs it
    falls back, and everybody else is paged as always."""
    found: dict[int, T] = {}
    for row in rows:
        try:
            found[key(row)] = made(row)
        except (KeyError, ValueError, TypeError) as error:
            log.error("row.unreadable", of=made.__name__, id=key(row), error=type(error).__name__)  # noqa: TRY400  # its text may hold what is stored
    return found
