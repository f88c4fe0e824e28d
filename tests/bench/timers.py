"""Timers with a trivial effect: how late they are worked while a million are pending, and what that costs."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy import event

from bot.collector import calm_the_collector
from engine.bulk import insert_many
from engine.clock import Clock, SystemClock
from engine.db import Database, Tx, any_of, given_list
from engine.horizon import Horizon
from engine.migrate import upgrade
from engine.models import ORG, LaneName, Timer, TimerKind
from engine.nudge import Nudge
from engine.schema import timers as table
from engine.store import timers
from engine.store.timers import Arming
from engine.worker import Lane, Worker

PENDING = 1_000_000
RATES = (1_000, 5_000)  # due a second
SECONDS = 10
ARMED = 100_000  # to measure how fast
BATCH = 5_000
NEAR = 200  # timers that another process arms for now, one after the other
IDLE_S = 10.0


@dataclass(slots=True)
class Result:
    """Rates are per second, times in seconds."""

    arming: float = 0.0
    lateness: dict[int, list[float]] = field(default_factory=dict)  # by rate
    near: list[float] = field(default_factory=list)  # armed elsewhere for now, until worked here
    idle: float = 0.0  # statements a second
    grown_mb: float = 0.0  # of this process, while all that was pending


class Effect:
    """Deletes what is due and still there, and notes how late its commit was."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._awaited = 0
        self.ids: list[int] = []
        self.lateness: list[float] = []
        self._done = asyncio.Event()

    async def handle(self, due: Sequence[Timer]) -> int:
        gone = await self._database.write(lambda tx: take(tx, due))
        now = self._clock.now()
        self.lateness += [(now - timer.due_at).total_seconds() for timer in due if timer.id in gone]
        self.ids += sorted(gone)
        if len(self.ids) >= self._awaited:
            self._done.set()
        return len(gone)

    def expect(self, more: int) -> None:
        self._awaited = len(self.ids) + more
        self._done.clear()
        self.lateness = []

    async def until_done(self, seconds: float) -> list[float]:
        async with asyncio.timeout(seconds):
            await self._done.wait()
        return self.lateness


_FREE = (
    sa.select(table.c.id)
    .where(any_of(table.c.id, given_list("ids", table.c.id)))
    .order_by(table.c.id)
    .with_for_update(skip_locked=True)
    .cte("free")
)
_TAKE = sa.delete(table).where(table.c.id.in_(sa.select(_FREE.c.id))).returning(table.c.id)


async def take(tx: Tx, due: Sequence[Timer]) -> set[int]:
    """Delete those that nobody took before; two workers never take the same."""
    rows = await tx.execute(_TAKE, {"ids": sorted(timer.id for timer in due)})
    return set(rows.scalars())


async def run(url: str) -> Result:
    database, clock, result = Database(url), SystemClock(), Result()
    await upgrade(database)
    far = clock.now() + timedelta(days=30)
    began = time.perf_counter()
    await arm(database, 0, ARMED, far, timedelta(milliseconds=10))
    result.arming = ARMED / (time.perf_counter() - began)
    await fill(database, ARMED, PENDING, far)
    await settle(database)
    calm_the_collector()  # as a process of ours does when it starts
    before, first = _peak_mb(), PENDING
    async with working(database, clock) as effect:
        for rate in RATES:
            await _steadily(database, clock, effect, rate, first, result)
            first += rate * SECONDS
        if not database.is_sqlite:  # there one process does everything
            result.near = await _near(url, clock, effect, first)
        result.idle = await _idle()
    if len(set(effect.ids)) != len(effect.ids):
        raise RuntimeError("a timer was worked twice")
    result.grown_mb = _peak_mb() - before
    await database.close()
    return result


@asynccontextmanager
async def working(database: Database, clock: Clock) -> AsyncIterator[Effect]:
    """A worker with one lane, as `midwatch run` has three."""
    effect, horizon, nudge = Effect(database, clock), Horizon(database, clock), Nudge(database)
    worker = Worker([Lane(LaneName.FATE, effect, horizon, database, clock)], horizon, nothing_flies)
    nudge.subscribe(worker.wake)
    await nudge.start()
    await worker.start()
    yield effect
    await worker.stop()
    await nudge.stop()


async def nothing_flies() -> None: ...


async def _steadily(
    database: Database, clock: Clock, effect: Effect, rate: int, first: int, result: Result
) -> None:
    effect.expect(rate * SECONDS)
    start = clock.now() + timedelta(seconds=rate * SECONDS / 10_000 + 2)
    await arm(database, first, rate * SECONDS, start, timedelta(seconds=1) / rate)
    result.lateness[rate] = await effect.until_done(SECONDS + 60)


async def _near(url: str, clock: Clock, effect: Effect, first: int) -> list[float]:
    """Another process arms for now: nobody here knows of it but by the nudge."""
    other = Database(url)
    nudge = Nudge(other)
    await nudge.start()
    found = []
    for n in range(NEAR):
        effect.expect(1)
        await arm(other, first + n, 1, clock.now(), timedelta())
        nudge()
        found += await effect.until_done(10)
    await nudge.stop()
    await other.close()
    return found


async def _idle() -> float:
    """Statements a second while nothing is due."""
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        seen.append(statement)

    event.listen(sa.Engine, "before_cursor_execute", note)
    await asyncio.sleep(IDLE_S)
    event.remove(sa.Engine, "before_cursor_execute", note)
    return len(seen) / IDLE_S


async def arm(database: Database, first: int, count: int, start: datetime, apart: timedelta) -> None:
    for offset in range(0, count, BATCH):
        armings = [
            Arming(TimerKind.ESCALATE, first + n, start + n * apart)
            for n in range(offset, min(count, offset + BATCH))
        ]

        async def unit(tx: Tx, armings: list[Arming] = armings) -> None:
            await timers.arm(tx, ORG, armings)

        await database.write(unit)


async def fill(database: Database, first: int, last: int, far: datetime) -> None:
    """As many as are to be pending, faster than anybody would arm them."""
    for start in range(first, last, 4 * BATCH):
        rows = [
            {
                "org_id": ORG,
                "kind": TimerKind.ESCALATE.value,
                "lane": LaneName.FATE.value,
                "subject_id": n,
                "due_at": far + timedelta(milliseconds=10 * n),
                "epoch": 1,
                "rank": 0,
                "rev": 1,
                "attempt": 0,
            }
            for n in range(start, min(last, start + 4 * BATCH))
        ]

        async def unit(tx: Tx, rows: list[dict[str, object]] = rows) -> None:
            await insert_many(tx, table, rows)

        await database.write(unit)


async def settle(database: Database) -> None:
    """What the server does by itself after a million rows came at once, and never again."""
    async with database.writer_engine.connect() as connection:
        if database.is_sqlite:
            await connection.execute(sa.text("COMMIT"))
            await connection.execute(sa.text("PRAGMA wal_checkpoint(TRUNCATE)"))
            await connection.execute(sa.text("BEGIN"))
            return
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(sa.text("VACUUM (ANALYZE) timers"))
        await connection.execute(sa.text("CHECKPOINT"))


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
