"""Who may start on a line now, and whose place is when: by urgency, then by age.

Pure: never reads the clock or the database, and never sends. A line is all SMS, all calls, or one Slack
channel or person: what has a pace of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from engine.models import Delivery, Method
from engine.store.paces import FRESH, Standing

# Twilio documents one message a second for a US number (docs/api/errors/21611) and one call a second for an
# account (docs/glossary/cps). What comes faster it queues for itself, where nothing urgent passes the rest.
PER_SECOND: Final = 1.0
BURST: Final = 3  # so many may start at once after a pause
SLACK: Final = timedelta(seconds=1)  # one message per second and channel, without a burst
PER_DAY: Final = 1000  # SMS, and as many calls: a lot, and a bill that can be paid
NOTHING_LATER: Final = timedelta(minutes=10)  # later than that is no throttle: the clock was set back
CLOCK_SLACK: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Pace:
    """One message each `interval`; after a pause `burst` of them together. `per_day`: when so many were
    begun on a day (UTC), only what is needed still is."""

    interval: timedelta
    burst: int = 1
    per_day: int | None = None


@dataclass(frozen=True, slots=True)
class Paces:
    """The pace of each method that has one. A method without is not held back."""

    of: Mapping[Method, Pace] = field(default_factory=dict)

    @classmethod
    def per_second(
        cls, sms: float = PER_SECOND, calls: float = PER_SECOND, per_day: int | None = None
    ) -> Paces:
        slack = Pace(SLACK)
        each = {Method.SMS: _at(sms, per_day), Method.VOICE: _at(calls, per_day)}
        return cls({Method.SLACK: slack, Method.CHANNEL: slack, **each})

    def line_of(self, delivery: Delivery) -> str | None:
        """All that goes out from one number of ours is one line; in Slack each channel is one."""
        method = delivery.method
        if method not in self.of:
            return None
        if method in (Method.SMS, Method.VOICE):
            return method.value
        return f"{method}:{delivery.person_id or delivery.address or delivery.incident_id}"

    def pace_of(self, line: str) -> Pace:
        return self.of[Method(line.partition(":")[0])]


def _at(per_second: float, per_day: int | None) -> Pace:
    return Pace(timedelta(seconds=1 / per_second), max(BURST, round(per_second)), per_day)


@dataclass(frozen=True, slots=True)
class Asking:
    """A delivery, or several that go in one message, that would start now."""

    ids: tuple[int, ...]
    high: bool
    waited: bool  # it came back for its place
    since: datetime
    spare: bool = False  # neither a page nor an alarm: nobody is lost without it

    @property
    def order(self) -> tuple[bool, datetime, int]:
        return not self.high, self.since, self.ids[0]


def admit(
    standing: Standing, asking: Iterable[Asking], now: datetime, pace: Pace
) -> tuple[Standing, dict[int, datetime]]:
    """The line afterwards, and when each may start: `now` means that it starts, later is its place.

    What is new and of high urgency passes those who wait, with at most half of the pace: the rest of it is
    theirs, so that nobody waits for ever.
    """
    line = _on_this_clock(standing, now, pace)
    places: dict[int, datetime] = {}
    back = 0  # of those whose place was taken: they come next, in their order
    for one in sorted(asking, key=lambda one: one.order):
        if _may_start(line, one, now, pace):
            at, line = now, _started(line, one, now, pace)
        elif one.waited:
            at = _next(line, now, high=one.high) + back * pace.interval
            back += 1
        else:
            at = max(_next(line, now, high=one.high), line.high_until if one.high else line.low_until)
            end = at + pace.interval
            line = replace(line, high_until=end) if one.high else replace(line, low_until=end)
        places |= dict.fromkeys(one.ids, max(at, now))
    return line, places


def is_spent(line: Standing, now: datetime, pace: Pace) -> bool:
    """Was as much begun today as a day may have?"""
    return pace.per_day is not None and _counted(line, now) >= pace.per_day


def _counted(line: Standing, now: datetime) -> int:
    return line.begun if line.day == _day(now) else 0


def _day(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def held(standing: Standing, until: datetime) -> Standing:
    """The provider wants nothing there before `until`."""
    return replace(standing, held_until=max(until, standing.held_until or until))


def _may_start(line: Standing, one: Asking, now: datetime, pace: Pace) -> bool:
    if line.held_until is not None and line.held_until > now:
        return False
    passes = one.high and not one.waited and line.first_at <= now
    return line.free_at <= (now + pace.interval if passes else now)


def _started(line: Standing, one: Asking, now: datetime, pace: Pace) -> Standing:
    free_at = max(line.free_at, now - (pace.burst - 1) * pace.interval) + pace.interval
    passed = line.free_at > now
    first_at = now + 2 * pace.interval if passed else line.first_at
    return replace(line, free_at=free_at, first_at=first_at, day=_day(now), begun=_counted(line, now) + 1)


def _next(line: Standing, now: datetime, *, high: bool) -> datetime:
    """When somebody may start there at the earliest. Low urgency comes after all of high urgency."""
    free = max(line.free_at, line.held_until or now, now)
    return free if high else max(free, line.high_until)


def _on_this_clock(line: Standing, now: datetime, pace: Pace) -> Standing:
    # Why: after the clock is set back an hour, pages would wait for an hour. Sending a little too fast
    # once is the lesser harm.
    free = line.free_at <= now + CLOCK_SLACK + 2 * pace.interval
    unheld = line.held_until is None or line.held_until <= now + NOTHING_LATER
    return line if free and unheld else replace(FRESH, day=line.day, begun=line.begun)
