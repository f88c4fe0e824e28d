"""The one resolver: view, card, API, calendar and routing all ask here who is on call.

Never guesses: before a start, in a gap and after an end nobody is on call, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final

from engine.errors import BadInput
from engine.schedule.explain import explain
from engine.schedule.layers import Stretch
from engine.schedule.model import Schedule, Shift
from engine.schedule.timeline import (
    FIRST_INSTANT,
    INSTANT,
    LAST_INSTANT,
    change_after,
    change_before,
    shifts_between,
    stretch_at,
)

HORIZON: Final = timedelta(days=366)  # further away than that a change is none worth naming


@dataclass(frozen=True)
class OnCall:
    """Who is on call at an instant. Why, since when and until when is worked out when asked for."""

    people: tuple[str, ...]
    schedule: Schedule = field(repr=False, compare=False)
    at: datetime = field(repr=False, compare=False)
    stretch: Stretch = field(repr=False, compare=False)
    names: Mapping[str, str] = field(repr=False, compare=False)

    @cached_property
    def reason(self) -> str:
        """The override and its end, or the layer and whose turn it is, or why nobody's."""
        return explain(self.schedule, self.stretch, self.at, self.names)

    @cached_property
    def since(self) -> datetime | None:
        """Since when the same people are; None if for more than a year."""
        return change_before(self.schedule, self.at, max(FIRST_INSTANT, self.at - HORIZON))

    @cached_property
    def until(self) -> datetime | None:
        """Until when the same people are; None if for more than a year."""
        return next_change(self.schedule, self.at)


def on_call(schedule: Schedule, t: datetime, names: Mapping[str, str] | None = None) -> OnCall:
    """Who is on call at `t`. `names` are what people are called in the reason."""
    t = _checked(t)
    stretch = stretch_at(schedule, t)
    return OnCall(stretch.people, schedule, t, stretch, names or {})


def people_at(schedule: Schedule, t: datetime) -> tuple[str, ...]:
    """Who is on call at `t`, sorted, each once."""
    return stretch_at(schedule, _checked(t)).people


def shifts(schedule: Schedule, a: datetime, b: datetime) -> list[Shift]:
    """Who is on call from `a` to `b`: stretches as long as can be, without a break between them."""
    if b <= a:
        return []
    return shifts_between(schedule, _checked(a), _checked(b - INSTANT) + INSTANT)


def next_change(schedule: Schedule, t: datetime) -> datetime | None:
    """The first instant after `t` at which other people are on call; None if not within a year."""
    t = _checked(t)
    return change_after(schedule, t, min(LAST_INSTANT, t + HORIZON))


def _checked(t: datetime) -> datetime:
    """The instant in UTC, where comparing and subtracting is sound."""
    if t.tzinfo is None:
        raise ValueError("an instant without a time zone says nothing")
    if not FIRST_INSTANT <= t < LAST_INSTANT:
        raise BadInput(f"the year {t.year} is too far away: ask about 1900 to 2199")
    return t if t.tzinfo is UTC else t.astimezone(UTC)
