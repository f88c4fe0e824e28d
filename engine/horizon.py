"""What a worker knows by heart: the timers that are due or soon will be, of every lane.

One look a second for all lanes, sooner after a nudge, in slices: memory does not grow with what is
pending. Never works a timer, and is never sure: whoever works one asks the row.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from engine.clock import Clock, monotonic
from engine.crew import Crew
from engine.db import Database
from engine.errors import Unavailable
from engine.known import PATIENCE, Known, Share
from engine.models import LaneName, Timer
from engine.store.due import Place, beginnings, near
from engine.store.timers import LANE_OF

log = structlog.get_logger(__name__)

LOOK_EVERY: Final = timedelta(seconds=1)
AHEAD: Final = timedelta(seconds=3)  # known so long before they are due: a look may be slow, or be missed
SLICE: Final = 150  # timers of a queue in one look: while it is taken in nothing else is worked
MARGIN: Final = timedelta(milliseconds=150)  # read on so long before the end of what is known
APART: Final = timedelta(milliseconds=5)  # looks: a storm of nudges is one look
AGAIN: Final = timedelta(milliseconds=50)
BACK_OFF: Final = timedelta(seconds=1)  # after the database failed us
LAST: Final = 2**63 - 1  # no id is greater
NEVER: Final = datetime.max.replace(tzinfo=UTC)


class Horizon:
    """Reads the near future of all lanes; the lanes are woken by what it finds. Without a crew all
    timers are ours."""

    def __init__(self, database: Database, clock: Clock, crew: Crew | None = None) -> None:
        self._database = database
        self._clock = clock
        self.crew = crew
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
            self._unread = await self._read_anew(AHEAD)
        elif nudged:
            self._unread = _further_on(self._unread, await self._read_anew(AHEAD))
        elif self._doubt_at() <= self._clock.now():
            await self._read_anew(timedelta())
        # Why not instead: under steady nudges the rest of a long queue would never be read.
        if further := self._further():
            read = {(place.lane, place.rank) for place in further}
            others = [place for place in self._unread if (place.lane, place.rank) not in read]
            self._unread = (*others, *await self._read(further, self._clock.now(), AHEAD))

    async def _read_anew(self, ahead: timedelta) -> tuple[Place, ...]:
        """Every queue from its beginning, so what is overdue and not ours is seen too."""
        now = self._clock.now()
        unread = await self._read(beginnings(self.lanes), now, ahead)
        for known in self.lanes.values():
            known.doubts_end(now)
        return unread

    async def _read(self, places: Sequence[Place], now: datetime, ahead: timedelta) -> tuple[Place, ...]:
        """Learn a slice of each queue; returns where those go on that have more."""
        share = self.crew.share if self.crew is not None else Share()
        for known in self.lanes.values():
            known.share = share
            known.look_begins()
        async with self._database.look() as tx:
            found, unread = await near(tx, places, now, now + ahead, SLICE)
        self._forget(places, unread, now + ahead, {timer.id for timer in found})
        for timer in found:
            self.lanes[LANE_OF[timer.kind]].learn(timer, now)
        self._miss(found, unread, now)
        for known in self.lanes.values():
            if known.next_due is not None:
                known.woken.set()
        return unread

    def _miss(self, found: Sequence[Timer], unread: Sequence[Place], now: datetime) -> None:
        """Timers that were left by whoever has their share: from now on it is shared among the others."""
        if self.crew is None or any(place.due_at + PATIENCE <= now for place in unread):
            return
        if any(known.is_behind(now) for known in self.lanes.values()):
            return
        share = self.crew.share
        left = next((one for one in found if not share.has(one.id) and one.due_at + PATIENCE <= now), None)
        if left is not None:
            self.crew.miss(share.index_of(left.id))
            self.look_soon()  # all that we left to them is ours

    def _forget(
        self, places: Sequence[Place], unread: Sequence[Place], until: datetime, found: set[int]
    ) -> None:
        """What was in the part that we have read, and is there no more: somebody else worked or moved it."""
        ends = {(place.lane, place.rank): (place.due_at, place.id) for place in unread}
        for place in places:
            upto = ends.get((place.lane, place.rank), (until, LAST))
            self.lanes[place.lane].forget(place.rank, (place.due_at, place.id), upto, found)

    def _doubt_at(self) -> datetime:
        return min((at for known in self.lanes.values() if (at := known.doubt_at)), default=NEVER)

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
        return min(*waits, self._doubt_at() - now)

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
