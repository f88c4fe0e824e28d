"""Midwatch: its own lane, its own statement to arm, one transaction for a batch of effects."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import sqlalchemy as sa

from engine.clock import SystemClock
from engine.crew import Crew
from engine.db import Database, Tx, any_of, given, given_list
from engine.horizon import Horizon
from engine.migrate import upgrade
from engine.models import ORG, LaneName, Timer, TimerKind
from engine.nudge import Nudge
from engine.schema import timers as table
from engine.store import timers
from engine.store.timers import Arming
from engine.worker import Lane, Worker
from tests.bench.peers.peer import Due, chunks

effects = sa.table("effects", sa.column("id", sa.BigInteger))
_MINE = (
    sa.select(table.c.id)
    .where(any_of(table.c.id, given_list("ids", table.c.id)), table.c.due_at <= given("now", table.c.due_at))
    .order_by(table.c.id)
    .with_for_update(skip_locked=True)
    .cte("mine")
)
_GONE = (
    sa.delete(table).where(table.c.id.in_(sa.select(_MINE.c.id))).returning(table.c.subject_id).cte("gone")
)
_WORK = sa.insert(effects).from_select(["id"], sa.select(_GONE.c.subject_id))


class Effect:
    """Finishes what is still there and due, and writes its effects, in one transaction."""

    def __init__(self, database: Database, clock: SystemClock) -> None:
        self._database = database
        self._clock = clock

    async def handle(self, due: Sequence[Timer]) -> int:
        ids = [timer.id for timer in due]
        now = self._clock.now()

        async def unit(tx: Tx) -> int:
            return (await tx.execute(_WORK, {"ids": ids, "now": now})).rowcount

        return await self._database.write(unit)


class Midwatch:
    name = "Midwatch"
    settings = "as it is"
    pending = 1_000_000
    steady = 1_000
    in_batches = True
    shares = True
    heals_s = 2.0
    armed = "SELECT subject_id, due_at / 1e6 FROM timers"
    copy = """
        INSERT INTO timers (org_id, kind, lane, subject_id, due_at, rank, epoch, rev, attempt)
        SELECT org_id, kind, lane, -n, (extract(epoch FROM now()) + 2592000) * 1000000 + n, rank, 1, 1, 0
        FROM (SELECT * FROM timers LIMIT 1) AS one, generate_series(1, $1::bigint) AS n
    """

    async def install(self, url: str) -> None:
        self._database = Database(url)
        self._nudge = Nudge(self._database)
        await upgrade(self._database)
        await self._nudge.start()

    async def arm(self, due: Sequence[Due], batch: int) -> None:
        for some in chunks(due, batch):
            armings = [
                Arming(TimerKind.ESCALATE, one.id, datetime.fromtimestamp(one.at, UTC)) for one in some
            ]
            await self._database.write(lambda tx, armings=armings: timers.arm(tx, ORG, armings))  # type: ignore[misc]  # mypy cannot see the default
            self._nudge()

    async def close(self) -> None:
        await self._nudge.stop()
        await self._database.close()

    def work(self, url: str, ready: Callable[[], None]) -> None:
        asyncio.run(self._work(url, ready))

    async def _work(self, url: str, ready: Callable[[], None]) -> None:
        database, clock = Database(url), SystemClock()
        crew = Crew(database, clock, str(os.getpid()))
        horizon, nudge = Horizon(database, clock, crew), Nudge(database)
        lane = Lane(LaneName.FATE, Effect(database, clock), horizon, database, clock)
        worker = Worker([lane], horizon, nothing_flies)
        nudge.subscribe(worker.wake)
        await nudge.start()
        await worker.start()
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        ready()
        await stop.wait()
        await worker.stop()


async def nothing_flies() -> None: ...


PEER = Midwatch()
