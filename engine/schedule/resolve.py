"""The one resolver: view, card, API, calendar and routing all ask here who is on call.

Never guesses: before a start, in a gap and after an end nobody is on call, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import pairwise

from engine.errors import BadInput
from engine.schedule.explain import explain
from engine.schedule.layers import base_at
from engine.schedule.model import Schedule, Shift
from engine.schedule.overrides import apply_overrides
from engine.schedule.turns import turn_begins
from engine.schedule.walltime import to_instant
from engine.schedule.windows import holiday_bounds, window_bounds

# Why: beyond these years a local time may lie outside what a datetime can hold.
FIRST_INSTANT = datetime(1900, 1, 1, tzinfo=UTC)
LAST_INSTANT = datetime(2200, 1, 1, tzinfo=UTC)

# Why growing: most hand-overs are near; a schedule of one person has none in a whole year.
_HORIZONS = (timedelta(days=1), timedelta(days=8), timedelta(days=60), timedelta(days=366))
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True)
class OnCall:
    """Who is on call at an instant and why. `since` and `until` are worked out when asked for."""

    people: tuple[str, ...]
    reason: str
    schedule: Schedule = field(repr=False, compare=False)
    at: datetime = field(repr=False, compare=False)

    @cached_property
    def since(self) -> datetime | None:
        """Since when the same people are; None if for more than a year."""
        for horizon in _HORIZONS:
            start = max(FIRST_INSTANT, self.at - horizon)
            stretch = shifts(self.schedule, start, self.at + _INSTANT)[-1]
            if stretch.start > start:
                return stretch.start
        return None

    @cached_property
    def until(self) -> datetime | None:
        """Until when the same people are; None if for more than a year."""
        return next_change(self.schedule, self.at)


def on_call(schedule: Schedule, t: datetime, names: Mapping[str, str] | None = None) -> OnCall:
    """Who is on call at `t`. `names` are what people are called in the reason."""
    people = people_at(schedule, t)
    return OnCall(people, explain(schedule, t, names or {}), schedule, t)


def people_at(schedule: Schedule, t: datetime) -> tuple[str, ...]:
    """Who is on call at `t`, sorted, each once."""
    _check(t)
    people, _ = apply_overrides(schedule.overrides, base_at(schedule, t).people, t)
    return tuple(sorted(people))


def shifts(schedule: Schedule, a: datetime, b: datetime) -> list[Shift]:
    """Who is on call from `a` to `b`: stretches as long as can be, without a break between them."""
    if b <= a:
        return []
    bounds = sorted({a, b, *_bounds(schedule, a, b)})
    found: list[Shift] = []
    for start, end in pairwise(bounds):
        people = people_at(schedule, start)
        if found and found[-1].people == people:
            found[-1] = Shift(found[-1].start, end, people)
        else:
            found.append(Shift(start, end, people))
    return found


def next_change(schedule: Schedule, t: datetime) -> datetime | None:
    """The first instant after `t` at which other people are on call; None if not within a year."""
    for horizon in _HORIZONS:
        end = min(LAST_INSTANT, t + horizon)
        first = next(iter(shifts(schedule, t, end)), None)
        if first is not None and first.end < end:
            return first.end
    return None


def _bounds(schedule: Schedule, a: datetime, b: datetime) -> Iterator[datetime]:
    """Every instant after `a` and before `b` at which the answer may change."""
    _check(a)
    _check(b - _INSTANT)
    zone = schedule.zone
    for layer in schedule.layers:
        yield from turn_begins(layer, zone, a, b)
        yield from window_bounds(layer, zone, a, b)
    if any(layer.skip_holidays for layer in schedule.layers):
        yield from holiday_bounds(schedule, zone, a, b)
    walls = [wall for layer in schedule.layers for wall in (layer.start, layer.until) if wall]
    fixed = [to_instant(wall, zone) for wall in walls]
    fixed += [instant for override in schedule.overrides for instant in (override.start, override.end)]
    yield from (instant for instant in fixed if a < instant < b)


def _check(t: datetime) -> None:
    if t.tzinfo is None:
        raise ValueError("an instant without a time zone says nothing")
    if not FIRST_INSTANT <= t < LAST_INSTANT:
        raise BadInput(f"the year {t.year} is too far away: ask about 1900 to 2199")
