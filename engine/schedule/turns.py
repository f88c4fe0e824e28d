"""Whose turn it is in a layer: arithmetic on the wall clock, from the layer's start.

Never looks at windows, holidays, `until` or other layers: they mask turns and never shift them.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from engine.schedule.model import Layer, Unit
from engine.schedule.walltime import LARGEST_JUMP, to_instant, to_wall

_LENGTHS = {
    Unit.HOUR: timedelta(hours=1),
    Unit.DAY: timedelta(days=1),
    Unit.WEEK: timedelta(weeks=1),
}


def turn_at(layer: Layer, zone: ZoneInfo, t: datetime) -> int | None:
    """The highest-numbered turn that has begun at `t`; None before the first."""
    turn = _turn_by_wall(layer, to_wall(t, zone))
    # Why both ways: after the clock was set back turns have begun that lie ahead on it, and after
    # it was set forward turns have not begun that lie behind.
    while to_instant(_begin(layer, turn + 1), zone) <= t:
        turn += 1
    while turn >= 0 and to_instant(_begin(layer, turn), zone) > t:
        turn -= 1
    return turn if turn >= 0 else None


def turn_begins(layer: Layer, zone: ZoneInfo, a: datetime, b: datetime) -> Iterator[datetime]:
    """Every instant after `a` and before `b` at which a turn of this layer begins."""
    if len(layer.users) < 2:
        return
    turn = max(0, _turn_by_wall(layer, to_wall(a, zone) - LARGEST_JUMP))
    last = _turn_by_wall(layer, to_wall(b, zone) + LARGEST_JUMP)
    for number in range(turn, last + 1):
        instant = to_instant(_begin(layer, number), zone)
        if a < instant < b:
            yield instant


def _begin(layer: Layer, turn: int) -> datetime:
    """When a turn begins, on the wall clock."""
    steps = turn * layer.rotation.every
    if layer.rotation.unit is Unit.MONTH:
        return _add_months(layer.start, steps)
    return layer.start + steps * _LENGTHS[layer.rotation.unit]


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
