"""PgQueuer: a job is a timer by `execute_after`; its heartbeats tell who is dead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from time import time

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from tests.bench.peers.peer import EFFECT, Due, chunks

BATCH = 100
CONNECTIONS = 10  # for the effects
HEARTBEAT = timedelta(seconds=30)


class Pgqueuer:
    name = "PgQueuer"
    settings = (
        f"uvloop, one connection for the queue and {CONNECTIONS} for the effects, batch_size {BATCH}, "
        "`pgq autovac`, durable, heartbeat 30 s"
    )
    pending = 1_000_000
    steady = 1_000
    in_batches = True
    shares = True
    heals_s = HEARTBEAT.total_seconds()
    armed = """
        SELECT convert_from(payload, 'UTF8')::bigint, extract(epoch FROM execute_after)::float8 FROM pgqueuer
    """
    copy = """
        INSERT INTO pgqueuer (priority, status, entrypoint, payload, execute_after)
        SELECT priority, 'queued', entrypoint, (-n)::text::bytea, now() + interval '30 days'
        FROM (SELECT * FROM pgqueuer LIMIT 1) AS one, generate_series(1, $1::bigint) AS n
    """

    async def install(self, url: str) -> None:
        self._connection = await asyncpg.connect(url)
        self._queries = Queries(AsyncpgDriver(self._connection))
        await self._queries.install()
        await self._connection.execute(self._queries.qbe.build_optimize_autovacuum_query())

    async def arm(self, due: Sequence[Due], batch: int) -> None:
        for some in chunks(due, batch):
            now = time()
            count = len(some)
            await self._queries.enqueue(
                ["fire"] * count,
                [str(one.id).encode() for one in some],
                [0] * count,
                [timedelta(seconds=one.at - now) for one in some],
            )

    async def close(self) -> None:
        await self._connection.close()

    def work(self, url: str, ready: Callable[[], None]) -> None:
        uvloop.run(self._work(url, ready))

    async def _work(self, url: str, ready: Callable[[], None]) -> None:
        pool = await asyncpg.create_pool(url, min_size=CONNECTIONS, max_size=CONNECTIONS)
        queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(url)))

        @queue.entrypoint("fire")
        async def fire(job: Job) -> None:
            assert job.payload is not None
            await pool.execute(f"{EFFECT} ($1)", int(job.payload))

        ready()
        await queue.run(batch_size=BATCH, heartbeat_timeout=HEARTBEAT)


PEER = Pgqueuer()
