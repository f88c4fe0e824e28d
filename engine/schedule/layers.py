"""Who is on call before any override: the first layer that has somebody, else the fallback.

Never merges layers: the highest one that has somebody answers alone.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum, auto
from typing import NamedTuple

from engine.schedule.model import Layer, Schedule, ScheduleOverride
from engine.schedule.spans import Span, without
from engine.schedule.turns import turns_in
from engine.schedule.walltime import to_instant
from engine.schedule.windows import holiday_spans, open_spans

_INSTANT = timedelta(microseconds=1)


class Silence(Enum):
    """Why a layer has nobody at an instant."""

    EMPTY = auto()
    NOT_STARTED = auto()
    ENDED = auto()
    NOBODYS_TURN = auto()
    OUTSIDE_WINDOWS = auto()
    HOLIDAY = auto()


class Stretch(NamedTuple):
    """Who is on call from when to when, and by what: a layer's turn (else the fallback), overrides."""

    start: datetime
    end: datetime
    people: tuple[str, ...]  # sorted, each once
    layer: Layer | None
    turn: tuple[str, ...]  # as the layer has them, or the fallback
    overrides: tuple[ScheduleOverride, ...] = ()


def base_stretches(schedule: Schedule, a: datetime, b: datetime) -> list[Stretch]:
    """From `a` to `b` without a break, by layers and fallback alone."""
    free: list[Span] = [(a, b)]
    found: list[Stretch] = []
    for layer in schedule.layers:
        if not free:
            break
        active = _overlap(_active(schedule, layer, a, b), free)
        taken = _turns(schedule, layer, active, a, b)
        found += taken
        free = without(free, [(stretch.start, stretch.end) for stretch in taken])
    fallback = () if schedule.fallback is None else (schedule.fallback,)
    found += [Stretch(start, end, fallback, None, fallback) for start, end in free]
    return sorted(found, key=lambda stretch: stretch.start)


def silence_at(schedule: Schedule, layer: Layer, t: datetime) -> Silence:
    """Why nobody of the layer is on call at `t`, where none is."""
    zone, after = schedule.zone, t + _INSTANT
    if not layer.users:
        return Silence.EMPTY
    if t < to_instant(layer.start, zone):
        return Silence.NOT_STARTED
    if layer.until is not None and t >= to_instant(layer.until, zone):
        return Silence.ENDED
    if not open_spans(layer, zone, t, after):
        return Silence.OUTSIDE_WINDOWS
    return Silence.HOLIDAY if holiday_spans(schedule, layer, t, after) else Silence.NOBODYS_TURN


def _active(schedule: Schedule, layer: Layer, a: datetime, b: datetime) -> list[Span]:
    """When the layer has begun, has not ended, is open and skips no holiday."""
    zone = schedule.zone
    # Why not by the turn alone: where the clock jumps by more than a turn, a later turn may begin
    # before turn 0 does, and before its start a layer has nobody.
    a = max(a, to_instant(layer.start, zone))
    b = b if layer.until is None else min(b, to_instant(layer.until, zone))
    if not layer.users or b <= a:
        return []
    return without(open_spans(layer, zone, a, b), holiday_spans(schedule, layer, a, b))


def _turns(schedule: Schedule, layer: Layer, active: list[Span], a: datetime, b: datetime) -> list[Stretch]:
    """The active spans by whose turn it is, without the turns of nobody."""
    if not active:
        return []
    turns = turns_in(layer, schedule.zone, a, b)
    people = [tuple(sorted(set(together))) for together in layer.users]
    found: list[Stretch] = []
    number = 0
    for start, end in active:
        while number + 1 < len(turns) and turns[number + 1][0] <= start:
            number += 1
        while start < end:
            until = min(end, turns[number + 1][0]) if number + 1 < len(turns) else end
            whose = turns[number][1] % len(layer.users)
            if people[whose]:
                found.append(Stretch(start, until, people[whose], layer, layer.users[whose]))
            start = until
            if until < end:
                number += 1
    return found


def _overlap(spans: list[Span], others: list[Span]) -> list[Span]:
    """What lies in both; each in order."""
    if len(others) == 1:  # nothing above has taken any: the usual case
        (a, b) = others[0]
        return [(max(start, a), min(end, b)) for start, end in spans if start < b and end > a]
    found: list[Span] = []
    i = j = 0
    while i < len(spans) and j < len(others):
        start, end = max(spans[i][0], others[j][0]), min(spans[i][1], others[j][1])
        if start < end:
            found.append((start, end))
        if spans[i][1] < others[j][1]:
            i += 1
        else:
            j += 1
    return found
