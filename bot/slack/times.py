"""When: durations and wall clocks as people type them, read in their own zone.

Never guesses: what it does not know is None, and the caller says which form is understood.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from engine.errors import BadCommand
from engine.schedule.walltime import to_instant, to_wall

LONGEST: Final = timedelta(days=366)
FORMS: Final = "`2h`, `90m`, `1h30m`, `for 2 hours`, `until 18:00`, `fri 18:00-22:00`"

_UNITS: Final = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_LENGTH: Final = re.compile(
    r"(?:(\d{1,6}(?:\.\d{1,3})?)\s*|(an?|half an)\s+)"
    r"(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)(?![a-z])(?:\s*(?:,|and)\s*|\s*)"
)
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY: Final = (
    r"today|tonight|tomorrow|(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
    r"|\d{4}-\d{2}-\d{2}"
)
_TIME: Final = r"\d{1,2}:\d{2}(?: ?[ap]m)?|\d{1,2} ?[ap]m|noon|midnight"
_CLOCK: Final = re.compile(rf"(?:(?:on )?(?P<day>{_DAY})(?:,? (?:at )?|t|$))?(?:(?:at )?(?P<time>{_TIME}))?")


@dataclass(frozen=True, slots=True)
class Span:
    """From when until when, half open. `start` is the instant of asking unless one was named."""

    start: datetime
    end: datetime


def read_length(words: str) -> timedelta | None:
    """ "1h30m", "2 hours", "an hour": the whole text must be a length."""
    total, at = timedelta(), 0
    for match in _LENGTH.finditer(words):
        if match.start() != at:
            return None
        count = float(match[1]) if match[1] else (0.5 if match[2].startswith("half") else 1.0)
        total += count * _UNITS[match[3][0]]
        at = match.end()
    return total if at and at == len(words) else None


def read_clock(words: str, after: datetime, zone: ZoneInfo) -> datetime | None:
    """The first instant after `after` at which the wall shows this; a date is taken as it is."""
    match = _CLOCK.fullmatch(words)
    if match is None or not (match["day"] or match["time"]):
        return None
    if match["day"] == "tonight" and not match["time"]:
        return None
    at = _time(match["time"] or "00:00")
    if at is None:
        return None
    today = to_wall(after, zone).date()
    return _first(match["day"], at, today, after, zone)


def _time(words: str) -> time | None:
    if words in {"noon", "midnight"}:
        return time(12 if words == "noon" else 0)
    half = words[-2:] if words.endswith("m") else ""
    hours, _, minutes = words.removesuffix(half).strip().partition(":")
    hour, minute = int(hours), int(minutes or 0)
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    return time(hour, minute) if hour < 24 and minute < 60 else None


def _first(day: str | None, at: time, today: date, after: datetime, zone: ZoneInfo) -> datetime | None:
    if day is None:
        candidates = [today, today + timedelta(days=1)]
    elif day in {"today", "tonight"}:
        candidates = [today]
    elif day == "tomorrow":
        candidates = [today + timedelta(days=1)]
    elif day[0].isdigit():
        try:
            candidates = [date.fromisoformat(day)]
        except ValueError:
            return None
    else:
        ahead = (_DAYS.index(day[:3]) - today.weekday()) % 7
        candidates = [today + timedelta(days=ahead), today + timedelta(days=ahead + 7)]
    instants = [to_instant(datetime.combine(candidate, at), zone) for candidate in candidates]
    return next((instant for instant in instants if instant > after), instants[-1])


def read_span(words: str, now: datetime, zone: ZoneInfo) -> Span | None:
    """ "2h", "until 18:00", "from 18:00 for 2h", "fri 18:00-22:00": None if it is none of these."""
    words = words.strip().removeprefix("for ").strip()
    length = read_length(words)
    if length is not None:
        return _checked(Span(now, now + min(length, LONGEST * 2)), now)
    for keyword in ("until ", "till ", "til ", "to "):
        if words.startswith(keyword):
            end = read_clock(words.removeprefix(keyword), now, zone)
            return None if end is None else _checked(Span(now, end), now)
    return _from(words.removeprefix("from ").strip(), now, zone)


def _from(words: str, now: datetime, zone: ZoneInfo) -> Span | None:
    """A named start, then an end or a length."""
    for separator in (" until ", " till ", " to ", " - ", " for ", "-", " "):
        for at in [found.start() for found in re.finditer(re.escape(separator), words)]:
            start = read_clock(words[:at].strip(), now, zone)
            if start is None:
                continue
            rest = words[at + len(separator) :].strip()
            length = read_length(rest)
            end = start + min(length, LONGEST * 2) if length else read_clock(rest, start, zone)
            if end is not None:
                return _checked(Span(start, end), now)
    return None


def _checked(span: Span, now: datetime) -> Span:
    if span.end <= now:
        raise BadCommand("That is over already: name a time that is still to come.")
    if span.end <= span.start:
        raise BadCommand("That ends before it begins.")
    if span.end - now > LONGEST:
        raise BadCommand("That is more than a year: name a shorter time.")
    return Span(max(span.start, now), span.end)
