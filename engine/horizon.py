"""What a worker knows by heart: the timers that are due or soon will be, of every lane.

One look a second for all lanes, sooner after a nudge, in slices: memory does not grow with what is
pending. Never works a timer, and is never sure: whoever works one asks the row.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.clock import Clock, monotonic
from engine.db import Database
from engine.errors import Unavailable
from engine.models import LaneName, Timer
from engine.store import timers
from engine.store.timers import LANE_OF, Place, beginnings

log = structlog.get_logger(__name__)

LOOK_EVERY: Final = timedelta(seconds=1)
AHEAD: Final = timedelta(seconds=3)  # known so long before they are due: a look may be slow, or be missed
SLICE: Final = 150  # timers of a queue in one look: while it is taken in nothing else is worked
MARGIN: Final = timedelta(milliseconds=150)  # read on so long before the end of what is known
APART: Final = timedelta(milliseconds=5)  # looks: a storm of nudges is one look
AGAIN: Final = timedelta(milliseconds=50)
BACK_OFF: Final = timedelta(seconds=1)  # after the database failed us


class Known:
    """The timers of one lane that were seen in SQL and not worked yet."""

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self._heap: list[tuple[datetime, int, int]] = []  # when, which, in which revision
        self._timers: dict[int, Timer] = {}
        self._in_hand: dict[int, int] = {}  # revisions of what is being worked
        self._worked: dict[int, int] = {}  # since the present look began: it may have seen them still

    def __len__(self) -> int:
        return len(self._timers)

    def learn(self, timer: Timer) -> None:
        known = self._timers.get(timer.id)
        seen = (known.rev if known else None, self._in_hand.get(timer.id), self._worked.get(timer.id))
        if timer.rev not in seen:
            self._timers[timer.id] = timer
            heapq.heappush(self._heap, (timer.due_at, timer.id, timer.rev))

    def take(self, now: datetime, room: int) -> list[Timer]:
        """What is due, by rank and then the oldest first; it is in hand until it is `put_down`."""
        due: list[Timer] = []
        while self.next_due is not None and self.next_due <= now:
            due.append(self._timers.pop(heapq.heappop(self._heap)[1]))
        due.sort(key=lambda timer: (timer.rank, timer.due_at, timer.id))
        for timer in due[room:]:
            self.learn(timer)
        taken = due[:room]
        self._in_hand |= {timer.id: timer.rev for timer in taken}
        return taken

    def put_down(self, taken: Iterable[Timer]) -> None:
        """Worked, or not: what is still due is learned anew."""
        for timer in taken:
            self._in_hand.pop(timer.id, None)
            self._worked[timer.id] = timer.rev

    def put_back(self, taken: Iterable[Timer]) -> None:
        """Nobody knows what became of them: take them again."""
        for timer in taken:
            self._in_hand.pop(timer.id, None)
            self.learn(timer)

    def look_begins(self) -> None:
        self._worked.clear()

    @property
    def next_due(self) -> datetime | None:
        while self._heap:
            due_at, one, rev = self._heap[0]
            if one in self._timers and self._timers[one].rev == rev:
                return due_at
            heapq.heappop(self._heap)  # it was armed again for another time
        return None


class Horizon:
    """Reads the near future of all lanes; the lanes are woken by what it finds."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self.lanes: dict[LaneName, Known] = {}
        self._unread: tuple[Place, ...] = ()  # where queues go on that had more than a slice
        self._nudged = False
        self._woken = asyncio.Event()
        self._stopping = False
        self._full_look_at = monotonic()
        self.ticked_at = monotonic()

    def lane(self, name: LaneName) -> Known:
        return self.lanes.setdefault(name, Known())

    def wake(self) -> None:
        self._nudged = True
        self._woken.set()
        for known in self.lanes.values():  # one may wait for room, and not for the time
            known.woken.set()

    def look_soon(self) -> None:
        """Something that is due was not taken: see in a moment whether it still is."""
        self._full_look_at = min(self._full_look_at, monotonic() + AGAIN.total_seconds())
        self._woken.set()

    def read_on(self) -> None:
        """There is room for more again."""
        if self._further():
            self._woken.set()

    def stop(self) -> None:
        self._stopping = True
        self._woken.set()

    async def run(self) -> None:
        """Until stopped: look, and sleep until a nudge, the end of what is known, or a second."""
        while not self._stopping:
            # Why before the look: a nudge that comes meanwhile must make us look again.
            self._woken.clear()
            try:
                await self._look()
                self.ticked_at = monotonic()
                wait = self._until_next()
            except Unavailable:
                wait = BACK_OFF
            except Exception:
                log.exception("horizon.look_failed")
                wait = BACK_OFF
            await asyncio.sleep(APART.total_seconds())
            await self._sleep(wait - APART)

    async def _look(self) -> None:
        nudged, self._nudged = self._nudged, False
        if monotonic() >= self._full_look_at:
            self._full_look_at = monotonic() + LOOK_EVERY.total_seconds()
            self._unread = await self._read(beginnings(self.lanes))
        elif nudged:
            self._unread = _further_on(self._unread, await self._read(beginnings(self.lanes)))
        # Why not instead: under steady nudges the rest of a long queue would never be read.
        if further := self._further():
            read = {(place.lane, place.rank) for place in further}
            others = [place for place in self._unread if (place.lane, place.rank) not in read]
            self._unread = (*others, *await self._read(further))

    async def _read(self, places: Sequence[Place]) -> tuple[Place, ...]:
        """Learn a slice of each queue; returns where those go on that have more."""
        now = self._clock.now()
        for known in self.lanes.values():
            known.look_begins()
        async with self._database.look() as tx:
            found, unread = await timers.near(tx, places, now, now + AHEAD, SLICE)
        for timer in found:
            self.lanes[LANE_OF[timer.kind]].learn(timer)
        for known in self.lanes.values():
            if known.next_due is not None:
                known.woken.set()
        return unread

    def _further(self) -> list[Place]:
        """Queues to read on in now: what is known of them ends soon, and is not much."""
        soon = self._clock.now() + MARGIN
        return [place for place in self._unread if place.due_at <= soon and self._has_room(place)]

    def _has_room(self, place: Place) -> bool:
        return len(self.lanes[place.lane]) <= SLICE

    def _until_next(self) -> timedelta:
        waits = [timedelta(seconds=self._full_look_at - monotonic())]
        now = self._clock.now()
        waits += [place.due_at - MARGIN - now for place in self._unread if self._has_room(place)]
        return min(waits)

    async def _sleep(self, wait: timedelta) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, wait.total_seconds())):
                await self._woken.wait()


def _further_on(before: Sequence[Place], now: Sequence[Place]) -> tuple[Place, ...]:
    """Where to read on in each queue after its beginning was read again: never behind where we were."""
    were = {(place.lane, place.rank): place for place in before}
    return tuple(
        max(place, were.get((place.lane, place.rank), place), key=lambda one: (one.due_at, one.id))
        for place in now
    )
