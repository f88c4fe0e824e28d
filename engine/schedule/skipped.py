"""The hours of a layer that the clock jumps over: the rules say nobody, so people are told ahead of time.

Never says who is on call instead; `shifts` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from engine.schedule.model import Layer, Schedule
from engine.schedule.walltime import to_instant
from engine.schedule.windows import lost_windows, skipped_by


@dataclass(frozen=True, slots=True)
class Skipped:
    """A window that is empty on that day, on the wall clock of the schedule."""

    layer: str
    opens: datetime
    closes: datetime


def skipped_windows(schedule: Schedule, a: datetime, b: datetime) -> list[Skipped]:
    """Those that would have opened from `a` up to `b`, in order."""
    found = {one for layer in schedule.layers for one in _of(schedule, layer, a, b)}
    return sorted(found, key=lambda one: (one.opens, one.layer, one.closes))


def _of(schedule: Schedule, layer: Layer, a: datetime, b: datetime) -> Iterator[Skipped]:
    zone, holidays = schedule.zone, skipped_by(schedule, layer)
    for opens, closes in lost_windows(layer, zone, a, b) if layer.users else ():
        off = layer.skip_holidays and opens.date() in holidays
        over = layer.until is not None and opens >= layer.until
        if a <= to_instant(opens, zone) < b and opens >= layer.start and not (over or off):
            yield Skipped(layer.name, opens, closes)
