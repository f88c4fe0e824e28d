"""Timers: how late they are worked, with many more pending."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa

from engine import schema
from engine.clock import SystemClock
from engine.db import Database, Tx
from engine.models import ORG, LaneName, Rank, Timer, TimerKind
from engine.store import timers
from engine.store.timers import Arming
from engine.worker import Lane

PENDING = 100_000
RATE = 100  # due a second
SECONDS = 20


class Effect:
    """Finishes what is due, and notes how late it was."""

    def __init__(self, database: Database, clock: SystemClock) -> None:
        self._database = database
        self._clock = clock
        self.lateness: list[float] = []
        self.ids: list[int] = []
        self.all_done = asyncio.Event()

    async def handle(self, due: Sequence[Timer]) -> int:
        ids = [timer.id for timer in due]
        await self._database.write(lambda tx: timers.finish_all(tx, ids))
        now = self._clock.now()
        self.lateness += [(now - timer.due_at).total_seconds() for timer in due]
        self.ids += ids
        if len(self.ids) >= RATE * SECONDS:
            self.all_done.set()
        return len(due)


async def run(url: str) -> list[float]:
    """The lateness of each timer, in seconds, from its due time to the commit of its effect."""
    database, clock = Database(url), SystemClock()
    async with database.writer_engine.begin() as tx:
        await tx.run_sync(schema.metadata.create_all)
    far = clock.now() + timedelta(days=30)
    await _arm(database, 0, PENDING, far, timedelta(milliseconds=10))
    effect = Effect(database, clock)
    lane = Lane(LaneName.FATE, effect, database, clock)
    start = clock.now() + timedelta(seconds=2)
    await _arm(database, PENDING, RATE * SECONDS, start, timedelta(seconds=1) / RATE)
    running = asyncio.create_task(lane.run())
    async with asyncio.timeout(SECONDS + 30):
        await effect.all_done.wait()
    lane.stop()
    await running
    if len(set(effect.ids)) != RATE * SECONDS:
        raise RuntimeError("a timer was worked twice")
    await database.close()
    return effect.lateness


async def _arm(database: Database, first: int, count: int, start: datetime, apart: timedelta) -> None:
    for offset in range(0, count, 5_000):
        armings = [
            Arming(TimerKind.ESCALATE, first + n, start + n * apart, rank=Rank.PAGE)
            for n in range(offset, min(count, offset + 5_000))
        ]

        async def unit(tx: Tx, armings: list[Arming] = armings) -> None:
            await timers.arm(tx, ORG, armings)

        await database.write(unit)
    if not database.is_sqlite:
        async with database.writer_engine.connect() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            await connection.execute(sa.text("ANALYZE timers"))
