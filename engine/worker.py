"""Claims what is due and works it; sleeps to the next deadline. Late timers fire once, in due order.

Each lane has a few kinds of timers: fates (SQL only), deliveries, cards. It works what the horizon
knows to be due. Any worker may take any due timer, so a dead one delays nothing but the sends that it
had claimed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Final, Protocol

import structlog

from engine.clock import Clock, monotonic
from engine.db import Database, Writer
from engine.errors import Unavailable
from engine.horizon import BACK_OFF, Horizon
from engine.models import LaneName, Timer
from engine.store import timers
from engine.store.due import beginnings, near

log = structlog.get_logger(__name__)

RECHECK: Final = timedelta(seconds=1)
FULL: Final = timedelta(milliseconds=20)  # until a lane without room asks again
BATCH: Final = 500
LEASE: Final = timedelta(seconds=30)
CLAIMED_AT_ONCE: Final = 16  # none waits under a lease for longer than two slow calls of the others
STOP_WITHIN: Final = timedelta(seconds=12)  # the longest send, and its record


class Handler(Protocol):
    """Works due timers. What it could not take stays due."""

    async def handle(self, due: Sequence[Timer]) -> int:
        """Returns how many timers it finished, moved or claimed."""


class Claimed(Protocol):
    """Works timers that are leased to this worker already, and finishes or postpones each."""

    async def handle(self, claimed: Sequence[Timer]) -> None: ...


class Claiming:
    """Leases due timers for a handler whose work leaves SQL."""

    def __init__(self, database: Database, clock: Clock, owner: str, handler: Claimed) -> None:
        self._database = database
        self._clock = clock
        self._owner = owner
        self._handler = handler

    async def handle(self, due: Sequence[Timer]) -> int:
        worked = 0
        for start in range(0, len(due), CLAIMED_AT_ONCE):
            worked += await self._claim(due[start : start + CLAIMED_AT_ONCE])
        return worked

    async def _claim(self, few: Sequence[Timer]) -> int:
        now = self._clock.now()
        claimed = await self._database.write(
            lambda tx: timers.claim(tx, few, self._owner, now + LEASE, now), rank=Writer.CARD
        )
        if claimed:
            await self._handler.handle(claimed)
        return len(claimed)


class Lane:
    """The timers of one lane and who works them."""

    def __init__(
        self,
        name: LaneName,
        handler: Handler,
        horizon: Horizon,
        database: Database,
        clock: Clock,
        capacity: Callable[[], int] = lambda: BATCH,
    ) -> None:
        self.name = name
        self._handler = handler
        self._horizon = horizon
        self._known = horizon.lane(name)
        self._database = database
        self._clock = clock
        self._capacity = capacity
        self._stopping = False
        self.working = asyncio.Lock()  # held while due timers are worked
        self.ticked_at = monotonic()

    def stop(self) -> None:
        self._stopping = True
        self._known.woken.set()

    async def run_due(self) -> int:
        """Work everything that is due in SQL, once each; returns how many timers moved."""
        async with self.working:
            now = self._clock.now()
            worked, unread = 0, beginnings([self.name])
            while unread and not self._stopping and self._room() > 0:
                async with self._database.look() as tx:
                    # Why `unread`: what could not be taken is paged past, so that it does not hide the rest.
                    due, unread = await near(tx, unread, now, now, self._room())
                while due and (room := self._room()) > 0:
                    worked += await self._handler.handle(due[:room])
                    due = due[room:]
            return worked

    def _room(self) -> int:
        return min(BATCH, self._capacity())

    async def run(self) -> None:
        """Until stopped: work what is due, sleep until the next deadline, a nudge or a second."""
        while not self._stopping:
            # Why before the work: a nudge that comes while we work must wake us again.
            self._known.woken.clear()
            try:
                wait = timedelta() if await self._work() else self._until_next()
                self.ticked_at = monotonic()
            except Unavailable:
                wait = BACK_OFF
            except Exception:
                log.exception("worker.lane_failed", lane=self.name)
                wait = BACK_OFF
            await self._sleep(wait)

    async def _work(self) -> int:
        """One batch of what is known to be due; returns how many timers moved."""
        async with self.working:
            taken = self._known.take(self._clock.now(), self._room())
            if not taken:
                return 0
            try:
                moved = await self._handler.handle(taken)
            except BaseException:
                self._known.put_back(taken)  # the same again, or this loop would tick between its failures
                raise
            self._known.put_down(taken)
            self._horizon.read_on()
            if moved < len(taken):
                self._horizon.look_soon()  # somebody held what is left
            return moved

    def _until_next(self) -> timedelta:
        """How long nothing of ours is due, as far as is known; never more than a second."""
        next_due = self._known.next_due
        if next_due is None:
            return RECHECK
        # What is due and has no room yet has it when something in flight ends.
        return FULL if self._room() <= 0 else min(RECHECK, next_due - self._clock.now())

    async def _sleep(self, wait: timedelta) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, wait.total_seconds())):
                await self._known.woken.wait()


class Worker:
    """All lanes of this process, and what they know of the near future."""

    def __init__(self, lanes: Sequence[Lane], horizon: Horizon, drain: Callable[[], Awaitable[None]]) -> None:
        self.lanes = tuple(lanes)
        self.horizon = horizon
        self._drain = drain
        self._tasks: list[asyncio.Task[None]] = []

    def wake(self) -> None:
        self.horizon.wake()

    async def run_due(self) -> int:
        """Everything due now, and what that makes due now, with all sends ended. For demo and tests."""
        total = 0
        while True:
            worked = 0
            for lane in self.lanes:
                worked += await lane.run_due()
                await self._drain()
            total += worked
            if not worked:
                return total

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Nothing is in flight and nothing begins: the only time at which a clock may be moved, since
        leases are measured by it."""
        async with AsyncExitStack() as stack:
            for lane in self.lanes:
                await stack.enter_async_context(lane.working)
            await self._drain()
            yield

    async def start(self) -> None:
        self._tasks = [asyncio.create_task(lane.run(), name=f"lane-{lane.name}") for lane in self.lanes]
        self._tasks.append(asyncio.create_task(self.horizon.run(), name="horizon"))
        if (crew := self.horizon.crew) is not None:
            self._tasks.append(asyncio.create_task(crew.run(), name="crew"))

    async def stop(self) -> None:
        """Take no new work, finish what is held, then leave the rest to its leases."""
        self.horizon.stop()
        for lane in self.lanes:
            lane.stop()
        if (crew := self.horizon.crew) is not None:
            crew.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_WITHIN.total_seconds())
            if crew is not None:
                await crew.leave()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_WITHIN.total_seconds()):
                await self._drain()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
