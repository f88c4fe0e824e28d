"""Who is on call before any override: the first layer that has somebody, else the fallback.

Never merges layers: the highest one that has somebody answers alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from zoneinfo import ZoneInfo

from engine.schedule.model import Layer, Schedule
from engine.schedule.turns import turn_at
from engine.schedule.walltime import to_instant
from engine.schedule.windows import holiday_at, in_window


class Silence(Enum):
    """Why a layer has nobody at an instant."""

    EMPTY = auto()
    NOT_STARTED = auto()
    ENDED = auto()
    NOBODYS_TURN = auto()
    OUTSIDE_WINDOWS = auto()
    HOLIDAY = auto()


@dataclass(frozen=True, slots=True)
class Base:
    """`layer` is None when the fallback answers, or nobody does."""

    people: tuple[str, ...]
    layer: Layer | None


def base_at(schedule: Schedule, t: datetime) -> Base:
    zone = schedule.zone
    for layer in schedule.layers:
        answer = ask_layer(schedule, layer, zone, t)
        if not isinstance(answer, Silence):
            return Base(answer, layer)
    return Base((schedule.fallback,) if schedule.fallback is not None else (), None)


def ask_layer(schedule: Schedule, layer: Layer, zone: ZoneInfo, t: datetime) -> tuple[str, ...] | Silence:
    """Those whose turn it is, or why nobody is."""
    if not layer.users:
        return Silence.EMPTY
    # Why not by the turn alone: where the clock jumps by more than a turn, a later turn may begin
    # before turn 0 does, and before its start a layer has nobody.
    if t < to_instant(layer.start, zone):
        return Silence.NOT_STARTED
    if layer.until is not None and t >= to_instant(layer.until, zone):
        return Silence.ENDED
    if not in_window(layer, zone, t):
        return Silence.OUTSIDE_WINDOWS
    if layer.skip_holidays and holiday_at(schedule, zone, t) is not None:
        return Silence.HOLIDAY
    turn = turn_at(layer, zone, t) if len(layer.users) > 1 else 0
    return layer.users[(turn or 0) % len(layer.users)] or Silence.NOBODYS_TURN
