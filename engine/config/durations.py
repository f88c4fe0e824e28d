"""Durations as people write them: 30s, 5m, 1h30m, 2d.

Pure. Never guesses a unit: a bare number is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

UNITS: Final = {
    "w": timedelta(weeks=1),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
}
_PART: Final = re.compile(r"(\d{1,6})([wdhms])", re.ASCII)
_FORM: Final = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)


def parse_duration(text: str) -> timedelta | None:
    """None when it is not a duration."""
    typed = text.strip().lower()
    if _FORM.fullmatch(typed) is None:
        return None
    return in_all((int(count), unit) for count, unit in _PART.findall(typed))


def in_all(parts: Iterable[tuple[float, str]]) -> timedelta | None:
    """Counts of units added up: each unit once, the largest first; None when they stand otherwise."""
    total, smaller = timedelta(), timedelta.max
    for count, unit in parts:
        size = UNITS[unit]
        if size >= smaller:
            return None
        total, smaller = total + count * size, size
    return total


def show_duration(duration: timedelta) -> str:
    """The shortest text that parses to the same; weeks are shown as days."""
    words, left = "", duration
    for unit, size in UNITS.items():
        if unit != "w" and left >= size:
            count, left = divmod(left, size)
            words += f"{count}{unit}"
    return words or "0s"
