"""Whose turn it is in a layer: arithmetic on the wall clock, from the layer's start.

Never looks at windows, holidays, `until` or other layers: they mask turns and never shift them.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from engine.schedule.model import Layer, Rotation, Unit
from engine.schedule.walltime import LARGEST_JUMP, to_instant, to_wall

_LENGTHS = {
    Unit.HOUR: timedelta(hours=1),
    Unit.DAY: timedelta(days=1),
    Unit.WEEK: timedelta(weeks=1),
}


def turns_in(layer: Layer, zone: ZoneInfo, a: datetime, b: datetime) -> list[tuple[datetime, int]]:
    """Each turn in force between `a` and `b` and since when: the highest-numbered that has begun."""
    if len(layer.users) == 1:  # whose turn it is never changes
        return [(to_instant(layer.start, zone), 0)]
    first = max(0, _turn_by_wall(layer, to_wall(a, zone) - LARGEST_JUMP) - 1)
    last = _turn_by_wall(layer, to_wall(b, zone) + LARGEST_JUMP)
    start = layer.start.replace(tzinfo=zone)  # adding to it is adding on the wall clock
    begun: list[tuple[datetime, int]] = []
    for turn in range(first, last + 1):
        begins = _begin(layer.rotation, start, turn).astimezone(UTC)
        if begins >= b:
            continue
        # Why: where the clock jumps ahead, a later turn begins with an earlier one or even before
        # it, and whose turn began no earlier than a later one is passed over.
        while begun and (begun[-1][0] >= begins or begins <= a):
            begun.pop()
        begun.append((begins, turn))
    return begun


def _begin(rotation: Rotation, start: datetime, turn: int) -> datetime:
    """When a turn begins, on the wall clock."""
    steps = turn * rotation.every
    if rotation.unit is Unit.MONTH:
        return _add_months(start, steps)
    return start + steps * _LENGTHS[rotation.unit]


def _turn_by_wall(layer: Layer, wall: datetime) -> int:
    """The turn that begins last at or before `wall`, or (months) at most one later."""
    start, rotation = layer.start, layer.rotation
    if rotation.unit is Unit.MONTH:
        return ((wall.year - start.year) * 12 + wall.month - start.month) // rotation.every
    return (wall - start) // (rotation.every * _LENGTHS[rotation.unit])


def _add_months(start: datetime, months: int) -> datetime:
    """Counted from the start's own day, which never drifts; a short month gives its last day."""
    years, month = divmod(start.month - 1 + months, 12)
    year = start.year + years
    day = min(start.day, monthrange(year, month + 1)[1])
    return start.replace(year=year, month=month + 1, day=day)
