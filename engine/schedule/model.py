"""A schedule as frozen values: layers, rotations, restrictions, holidays, overrides, shifts.

Never finds out who is on call, and never checks its input: `parse` does. People are opaque
strings. `start`, `until`, `opens` and `closes` are local wall times without a zone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from enum import IntEnum, StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from engine.schedule.holidays import Holidays


class Unit(StrEnum):
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class Weekday(IntEnum):
    """Numbered as `date.weekday()` does."""

    MON = 0
    TUE = 1
    WED = 2
    THU = 3
    FRI = 4
    SAT = 5
    SUN = 6

    @property
    def word(self) -> str:
        return self.name.lower()


class OverrideKind(StrEnum):
    REPLACE_ALL = "replace_all"
    COVER = "cover"
    ADD = "add"


@dataclass(frozen=True, slots=True)
class Rotation:
    """How long a turn lasts: `every` units, counted on the wall clock."""

    every: int
    unit: Unit


@dataclass(frozen=True, slots=True)
class Restriction:
    """A window in which a layer is active; `days` are those on which it opens."""

    days: frozenset[Weekday]
    opens: time
    closes: time  # not after `opens`: on the next day


@dataclass(frozen=True, slots=True)
class Layer:
    name: str
    users: tuple[tuple[str, ...], ...]  # one entry per turn: those who are on call together
    start: datetime  # turn 0 begins; before it the layer has nobody
    rotation: Rotation
    until: datetime | None = None
    restrictions: tuple[Restriction, ...] = ()  # none: always active
    skip_holidays: bool = False
    holidays: Holidays | None = None  # its own, that it skips in place of the schedule's


@dataclass(frozen=True, slots=True)
class ScheduleOverride:
    """Who takes over between two instants. `covers` is whom a cover stands in for."""

    kind: OverrideKind
    user: str
    start: datetime
    end: datetime
    covers: str | None = None
    calendar: bool = False  # nobody made it: the calendar says so that the schedule follows


@dataclass(frozen=True, slots=True)
class Schedule:
    """`layers` are in order of precedence, `overrides` in the order of their creation."""

    timezone: str
    layers: tuple[Layer, ...] = ()
    overrides: tuple[ScheduleOverride, ...] = ()
    holidays: Holidays = field(default_factory=Holidays)
    fallback: str | None = None
    # What the resolver has worked out about this very value: it lives and dies with it, so that no
    # edit can leave an answer behind.
    worked_out: dict[int, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)


@dataclass(frozen=True, slots=True)
class Shift:
    """A stretch with the same people; with none, nobody is on call."""

    start: datetime
    end: datetime
    people: tuple[str, ...]


def with_overrides(schedule: Schedule, overrides: Iterable[ScheduleOverride]) -> Schedule:
    """Add overrides that were created later than those the schedule has, in order of creation."""
    return replace(schedule, overrides=(*schedule.overrides, *overrides))
