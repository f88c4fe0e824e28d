"""When a layer is open: its restrictions, and the holidays that it skips.

Never asks whose turn it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from engine.schedule.holidays import Holidays
from engine.schedule.model import Layer, Restriction, Schedule
from engine.schedule.spans import Span, clip, join
from engine.schedule.walltime import LARGEST_JUMP, on_day, to_wall

_DAY = timedelta(days=1)


def open_spans(layer: Layer, zone: ZoneInfo, a: datetime, b: datetime) -> list[Span]:
    """When the layer's windows are open between `a` and `b`; without restrictions always."""
    if not layer.restrictions:
        return [(a, b)]
    return clip(join(span for _, _, span in _windows(layer, zone, a, b)), a, b)


def lost_windows(
    layer: Layer, zone: ZoneInfo, a: datetime, b: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """The windows around `a` to `b` that a change of the clock leaves empty, on the wall clock."""
    for day, restriction, (opens, closes) in _windows(layer, zone, a, b):
        if closes <= opens:
            closing = _closing_day(restriction, day)
            yield datetime.combine(day, restriction.opens), datetime.combine(closing, restriction.closes)


def holiday_spans(schedule: Schedule, layer: Layer, a: datetime, b: datetime) -> list[Span]:
    """The holidays that the layer skips between `a` and `b`, each from local midnight to the next."""
    if not layer.skip_holidays:
        return []
    holidays, zone = skipped_by(schedule, layer), schedule.zone
    first, last = _reach(zone, a, b)
    return clip(join(_whole(day, zone) for day in holidays.between(first, last)), a, b)


def holiday_at(schedule: Schedule, layer: Layer, t: datetime) -> str | None:
    """The name of the holiday that the layer skips at `t`."""
    holidays, zone = skipped_by(schedule, layer), schedule.zone
    today = to_wall(t, zone).date()
    for day in (today, today - _DAY, today + _DAY):
        name = holidays.name(day)
        midnight, next_midnight = _whole(day, zone)
        if name is not None and midnight <= t < next_midnight:
            return name
    return None


def skipped_by(schedule: Schedule, layer: Layer) -> Holidays:
    return schedule.holidays if layer.holidays is None else layer.holidays


def _windows(
    layer: Layer, zone: ZoneInfo, a: datetime, b: datetime
) -> Iterator[tuple[date, Restriction, Span]]:
    """Every window that may be open between `a` and `b`; its span is empty when not in order."""
    clocks = [(r, r.opens.replace(tzinfo=zone), r.closes.replace(tzinfo=zone)) for r in layer.restrictions]
    day, last = _reach(zone, a, b)
    while day <= last:
        for restriction, opens, closes in clocks:
            if day.weekday() in restriction.days:
                closing = _closing_day(restriction, day)
                yield day, restriction, (on_day(day, opens), on_day(closing, closes))
        day += _DAY


def _closing_day(restriction: Restriction, day: date) -> date:
    return day if restriction.opens < restriction.closes else day + _DAY


def _reach(zone: ZoneInfo, a: datetime, b: datetime) -> tuple[date, date]:
    """The local days on which something may begin that concerns `a` to `b`."""
    # Why wider: what lasts a day began yesterday, and clocks have jumped by a day.
    return (to_wall(a, zone) - LARGEST_JUMP).date(), (to_wall(b, zone) + LARGEST_JUMP).date()


def _whole(day: date, zone: ZoneInfo) -> Span:
    midnight = time(tzinfo=zone)
    return on_day(day, midnight), on_day(day + _DAY, midnight)
