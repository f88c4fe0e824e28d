"""Reads single values of a schedule's mapping; a mistake becomes a sentence and reading goes on.

Never raises: what cannot be read is reported and a stand-in returned, so that every mistake of a
schedule is found at once. The stand-ins are never used: `parse` refuses the whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any, TypeVar

from engine.schedule.zones import zone_named

FIRST_YEAR, LAST_YEAR = 1900, 2199  # as far as the resolver can be asked

_WALL = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?")
_CLOCK = re.compile(r"\d\d:\d\d")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_EPOCH = datetime.fromtimestamp(0, UTC)

T = TypeVar("T")
Iso = TypeVar("Iso", datetime, date, time)


class Fields:
    """The mistakes found so far."""

    def __init__(self) -> None:
        self.mistakes: list[str] = []

    def wrong(self, place: str, words: str, stand_in: T) -> T:
        self.mistakes.append(f"{place}: {words}")
        return stand_in

    def mapping(self, raw: object, place: str, known: Sequence[str]) -> Mapping[Any, Any] | None:
        """None when it is none: nothing inside it is asked for then."""
        if not isinstance(raw, Mapping):
            return self.wrong(place, f"must be a mapping, not {_kind(raw)}", None)
        for key in raw:
            if key not in known:
                self.wrong(place, f"there is no {key!r} here; known are {', '.join(known)}", None)
        return raw

    def items(self, raw: object, place: str) -> list[tuple[str, object]]:
        """The entries of a list, each with its place; nothing is an empty list."""
        if raw is None:
            return []
        if not isinstance(raw, list | tuple):
            return self.wrong(place, f"must be a list, not {_kind(raw)}", [])
        return [(f"{place}[{index}]", item) for index, item in enumerate(raw, start=1)]

    def text(self, raw: object, place: str) -> str:
        if not isinstance(raw, str):
            return self.wrong(place, f"must be text, not {_kind(raw)}", "")
        if not raw.strip():
            return self.wrong(place, "must not be empty", "")
        return raw

    def flag(self, raw: object, place: str) -> bool:
        return (
            raw if isinstance(raw, bool) else self.wrong(place, f"must be true or false, not {raw!r}", False)
        )

    def count(self, raw: object, place: str, most: int) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int) or not 1 <= raw <= most:
            return self.wrong(place, f"must be a whole number from 1 to {most}, not {raw!r}", 1)
        return raw

    def choice(self, raw: object, place: str, choices: Mapping[str, T], stand_in: T) -> T:
        if isinstance(raw, str) and raw in choices:
            return choices[raw]
        return self.wrong(place, f"must be one of {', '.join(choices)}, not {raw!r}", stand_in)

    def zone(self, raw: object, place: str) -> str:
        name = self.text(raw, place)
        if not name:
            return "UTC"
        if zone_named(name) is None:
            return self.wrong(place, f"there is no time zone {name!r}; write one like Europe/Berlin", "UTC")
        return name

    def wall(self, raw: object, place: str) -> datetime:
        """A local time without an offset."""
        form = f"must be a local time like 2026-11-30T08:00, without an offset, not {_shown(raw)}"
        value = _from_iso(datetime, raw, _WALL)
        if value is None or value.tzinfo is not None or value.microsecond:
            return self.wrong(place, form, _EPOCH.replace(tzinfo=None))
        if not FIRST_YEAR <= value.year <= LAST_YEAR:
            return self.wrong(place, f"the year must be from {FIRST_YEAR} to {LAST_YEAR}", value)
        return value

    def clock(self, raw: object, place: str) -> time:
        value = _from_iso(time, raw, _CLOCK)
        if value is None:
            hint = 'a time like "09:00" (in quotes), and "00:00" for midnight'
            return self.wrong(place, f"must be {hint}, not {_shown(raw)}", time())
        return value

    def day(self, raw: object, place: str) -> date:
        value = None if isinstance(raw, datetime) else _from_iso(date, raw, _DATE)
        if value is None or not FIRST_YEAR <= value.year <= LAST_YEAR:
            return self.wrong(place, f"must be a date like 2026-12-25, not {_shown(raw)}", date(1970, 1, 1))
        return value

    def instant(self, raw: object, place: str) -> datetime:
        value = _from_iso(datetime, raw, re.compile(".+"))
        if value is None or value.tzinfo is None:
            form = "must be an instant with its offset, like 2026-11-30T08:00:00Z"
            return self.wrong(place, f"{form}, not {_shown(raw)}", _EPOCH)
        try:
            return value.astimezone(UTC)
        except OverflowError:
            return self.wrong(place, f"{_shown(raw)} is out of range", _EPOCH)


def _from_iso(kind: type[Iso], raw: object, form: re.Pattern[str]) -> Iso | None:
    """The value of ISO text, or a value that YAML has read already."""
    if isinstance(raw, kind):
        return raw
    if not isinstance(raw, str) or not form.fullmatch(raw):
        return None
    try:
        return kind.fromisoformat(raw)
    except ValueError:
        return None


def _kind(raw: object) -> str:
    if raw is None:
        return "missing"
    if isinstance(raw, Mapping):
        return "a mapping"
    return "a list" if isinstance(raw, list | tuple) else repr(raw)


def _shown(raw: object) -> str:
    return raw.isoformat() if isinstance(raw, date | time) else repr(raw)
