"""Arithmetic of half-open intervals: what is left of one, and its halves.

Pure. Never says who is on call in them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from engine.schedule.spans import join, without

WORTH_HALVING: Final = timedelta(hours=1)
GRAIN: Final = timedelta(minutes=15)  # people hand over at a quarter past, not at seven minutes past


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """From `start` up to `end`, half open."""

    start: datetime
    end: datetime

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    def within(self, other: Part) -> Part | None:
        """What of it lies in the other."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return Part(start, end) if start < end else None


def rest(whole: Part, taken: Iterable[Part]) -> tuple[Part, ...]:
    """What of `whole` nobody has taken, in order, each stretch as long as can be."""
    gone = join((one.start, one.end) for one in taken)
    return tuple(Part(start, end) for start, end in without([(whole.start, whole.end)], gone))


def halves(part: Part) -> tuple[Part, Part] | None:
    """Its two halves, at a quarter of an hour; None for what is too short to be shared."""
    if part.length < WORTH_HALVING:
        return None
    middle = part.start + part.length / 2
    past = timedelta(seconds=middle.timestamp() % GRAIN.total_seconds())
    middle -= past if past < GRAIN / 2 else past - GRAIN
    return Part(part.start, middle), Part(middle, part.end)
