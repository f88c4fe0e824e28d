"""A group commit for outcomes: whatever ends while one commit runs shares the next.

There is no waiting window. Never sends, and never holds one outcome up for another: what cannot share
a commit has one of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog

from engine import metrics
from engine.clock import Clock
from engine.db import Database, Writer, finish
from engine.directory import Directory
from engine.errors import LeaseLost, Unavailable
from engine.notify.record import Done, Ended, Recorded, count, record_all

log = structlog.get_logger(__name__)

RECORD_AGAIN: Final = (0.1, 0.5, 2.0)  # seconds
ALONE_AT_ONCE: Final = 3  # each has a connection while it waits, and who answers needs one too


class Recorder:
    """A batch has at most as many outcomes as are in flight: each waits for its commit."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._waiting: list[Ended] = []
        self._next: asyncio.Task[Done] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._alone_at_once = asyncio.Semaphore(ALONE_AT_ONCE)

    async def record(self, ended: Ended, known: Directory) -> Recorded:
        """Record it, however long the database is away, while the lease lasts: what is not recorded
        is sent again. Raises LeaseLost when another worker holds the timer by now."""
        for wait in RECORD_AGAIN:
            try:
                return await self._record(ended, known)
            except Unavailable:
                await asyncio.sleep(wait)
        return await self._record(ended, known)

    async def _record(self, ended: Ended, known: Directory) -> Recorded:
        done = await self._together(ended, known)
        if ended.key in done.held:
            async with self._alone_at_once:
                done = await self._write([ended], known, skip_locked=False)
        if ended.key not in done.recorded:
            metrics.leases_lost.inc()
            raise LeaseLost
        recorded = done.recorded[ended.key]
        count(recorded)
        return recorded

    async def _together(self, ended: Ended, known: Directory) -> Done:
        self._waiting.append(ended)
        if self._next is None:
            self._next = asyncio.create_task(self._commit(known), name="record")
        return await finish(self._next)

    async def _commit(self, known: Directory) -> Done:
        async with self._one_at_a_time:
            batch, self._waiting, self._next = self._waiting, [], None
            try:
                return await self._write(batch, known, skip_locked=True)
            except Unavailable:
                raise
            except Exception:
                if len(batch) == 1:
                    raise
                # One of them is poisoned; it must not cost the others their record.
                log.exception("deliver.taken_apart", records=len(batch))
                return Done({}, frozenset(one.key for one in batch))

    async def _write(self, batch: Sequence[Ended], known: Directory, *, skip_locked: bool) -> Done:
        return await self._database.write(
            lambda tx: record_all(tx, batch, known, self._clock.now(), skip_locked=skip_locked),
            rank=Writer.OUTCOME,
        )
