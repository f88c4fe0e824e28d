"""What one lane knows by heart: timers that were seen in SQL and not worked yet.

Learned from looks, which may be stale. Never asks the database, and never loses a timer: what it does not
know, the next look does.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from engine.models import Rank, Timer
from engine.schema import EPOCH

PATIENCE: Final = timedelta(milliseconds=100)  # so long a timer is left to the worker whose share it is
FAIR: Final = timedelta(milliseconds=500)  # overdue, and it is worked in line with our own

Spot = tuple[datetime, int]  # somewhere in the queue of a rank


@dataclass(frozen=True, slots=True)
class Share:
    """Which timers this worker takes at once, of `of` workers. A wrong one costs time, never a timer."""

    index: int = 0
    of: int = 1

    def has(self, timer_id: int) -> bool:
        return self.of <= 1 or self.index_of(timer_id) == self.index

    def index_of(self, timer_id: int) -> int:
        """Whose share it is."""
        # Why not the remainder alone: an incident makes its rows in step, so every second id may be a card.
        return (timer_id * 0x9E3779B1 >> 16) % self.of


class Known:
    """Timers of our share from the moment they are seen; others once they are seen overdue."""

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self.share = Share()
        self._heap: list[tuple[datetime, int, int]] = []  # when, which, in which revision
        self._timers: dict[int, Timer] = {}
        self._in_hand: dict[int, Timer] = {}  # what is being worked
        self._worked: dict[int, int] = {}  # since the present look began: it may have seen them still
        self._doubts: set[datetime] = set()  # when to see whether others have worked theirs

    def __len__(self) -> int:
        return len(self._timers)

    def learn(self, timer: Timer, seen_at: datetime) -> None:
        """A look that began at `seen_at` found it."""
        if not self.share.has(timer.id) and seen_at < timer.due_at + PATIENCE:
            self._timers.pop(timer.id, None)  # a new time, or a new share
            self._doubts.add(_rounded_up(timer.due_at + PATIENCE))
            return
        known = self._timers.get(timer.id)
        in_hand = self._in_hand.get(timer.id)
        seen = (known.rev if known else None, in_hand.rev if in_hand else None, self._worked.get(timer.id))
        if timer.rev not in seen:
            self._know(timer)

    def _know(self, timer: Timer) -> None:
        self._timers[timer.id] = timer
        heapq.heappush(self._heap, (timer.due_at, timer.id, timer.rev))

    def forget(self, rank: Rank, after: Spot, upto: Spot, found: set[int]) -> None:
        """A look over this part of a rank's queue found these alone: the others are gone from it."""
        gone = [
            timer.id
            for timer in self._timers.values()
            if timer.rank == rank and after < (timer.due_at, timer.id) <= upto and timer.id not in found
        ]
        for one in gone:
            del self._timers[one]

    def is_behind(self, now: datetime) -> bool:
        """Is one of our own late, too? Then so may others be, and alive."""
        ours = (one for one in chain(self._timers.values(), self._in_hand.values()) if self.share.has(one.id))
        return any(one.due_at + PATIENCE <= now for one in ours)

    def take(self, now: datetime, room: int) -> list[Timer]:
        """What is due, by rank and then the oldest first; it is in hand until it is `put_down`."""
        due: list[Timer] = []
        while self.next_due is not None and self.next_due <= now:
            due.append(self._timers.pop(heapq.heappop(self._heap)[1]))
        ours = min((timer.rank for timer in due if self._in_line(timer, now)), default=max(Rank) + 1)
        # Why ours first: whoever has the others' share may be late as well, and is about to take them.
        turn = sorted(
            (timer for timer in due if timer.rank < ours or self._in_line(timer, now)),
            key=lambda timer: (timer.rank, timer.due_at, timer.id),
        )
        taken = turn[:room]
        self._in_hand |= {timer.id: timer for timer in taken}
        chosen = {timer.id for timer in taken}
        for timer in due:
            if timer.id not in chosen:
                self._know(timer)
        return taken

    def _in_line(self, timer: Timer, now: datetime) -> bool:
        return self.share.has(timer.id) or now - timer.due_at >= FAIR

    def put_down(self, taken: Iterable[Timer]) -> None:
        """Worked, or not: what is still due is learned anew."""
        for timer in taken:
            self._in_hand.pop(timer.id, None)
            self._worked[timer.id] = timer.rev

    def put_back(self, taken: Iterable[Timer]) -> None:
        """Nobody knows what became of them: take them again."""
        for timer in taken:
            self._in_hand.pop(timer.id, None)
            known = self._timers.get(timer.id)
            if known is None or known.rev < timer.rev:
                self._know(timer)

    def look_begins(self) -> None:
        self._worked.clear()

    def doubts_end(self, seen_at: datetime) -> None:
        """All that was due when this look began was seen."""
        self._doubts = {at for at in self._doubts if at > seen_at}

    @property
    def doubt_at(self) -> datetime | None:
        """When to look again, though nothing of ours is due: somebody else's timer may be left."""
        return min(self._doubts, default=None)

    @property
    def next_due(self) -> datetime | None:
        while self._heap:
            due_at, one, rev = self._heap[0]
            if one in self._timers and self._timers[one].rev == rev:
                return due_at
            heapq.heappop(self._heap)  # it was armed again for another time, or is gone
        return None


def _rounded_up(at: datetime) -> datetime:
    """So that many of them are one look."""
    return EPOCH + -(-(at - EPOCH) // PATIENCE) * PATIENCE
