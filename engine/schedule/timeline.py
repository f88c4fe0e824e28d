"""A schedule worked out: who is on call from when to when, block by block of time, and kept.

Never goes stale: a block is made of one unchangeable schedule and kept in it, so that an edit or an
override, which make another schedule, start anew. Asking again is a search in a sorted list.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Final, cast

from engine.schedule.layers import Stretch, base_stretches
from engine.schedule.model import Schedule, Shift
from engine.schedule.overrides import apply_overrides

# Why: beyond these years a local time may lie outside what a datetime can hold.
FIRST_INSTANT: Final = datetime(1900, 1, 1, tzinfo=UTC)
LAST_INSTANT: Final = datetime(2200, 1, 1, tzinfo=UTC)
INSTANT: Final = timedelta(microseconds=1)

# Why eight days: who is on call now and the next change cost one or two blocks. Longer ones would be
# worked out in vain; shorter ones repeat what each has to look up around its edges.
BLOCK: Final = timedelta(days=8)
_KEEPING: Final = Lock()  # the look ahead works in a thread, while pages ask the same schedule
MOST_BLOCKS: Final = 100  # over two years of one schedule; asked about more, it forgets the first


@dataclass(frozen=True, slots=True)
class Block:
    """`stretches` say where each answer comes from; `shifts` join those with the same people."""

    stretches: list[Stretch]
    starts: list[datetime]  # of the stretches
    shifts: list[Shift]


def stretch_at(schedule: Schedule, t: datetime) -> Stretch:
    block = _block(schedule, _number(t))
    return block.stretches[bisect_right(block.starts, t) - 1]


def shifts_between(schedule: Schedule, a: datetime, b: datetime) -> list[Shift]:
    """As long as can be, from `a` to `b` without a break; `b` is after `a`."""
    found: list[Shift] = []
    for number in range(_number(a), _number(b - INSTANT) + 1):
        shifts = _block(schedule, number).shifts
        if found and found[-1].people == shifts[0].people:
            whole = Shift(found.pop().start, shifts[0].end, shifts[0].people)
            found.append(whole)
            shifts = shifts[1:]
        found += shifts
    first = bisect_right(found, a, key=_start) - 1
    cut = found[first : bisect_left(found, b, key=_start)]
    cut[0] = Shift(a, cut[0].end, cut[0].people)
    cut[-1] = Shift(cut[-1].start, b, cut[-1].people)
    return cut


def change_after(schedule: Schedule, t: datetime, end: datetime) -> datetime | None:
    """The first instant between `t` and `end` at which other people are on call."""
    people = stretch_at(schedule, t).people
    for number in range(_number(t), _number(end - INSTANT) + 1):
        for shift in _block(schedule, number).shifts:
            if shift.people != people and shift.end > t:
                return shift.start if shift.start < end else None
    return None


def change_before(schedule: Schedule, t: datetime, start: datetime) -> datetime | None:
    """The last instant between `start` and `t` until which other people were on call."""
    people = stretch_at(schedule, t).people
    for number in range(_number(t), _number(start) - 1, -1):
        for shift in reversed(_block(schedule, number).shifts):
            if shift.people != people and shift.end <= t:
                return shift.end if shift.end > start else None
    return None


def _number(t: datetime) -> int:
    return (t - FIRST_INSTANT) // BLOCK


def _block(schedule: Schedule, number: int) -> Block:
    kept = schedule.worked_out
    known = kept.get(number)
    if known is not None:
        return cast("Block", known)
    a = FIRST_INSTANT + number * BLOCK
    base = base_stretches(schedule, a, min(a + BLOCK, LAST_INSTANT))
    stretches = apply_overrides(schedule.overrides, base)
    block = Block(stretches, [stretch.start for stretch in stretches], list(_joined(stretches)))
    with _KEEPING:
        if len(kept) >= MOST_BLOCKS:
            del kept[next(iter(kept))]
        kept[number] = block
    return block


def _joined(stretches: list[Stretch]) -> Iterator[Shift]:
    """Neighbours with the same people as one shift."""
    start, people = stretches[0].start, stretches[0].people
    for stretch in stretches:
        if stretch.people != people:
            yield Shift(start, stretch.start, people)
            start, people = stretch.start, stretch.people
    yield Shift(start, stretches[-1].end, people)


def _start(shift: Shift) -> datetime:
    return shift.start
