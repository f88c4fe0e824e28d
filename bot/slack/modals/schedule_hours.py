"""The hours of a layer as people write them: "mon-fri 09:00-17:00", one window a line.

Never guesses: what is not of this form is refused, with the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import time
from typing import Final

from bot.slack.grammar.typed import folded, tidy
from engine.errors import BadInput
from engine.schedule import Restriction, Weekday

FORM: Final = "write days and times like mon-fri 09:00-17:00, sat,sun 10:00-20:00 or daily 22:00-06:00"
MOST: Final = 100

_EVERY: Final = frozenset(Weekday)
_NAMED: Final = {
    "daily": _EVERY,
    "every day": _EVERY,
    "all days": _EVERY,
    "weekdays": frozenset(Weekday) - {Weekday.SAT, Weekday.SUN},
    "weekends": frozenset({Weekday.SAT, Weekday.SUN}),
    "weekend": frozenset({Weekday.SAT, Weekday.SUN}),
}
_CLOCK: Final = r"(\d{1,2})(?::(\d\d))?\s*(am|pm|)"
_HOURS: Final = re.compile(rf"(?:^|\s){_CLOCK}\s*(?:-|to|until)\s*{_CLOCK}$")


def read_hours(typed: str) -> tuple[Restriction, ...]:
    """The windows; none for nothing, which means always."""
    lines = [line for line in (folded(tidy(one)) for one in re.split(r"[\n;]", typed)) if line]
    if len(lines) > MOST:
        raise BadInput(f"At most {MOST} windows.")
    return tuple(map(_window, lines))


def show_hours(restrictions: Iterable[Restriction]) -> str:
    """The text that reads as these windows."""
    return "\n".join(f"{_days_words(one.days)} {one.opens:%H:%M}-{one.closes:%H:%M}" for one in restrictions)


def _window(line: str) -> Restriction:
    """Days without hours are whole days; hours without days are of every day."""
    hours = _HOURS.search(line)
    said = line[: hours.start()].strip() if hours else line
    days = _days(said) if said else _EVERY
    if days is None:
        raise BadInput(f"I don't understand “{line[:60]}”: {FORM}.")
    if hours is None:
        return Restriction(days, time(), time())
    opens, closes = _clock(*hours.groups()[:3]), _clock(*hours.groups()[3:])
    if opens is None or closes is None:
        raise BadInput(f"There is no such time in “{line[:60]}”.")
    return Restriction(days, opens, closes)


def _clock(hour: str, minute: str | None, half: str) -> time | None:
    """24:00 is the midnight that ends the day, and 12am the one that begins it."""
    hours, minutes = int(hour), int(minute or 0)
    if half:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if half == "pm" else 0)
    if (hours, minutes) == (24, 0):
        return time()
    return time(hours, minutes) if hours < 24 and minutes < 60 else None


def _days(typed: str) -> frozenset[Weekday] | None:
    if typed in _NAMED:
        return _NAMED[typed]
    days: set[Weekday] = set()
    for part in typed.replace(" - ", "-").replace(",", " ").replace(" and ", " ").split():
        first, dash, last = part.partition("-")
        a, b = _day(first), _day(last) if dash else _day(first)
        if a is None or b is None:
            return None
        days.update(Weekday((a + step) % 7) for step in range((b - a) % 7 + 1))
    return frozenset(days) or None


def _day(word: str) -> Weekday | None:
    """By three letters or more: "thurs" too."""
    full = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    number = next((at for at, name in enumerate(full) if len(word) > 2 and name.startswith(word)), None)
    return None if number is None else Weekday(number)


def _days_words(days: frozenset[Weekday]) -> str:
    if days == _EVERY:
        return "daily"
    ordered = sorted(days)
    if len(ordered) > 2 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0].word}-{ordered[-1].word}"
    return ",".join(day.word for day in ordered)
