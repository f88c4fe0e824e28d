"""Looks every few seconds at what the other processes mean for this one: the schema, and the workers.

A newer version may have migrated the schema to what this one must not work on: then it retires.
And a process that accepts alerts says so loudly when nobody works them. Never works a timer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

import structlog

from bot.outcry import Outcry
from engine import metrics
from engine.clock import Clock, monotonic
from engine.db import Database, Tx, Writer
from engine.errors import Unavailable
from engine.migrate import Standing, standing
from engine.models import ORG
from engine.pulse import SILENT
from engine.store import marks

log = structlog.get_logger(__name__)

EVERY: Final = timedelta(seconds=5)
TICK_EVERY: Final = timedelta(seconds=10)


class Lookout:
    """`start` begins it; `once` is one look.

    `working` says whether this process has a worker whose loops all go round, and is None in one
    that has no worker. `retire` ends the work of this process, which stays up to say why.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        outcry: Outcry,
        retire: Callable[[str], Awaitable[None]],
        working: Callable[[], bool] | None,
        *,
        every: timedelta = EVERY,
    ) -> None:
        self._database = database
        self._clock = clock
        self._outcry = outcry
        self._retire = retire
        self._working = working
        self._every = every
        self._task: asyncio.Task[None] | None = None
        self._seen: datetime | None = None  # the last tick, by the clock of the worker that left it
        self._moved_at = monotonic()  # when that was another one
        self.blind = False  # the last look failed
        self._left_at: float | None = None  # when this process left a tick
        self.ticked_at = monotonic()
        self.retired = ""  # why this process does nothing any more

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="lookout")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    @property
    def silent(self) -> timedelta | None:
        """For how long no worker anywhere has ticked, if that is too long and we could look."""
        if self.blind:
            return None
        # Why by our own clock: clocks of hosts differ, and a tick is a tick whatever time it names.
        quiet = timedelta(seconds=monotonic() - self._moved_at)
        return quiet if quiet > SILENT else None

    async def once(self) -> None:
        waits_anew, self.blind = self.blind, True
        found, last = await self._look()
        self.blind = False
        if not found.allowed:
            await self._end(found)
            return
        # Why anew after a look that failed: a worker was without the database just as we were.
        if waits_anew or last != self._seen:
            self._seen, self._moved_at = last, monotonic()
        metrics.worker_silent_seconds.set(monotonic() - self._moved_at)
        if self._working is not None:
            if self._working() and self._due():
                await self.tick()
        elif self.silent is not None:
            # Why not a delivery: it would wait for the very worker that is missing.
            await self._outcry.say(
                "no_worker",
                f"No Midwatch worker has ticked for {self.silent.total_seconds():.0f} s: alerts are accepted "
                "and nobody is paged. Start one: midwatch run --only worker",
            )

    async def _look(self) -> tuple[Standing, datetime | None]:
        async with self._database.snapshot() as tx:
            return await standing(tx), await marks.last_tick(tx, ORG)

    async def _end(self, found: Standing) -> None:
        self.retired = found.refusal
        log.error("schema.too_new", revision=found.revision)
        try:
            await self._retire(found.refusal)
        finally:
            await self._outcry.say("schema_too_new", found.refusal)

    def _due(self) -> bool:
        return self._left_at is None or monotonic() - self._left_at >= TICK_EVERY.total_seconds()

    async def tick(self) -> None:
        """Leave word that a worker is here, and works."""
        now = self._clock.now()

        async def unit(tx: Tx) -> None:
            await marks.tick(tx, ORG, now)

        await self._database.write(unit, rank=Writer.CARD)
        self._left_at = monotonic()

    async def _run(self) -> None:
        while not self.retired:
            try:
                await self.once()
                self.ticked_at = monotonic()
            except Unavailable:  # the database is away; that is said elsewhere
                pass
            except Exception:
                log.exception("lookout.failed")
            await asyncio.sleep(self._every.total_seconds())
