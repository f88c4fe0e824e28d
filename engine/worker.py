"""Claims what is due and works it; sleeps to the next deadline. Late timers fire once, in due order.

Each lane has a few kinds of timers: fates (SQL only), deliveries, cards. A lane knows the near
horizon by heart, is woken by nudges, and asks SQL each second whatever it believes. Any worker may
take any due timer, so a dead one delays nothing but the sends that it had claimed.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from typing import Final, Protocol

import structlog

from engine import metrics
from engine.clock import Clock, monotonic
from engine.db import Database, Writer
from engine.errors import Unavailable
from engine.models import LaneName, Timer
from engine.store import timers

log = structlog.get_logger(__name__)

HORIZON: Final = timedelta(seconds=60)
SLICE: Final = 2_000  # timers of the horizon read at once
RECHECK: Final = timedelta(seconds=1)
BATCH: Final = 400
LEASE: Final = timedelta(seconds=30)
CLAIMED_AT_ONCE: Final = 16  # none waits under a lease for longer than two slow calls of the others
BACK_OFF: Final = timedelta(seconds=1)  # after the database failed us
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
        database: Database,
        clock: Clock,
        capacity: Callable[[], int] = lambda: BATCH,
    ) -> None:
        self.name = name
        self._handler = handler
        self._database = database
        self._clock = clock
        self._capacity = capacity
        self._asked_at = clock.now()  # what was due then was asked for
        self._near: list[datetime] = []  # a heap of due times of the horizon, later than that
        self._known_until: datetime | None = None
        self._nudged = False  # something was armed since the horizon was read
        self._woken = asyncio.Event()
        self._stopping = False
        self.working = asyncio.Lock()  # held while due timers are worked
        self.ticked_at = monotonic()

    def wake(self) -> None:
        self._nudged = True
        self._woken.set()

    def stop(self) -> None:
        self._stopping = True
        self._woken.set()

    async def run_due(self) -> int:
        """Work everything that is due now, once each; returns how many timers moved."""
        async with self.working:
            return await self._run_due()

    async def _run_due(self) -> int:
        now = self._asked_at = self._clock.now()
        worked, after = 0, None
        while not self._stopping and (room := min(BATCH, self._capacity())) > 0:
            async with self._database.snapshot() as tx:
                due = await timers.due(tx, self.name, now, room, after)
            if not due:
                break
            # Page past what could not be taken, so that it does not hide the rest.
            after = due[-1]
            worked += await self._handler.handle(due)
        return worked

    async def run(self) -> None:
        """Until stopped: work what is due, sleep until the next deadline, a nudge or a second."""
        while not self._stopping:
            # Why before the work: a nudge that comes while we work must wake us again.
            self._woken.clear()
            try:
                await self.run_due()
                wait = await self._until_next()
                self.ticked_at = monotonic()
                metrics.loop_tick.labels(self.name).set_to_current_time()
            except Unavailable:
                wait = BACK_OFF
            except Exception:
                log.exception("worker.lane_failed", lane=self.name)
                wait = BACK_OFF
            await self._sleep(wait)

    async def _until_next(self) -> timedelta:
        """How long nothing of ours is due, as far as is known; never more than a second."""
        # Why since the last asking, not since now: what came due while we worked is late already.
        asked_at = self._asked_at
        if self._known_until is None or self._known_until < asked_at + RECHECK:
            await self._read_horizon(asked_at)
        elif self._nudged:
            # Why only the earliest: the rest of what was armed is asked for when its turn comes.
            async with self._database.snapshot() as tx:
                for due_at in await timers.upcoming(tx, self.name, asked_at, self._known_until, 1):
                    if not self._near or self._near[0] != due_at:
                        heapq.heappush(self._near, due_at)
        while self._near and self._near[0] <= asked_at:
            heapq.heappop(self._near)
        return min(RECHECK, self._near[0] - self._clock.now()) if self._near else RECHECK

    async def _read_horizon(self, start: datetime) -> None:
        end = start + HORIZON
        self._nudged = False
        async with self._database.snapshot() as tx:
            self._near = await timers.upcoming(tx, self.name, start, end, SLICE)
        self._known_until = self._near[-1] if len(self._near) == SLICE else end

    async def _sleep(self, wait: timedelta) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, wait.total_seconds())):
                await self._woken.wait()


class Worker:
    """All lanes of this process."""

    def __init__(self, lanes: Sequence[Lane], drain: Callable[[], Awaitable[None]]) -> None:
        self.lanes = tuple(lanes)
        self._drain = drain
        self._tasks: list[asyncio.Task[None]] = []

    def wake(self) -> None:
        for lane in self.lanes:
            lane.wake()

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

    async def stop(self) -> None:
        """Take no new work, finish what is held, then leave the rest to its leases."""
        for lane in self.lanes:
            lane.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_WITHIN.total_seconds())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_WITHIN.total_seconds()):
                await self._drain()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
