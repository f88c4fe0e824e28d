"""The rows of the picture: each layer by itself, and the answer below them.

Never decides who is on call: the resolver is asked for every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from engine.schedule import Layer, Schedule, Shift, shifts
from engine.schedule.diff import Changed, diff


@dataclass(frozen=True, slots=True)
class Row:
    """`overridden`: where somebody else is on call than by the layers. Only the last row has any."""

    name: str
    shifts: tuple[Shift, ...]
    final: bool = False
    overridden: tuple[Changed, ...] = ()

    def within(self, a: datetime, b: datetime) -> list[Shift]:
        return [Shift(*_cut(one, a, b), one.people) for one in self.shifts if one.start < b and one.end > a]

    def hatched(self, a: datetime, b: datetime) -> list[tuple[datetime, datetime]]:
        return [_cut(one, a, b) for one in self.overridden if one.start < b and one.end > a]

    def handoffs(self, a: datetime, b: datetime) -> list[datetime]:
        """The instants from `a` on and before `b` at which other people come on call."""
        return [one.start for one in self.shifts[1:] if a <= one.start < b]


def rows_of(schedule: Schedule, a: datetime, b: datetime) -> list[Row]:
    """Highest layer first, the answer last."""
    plain = replace(schedule, overrides=())
    rows = [Row(layer.name, tuple(shifts(alone, a, b))) for layer, alone in _alone(plain)]
    overridden = tuple(diff(plain, schedule, a, b)) if schedule.overrides else ()
    return [*rows, Row("on call", tuple(shifts(schedule, a, b)), final=True, overridden=overridden)]


def people_in(rows: Sequence[Row]) -> list[str]:
    """Everybody who is in the picture, by their first time in the answer, then in the layers."""
    order = [*rows[-1:], *rows[:-1]]
    return list(dict.fromkeys(user for row in order for one in row.shifts for user in one.people))


def gaps(rows: Sequence[Row]) -> timedelta:
    """For how long nobody is on call."""
    return sum((one.end - one.start for one in rows[-1].shifts if not one.people), timedelta())


def _alone(schedule: Schedule) -> Iterator[tuple[Layer, Schedule]]:
    for layer in schedule.layers:
        yield layer, replace(schedule, layers=(layer,), fallback=None)


def _cut(one: Shift | Changed, a: datetime, b: datetime) -> tuple[datetime, datetime]:
    return max(one.start, a), min(one.end, b)
