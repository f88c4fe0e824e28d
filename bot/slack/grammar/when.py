"""When: what people type as a time, read on their own wall clock, as an interval of two instants.

Pure. What the grammar does not know is refused with the right form; where several things could be
meant the next one coming is taken, and `Span.guessed` says so, for the asker to confirm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from bot.slack.grammar.when_parts import (
    BadTime,
    Between,
    Clock,
    Day,
    Lasting,
    Moment,
    Whole,
    Word,
    take_apart,
    take_moment,
)
from engine.errors import BadCommand
from engine.schedule.walltime import to_instant, to_wall

LONGEST: Final = timedelta(days=366)
_DAY: Final = timedelta(days=1)
_MINUTE: Final = timedelta(minutes=1)
_NOON: Final = time(12)


@dataclass(frozen=True, slots=True)
class Span:
    """From when until when, half open. `guessed`: what was not said, and how it was taken."""

    start: datetime
    end: datetime
    guessed: tuple[str, ...] = field(default=(), compare=False)


def read(words: str, now: datetime, zone: ZoneInfo, *, lenient: bool = False, past: bool = False) -> Span:
    """The interval that lower-case words mean; BadTime for none of the forms, BadCommand for one that
    cannot be meant.

    `lenient` is for what one only waits for, such as the end of a snooze: "until monday" is its first
    moment, and a time that the clock jumps over is the one after the jump. With `past` it may be over.
    """
    said = take_apart(words)
    reader = _Reader(now, zone, lenient=lenient)
    match said:
        case Lasting():
            start = reader.start(said.start)
            span = Span(start, start + said.length)
        case Between():
            span = reader.between(said)
        case Whole():
            span = reader.whole(said.day)
    span = replace(span, guessed=tuple(dict.fromkeys(reader.guessed)))
    if past:
        return _in_order(span, span.start)
    if span.end <= now:
        raise BadCommand("That is over already: name a time that is still to come.")
    return _begun(_in_order(span, now), now)


def read_at(words: str, now: datetime, zone: ZoneInfo) -> datetime:
    """The moment that lower-case words mean; the next one coming where no date is named."""
    return _Reader(now, zone, lenient=False).start(take_moment(words))


def _in_order(span: Span, since: datetime) -> Span:
    if span.end <= span.start:
        raise BadCommand("That ends before it begins.")
    if span.end - since > LONGEST:
        raise BadCommand("That is more than a year: name a shorter time.")
    return span


def _begun(span: Span, now: datetime) -> Span:
    if span.start >= now - _MINUTE:
        return replace(span, start=max(span.start, now))
    return replace(span, start=now, guessed=(*span.guessed, "it has begun already, so it holds from now on"))


class _Reader:
    """One reading: what was guessed is collected on the way."""

    def __init__(self, now: datetime, zone: ZoneInfo, *, lenient: bool) -> None:
        self._now = now
        self._zone = zone
        self._lenient = lenient
        self._today = to_wall(now, zone).date()
        # Why a minute: "from 9:00" typed at 9:00:30 means today.
        self._soonest = now - _MINUTE
        self.guessed: list[str] = []

    def between(self, said: Between) -> Span:
        start, end = said.start, said.end
        if start is None:
            return Span(self._now, self._end(end, self._now, through=said.through))
        if start.clock is not None and end.clock is not None:
            first, last = self._halves(start.clock, end.clock)
            start, end = replace(start, clock=first), replace(end, clock=last)
        if start.day is None and start.clock is not None and end.day_last:
            closes = self._end(end, self._now)
            return Span(self._last_before(start.clock, closes), closes)
        opens = self.start(start)
        return Span(opens, self._end(end, opens, through=said.through))

    def whole(self, day: Day) -> Span:
        if self._lenient:
            raise BadTime(len(day.said), ended=True)
        if day.word is Word.TONIGHT:
            raise BadCommand("Say from when until when: `tonight 18:00 to 22:00`.")
        opens = self._first(self._days(day), None, self._soonest if day.weekday is not None else None)
        first = to_wall(opens, self._zone).date()
        self._guess(f"`{day.said}` is the whole of {_named(first)}")
        return Span(opens, self._midnight(first + _DAY))

    def start(self, moment: Moment) -> datetime:
        if moment.after is not None:
            return self._now + moment.after
        if moment.clock is None:
            return self._start_of(moment.day)
        at, later = self._time(moment.clock, moment.day)
        if moment.day is None:
            found = self._first([self._today, self._today + _DAY], at, self._soonest, later)
            if to_wall(found, self._zone).date() > self._today + later * _DAY:
                self._guess(f"`{moment.clock.said}` is over for today, so it is tomorrow's")
            return found
        return self._first(self._days(moment.day, at), at, self._soonest, later)

    def _start_of(self, day: Day | None) -> datetime:
        assert day is not None, "a moment has a day, a clock or a distance"  # noqa: S101  # by the grammar
        if day.word is Word.TONIGHT:
            raise BadCommand("Say when tonight: `tonight 22:00`.")
        soonest = self._soonest if day.weekday is not None else None
        opens = self._first(self._days(day), None, soonest)
        if day.date is None:
            self._guess(f"`{day.said}` begins at midnight, {_named(to_wall(opens, self._zone).date())}")
        return opens

    def _end(self, moment: Moment, start: datetime, *, through: bool = False) -> datetime:
        if moment.after is not None:
            return self._now + moment.after
        if moment.clock is None:
            return self._end_of(moment.day, start, included=through or not self._lenient)
        at, later = self._time(moment.clock, moment.day)
        if moment.day is not None:
            return self._first(self._days(moment.day, at, start), at, start, later)
        first = to_wall(start, self._zone).date()
        found = self._first([first, first + _DAY], at, start, later)
        last = to_wall(found, self._zone).date()
        if last > first and moment.clock.said not in {"midnight", "24:00"}:
            self._guess(f"it ends on the next day, {_named(last)}")
        return found

    def _end_of(self, day: Day | None, start: datetime, *, included: bool) -> datetime:
        assert day is not None, "a moment has a day, a clock or a distance"  # noqa: S101  # by the grammar
        if day.word is Word.TONIGHT:
            raise BadCommand("Say when tonight: `until tonight 22:00`.")
        first = to_wall(start, self._zone).date()
        days = self._days(day, after=start)
        if day.weekday is not None:
            days = [each for each in days if each > first]
        if not included:
            return self._first(days, None, start)
        last = next((each for each in days if each >= first), days[-1])
        self._guess(f"{_named(last)} is included")
        return self._midnight(last + _DAY)

    def _days(self, day: Day, at: time = time(), after: datetime | None = None) -> list[date]:
        """The dates it may mean, the next one coming first."""
        today = self._today
        if day.word is Word.TOMORROW:
            return [today + _DAY]
        if day.word is not None:
            # "tonight 2am" is said of the night that begins today.
            return [today, today + _DAY] if day.word is Word.TONIGHT and at < _NOON else [today]
        if day.date is not None:
            return [day.date]
        first = to_wall(after, self._zone).date() if after is not None else today
        if day.weekday is not None:
            ahead = (day.weekday - first.weekday()) % 7
            self._guess(f"`{day.said}` means the coming one")
            return [first + timedelta(days=ahead), first + timedelta(days=ahead + 7)]
        self._guess(f"`{day.said}` means the coming one")
        return list(_years(day.month_day or (1, 1), first))

    def _first(
        self, days: Iterable[date], at: time | None, after: datetime | None, later: int = 0
    ) -> datetime:
        """The first that is after `after`, else the last. No `at`: the day begins when it begins."""
        walls = [datetime.combine(day + later * _DAY, at or time()) for day in days]
        ahead = (wall for wall in walls if after is None or to_instant(wall, self._zone) > after)
        wall = next(ahead, walls[-1])
        return to_instant(wall, self._zone) if at is None else self._exact(wall)

    def _last_before(self, clock: Clock, end: datetime) -> datetime:
        """ "9am to 5pm tomorrow": the day at the end is meant for both."""
        at, later = self._time(clock)
        last = to_wall(end, self._zone).date()
        walls = [datetime.combine(day + later * _DAY, at) for day in (last, last - _DAY)]
        wall = next((each for each in walls if to_instant(each, self._zone) < end), walls[-1])
        self._guess(f"`{clock.said}` is on {_named(wall.date())}")
        return self._exact(wall)

    def _exact(self, wall: datetime) -> datetime:
        """The instant, unless the clock jumps over it."""
        instant = to_instant(wall, self._zone)
        if to_wall(instant, self._zone) != wall and not self._lenient:
            before, after = _neighbours(wall, self._zone)
            raise BadCommand(
                f"There is no {wall:%H:%M} on {_named(wall.date())} in {self._zone.key}: the clock jumps. "
                f"Name `{before:%Y-%m-%d %H:%M}` or `{after:%Y-%m-%d %H:%M}`."
            )
        if wall.replace(tzinfo=self._zone, fold=1).utcoffset() != wall.replace(tzinfo=self._zone).utcoffset():
            self._guess(f"{wall:%H:%M} comes twice on {_named(wall.date())}, and the first is meant")
        return instant

    def _midnight(self, day: date) -> datetime:
        return to_instant(datetime.combine(day, time()), self._zone)

    def _time(self, clock: Clock, day: Day | None = None) -> tuple[time, int]:
        """The time of day, and how many days later than the day that was named."""
        if clock.bare:
            hour = clock.hour
            raise BadCommand(
                f"`{clock.said}` in the morning or in the evening? "
                f"Type `{hour}am`, `{hour}pm` or `{hour:02}:00`."
            )
        if clock.said == "midnight" and day is not None:
            self._guess(f"`{day.said} midnight` is when that day begins")
        if clock.half:
            return time(clock.hour % 12 + (12 if clock.half == "pm" else 0), clock.minute), 0
        return (time(), 1) if clock.hour == 24 else (time(clock.hour, clock.minute), 0)

    def _halves(self, first: Clock, last: Clock) -> tuple[Clock, Clock]:
        """am or pm of a bare hour, from the clock at the other end: "9 to 5pm" is 9am."""
        if first.bare and last.half:
            early = replace(first, half=last.half, bare=False)
            if self._time(early)[0] >= self._time(last)[0]:
                early = replace(early, half=_other(last.half))
            self._guess(f"`{first.said}` is {first.said}{early.half}")
            return early, last
        if last.bare and first.half:
            late = replace(last, half=first.half, bare=False)
            if self._time(late)[0] <= self._time(first)[0]:
                late = replace(late, half=_other(first.half))
            self._guess(f"`{last.said}` is {last.said}{late.half}")
            return first, late
        for one, other in ((first, last), (last, first)):
            if other.half and not one.half and 1 <= one.hour <= 12 and ":" in one.said:
                self._guess(f"`{one.said}` is {one.hour:02}:{one.minute:02} of 24 hours")
        return first, last

    def _guess(self, how: str) -> None:
        self.guessed.append(how)


def _other(half: str) -> str:
    return "am" if half == "pm" else "pm"


def _named(day: date) -> str:
    return f"{day:%a} {day.day} {day:%b %Y}"


def _years(month_day: tuple[int, int], after: date) -> Iterable[date]:
    """That day of this year and the next; the 29th of February may be some years off."""
    month, day = month_day
    found = []
    for year in range(after.year, after.year + 9):
        try:
            found.append(date(year, month, day))
        except ValueError:
            continue
    ahead = [each for each in found if each >= after]
    return ahead[:2]


def _neighbours(wall: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """The last minute before a jump of the clock over `wall`, and the first time after it."""
    # Why by bisection: the zone says what the offset is, not when it changed.
    offsets = [wall.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta() for fold in (1, 0)]
    before, after = sorted(to_instant(wall, zone) + (offsets[1] - each) for each in offsets)
    old = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=int((after - before).total_seconds()) // 2)
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return to_wall(after - _MINUTE, zone), to_wall(after, zone)
