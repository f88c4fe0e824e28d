"""When a layer is open: its restrictions, and the holidays it skips.

Never asks whose turn it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from engine.schedule.model import Layer, Restriction, Schedule
from engine.schedule.walltime import LARGEST_JUMP, to_instant, to_wall

_DAY = timedelta(days=1)

# Why: a window lasts at most a day, so it opened today or yesterday, except near a change of the
# clock by a day (then the day before) or at midnight (then tomorrow has begun once already).
_WINDOW_DAYS = (timedelta(0), -_DAY, _DAY, -2 * _DAY)


def in_window(layer: Layer, zone: ZoneInfo, t: datetime) -> bool:
    if not layer.restrictions:
        return True
    today = to_wall(t, zone).date()
    for offset in _WINDOW_DAYS:
        day = today + offset
        for restriction in layer.restrictions:
            if day.weekday() in restriction.days:
                opens, closes = _window(restriction, zone, day)
                if opens <= t < closes:
                    return True
    return False


def window_bounds(layer: Layer, zone: ZoneInfo, a: datetime, b: datetime) -> Iterator[datetime]:
    """Every instant after `a` and before `b` at which a window of this layer opens or closes."""
    if not layer.restrictions:
        return
    for day in _days(zone, a, b):
        for restriction in layer.restrictions:
            if day.weekday() in restriction.days:
                for bound in _window(restriction, zone, day):
                    if a < bound < b:
                        yield bound


def holiday_at(schedule: Schedule, zone: ZoneInfo, t: datetime) -> str | None:
    """The name of the holiday at `t`, from local midnight to the next."""
    if not schedule.holidays:
        return None
    today = to_wall(t, zone).date()
    for day in (today, today - _DAY, today + _DAY):
        if day in schedule.holidays and _midnight(day, zone) <= t < _midnight(day + _DAY, zone):
            return schedule.holidays[day]
    return None


def holiday_bounds(schedule: Schedule, zone: ZoneInfo, a: datetime, b: datetime) -> Iterator[datetime]:
    """Every instant after `a` and before `b` at which a holiday begins or ends."""
    for day in schedule.holidays:
        for bound in (_midnight(day, zone), _midnight(day + _DAY, zone)):
            if a < bound < b:
                yield bound


def _window(restriction: Restriction, zone: ZoneInfo, day: date) -> tuple[datetime, datetime]:
    """The instants between which the window that opens on `day` is open; empty when not in order."""
    last = day if restriction.opens < restriction.closes else day + _DAY
    opens = to_instant(datetime.combine(day, restriction.opens), zone)
    return opens, to_instant(datetime.combine(last, restriction.closes), zone)


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return to_instant(datetime.combine(day, time()), zone)


def _days(zone: ZoneInfo, a: datetime, b: datetime) -> Iterator[date]:
    day = (to_wall(a, zone) - LARGEST_JUMP).date()
    last = (to_wall(b, zone) + LARGEST_JUMP).date()
    while day <= last:
        yield day
        day += _DAY
