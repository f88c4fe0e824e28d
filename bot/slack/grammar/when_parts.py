"""What was typed as a time, taken apart by the grammar in `when.lark`: days, clocks, lengths.

Never asks what the time is now, and never makes an instant; `when` does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

from lark import Lark, Token, Transformer, UnexpectedInput, UnexpectedToken, v_args
from lark.exceptions import VisitError

from engine.config.durations import in_all
from engine.errors import BadCommand

MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
LONGEST_WORD: Final = 40
FAR: Final = timedelta(days=1000)  # longer than anything that is accepted, and never an overflow
# A word that can stand in a time, to find one among other words; the grammar decides what it means.
_WORD: Final = re.compile(
    r"(?:for|from|starting|beginning|until|till|til|to|through|thru|on|at|@|in|and|of|-|,|now|noon|midnight"
    r"|today|tonight|tomorrow|yesterday|ago|next|last|half|an?"
    r"|(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
    r"|(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|ust|ember|ober)?\.?"
    r"|[ap]\.?m\.?|(?:sec|min|hr|second|minute|hour|day|week)s?|[smhdw]"
    r"|[\d.:/+t-]*\d[\d.:/+t-]*(?:[ap]\.?m|st|nd|rd|th|s|m|h|d|w|secs?|mins?|hrs?)?[\d.:/+t-]*"
    r"(?:[ap]m|[smhd])?(?:\d+[smhd])*),?"
)
_PART: Final = re.compile(r"(?:(\d+(?:\.\d+)?) ?|(half) an |(an?) )([smhdw])[a-z]*", re.ASCII)


class BadTime(BadCommand):
    """This is not one of the forms; `at` is how much of it was understood."""

    def __init__(self, at: int, *, ended: bool) -> None:
        self.at = at
        self.ended = ended  # all of it was understood, and more was expected
        super().__init__()


class Word(StrEnum):
    TODAY = "today"
    TONIGHT = "tonight"
    TOMORROW = "tomorrow"


@dataclass(frozen=True, slots=True)
class Day:
    """One of: a word, a weekday, a date, a day of a month in no year."""

    said: str
    word: Word | None = None
    weekday: int | None = None
    date: date | None = None
    month_day: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Clock:
    """A wall clock. `half` is am or pm; without it and without minutes it is `bare`, and could be either."""

    said: str
    hour: int
    minute: int = 0
    half: str | None = None
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """A day, a clock, both, or so long after now. `day_last`: "5pm tomorrow"."""

    day: Day | None = None
    clock: Clock | None = None
    after: timedelta | None = None
    day_last: bool = False


@dataclass(frozen=True, slots=True)
class Lasting:
    start: Moment
    length: timedelta


@dataclass(frozen=True, slots=True)
class Between:
    """`through`: a bare day at the end is part of it, whoever asks."""

    start: Moment | None
    end: Moment
    through: bool = False


@dataclass(frozen=True, slots=True)
class Whole:
    day: Day


Said = Lasting | Between | Whole
NOW: Final = Moment(after=timedelta())


def take_apart(words: str) -> Said:
    """The parts of one interval in lower case; BadTime for what is none."""
    said: Said = _parsed(words, "interval")
    return said


def looks_like_time(word: str) -> bool:
    """May this word, in lower case, belong to a time?"""
    return len(word) <= LONGEST_WORD and _WORD.fullmatch(word) is not None


def take_moment(words: str) -> Moment:
    """The parts of one moment in lower case; BadTime for what is none."""
    moment: Moment = _parsed(words, "moment")
    return moment


def _parsed(words: str, rule: str) -> Any:
    """Why in two steps: what is not of the form is BadTime, whatever its numbers are."""
    try:
        return _PARTS.transform(_parser().parse(words, rule))
    except UnexpectedToken as wrong:
        ended = wrong.token.type == "$END"
        raise BadTime(len(words) if ended else wrong.pos_in_stream or 0, ended=ended) from None
    except UnexpectedInput as wrong:
        raise BadTime(wrong.pos_in_stream or 0, ended=False) from None
    except VisitError as wrong:
        raise wrong.orig_exc from None


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("when.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", start=["interval", "moment"])


@v_args(inline=True)
class _Parts(Transformer[Token, Said]):
    """Each rule of the grammar as a value."""

    def lasting_from_now(self, length: Token) -> Lasting:
        return Lasting(NOW, read_length(length))

    def lasting(self, start: Moment, length: Token) -> Lasting:
        return Lasting(start, read_length(length))

    def until(self, end: Moment) -> Between:
        return Between(None, end)

    def through(self, _word: Token, end: Moment) -> Between:
        return Between(None, end, through=True)

    def between(self, start: Moment, end: Moment) -> Between:
        return Between(start, end)

    def between_through(self, start: Moment, _word: Token, end: Moment) -> Between:
        return Between(start, end, through=True)

    def whole(self, day: Day) -> Whole:
        return Whole(day)

    def on(self, day: Day) -> Moment:
        return Moment(day)

    def on_at(self, day: Day, clock: Clock) -> Moment:
        return Moment(day, clock)

    def at(self, clock: Clock) -> Moment:
        return Moment(None, clock)

    def at_on(self, clock: Clock, day: Day) -> Moment:
        return Moment(day, clock, day_last=True)

    def now(self) -> Moment:
        return NOW

    def later(self, length: Token) -> Moment:
        return Moment(after=read_length(length))

    def day(self, word: Token) -> Day:
        return _day(word)

    def clock(self, word: Token) -> Clock:
        return _clock(word)


_PARTS: Final = _Parts()


def read_length(words: str) -> timedelta:
    """ "1h30m", "2 days and 3 hours": each unit once, the largest first."""
    total = in_all(
        (float(number) if number else 0.5 if half else 1.0, unit)
        for number, half, _, unit in _PART.findall(words)
    )
    if total is None:
        raise BadCommand(f"`{words}` is no length of time: write it like `1h30m`.")
    return min(total, FAR)


def _day(word: Token) -> Day:
    said = str(word)
    match word.type:
        case "WEEKDAY":
            return Day(said, weekday=WEEKDAYS.index(said[:3]))
        case "ISO":
            return Day(said, date=_date(said, *map(int, said.split("-"))))
        case "MONTH_DAY" | "DAY_MONTH":
            return _in_month(said)
    return Day(said, word=Word(said))


def _in_month(said: str) -> Day:
    month = next(number for number, name in enumerate(MONTHS, 1) if re.search(rf"(?<![a-z]){name}", said))
    day, *year = (int(number) for number in re.findall(r"\d+", said))
    if year:
        return Day(said, date=_date(said, year[0], month, day))
    _date(said, 2024, month, day)  # a leap year: the 29th of February is a day of some year
    return Day(said, month_day=(month, day))


def _date(said: str, year: int, month: int, day: int) -> date:
    try:
        found = date(year, month, day)
    except ValueError:
        raise BadCommand(f"There is no day `{said}`.") from None
    if not 2000 <= year < 2200:
        raise BadCommand(f"`{said}` is too far away.")
    return found


def _clock(word: Token) -> Clock:
    said = str(word)
    if word.type in {"NOON", "MIDNIGHT"}:
        return Clock(said, 12 if word.type == "NOON" else 0)
    hour, *minutes = (int(number) for number in re.findall(r"\d+", said))
    minute = minutes[0] if minutes else 0
    if word.type == "TWENTY_FOUR":
        right = (hour < 24 and minute < 60) or (hour, minute) == (24, 0)
        clock = Clock(said, hour, minute)
    else:
        right = 1 <= hour <= 12 and minute < 60
        half = ("am" if "a" in said else "pm") if word.type == "TWELVE" else None
        clock = Clock(said, hour, minute, half, bare=half is None)
    if not right:
        raise BadCommand(f"`{said}` is no time of day: write it like `18:00` or `6pm`.")
    return clock
