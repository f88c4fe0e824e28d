"""Durations as people write them: 30s, 5m, 1h30m, 2d.

Never guesses a unit: a bare number is refused.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

UNITS: Final = {
    "w": timedelta(weeks=1),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
}
_FORM = re.compile("".join(rf"(?:(?P<{unit}>\d{{1,6}}){unit})?" for unit in UNITS), re.ASCII)


def parse_duration(text: str) -> timedelta | None:
    """None when it is not a duration."""
    match = _FORM.fullmatch(text.strip().lower())
    if match is None or match.lastindex is None:
        return None
    return sum((int(count) * UNITS[unit] for unit, count in match.groupdict("0").items()), timedelta())


def show_duration(duration: timedelta) -> str:
    """The shortest text that parses to the same; weeks are shown as days."""
    words, left = "", duration
    for unit, size in UNITS.items():
        if unit != "w" and left >= size:
            count, left = divmod(left, size)
            words += f"{count}{unit}"
    return words or "0s"
