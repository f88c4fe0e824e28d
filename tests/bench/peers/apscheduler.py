"""APScheduler 3: a job with a date trigger in its SQLAlchemy job store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from psycopg_pool import ConnectionPool
from sqlalchemy.engine import make_url

from tests.bench.peers.peer import EFFECT, Due

THREADS = 20
_effects: list[ConnectionPool] = []  # of this process: a job is stored by the name of its function


def fire(number: int) -> None:
    with _effects[0].connection() as connection:
        connection.execute(f"{EFFECT} (%s)", (number,))


def _scheduler(url: str) -> BackgroundScheduler:
    store = SQLAlchemyJobStore(make_url(url).set(drivername="postgresql+psycopg"))
    return BackgroundScheduler(
        jobstores={"default": store},
        executors={"default": ThreadPoolExecutor(THREADS)},
        # Without it a job that is a second late is dropped, with a line in the log.
        job_defaults={"misfire_grace_time": None},
        timezone=UTC,
    )


class APScheduler:
    name = "APScheduler 3"
    settings = f"SQLAlchemyJobStore on psycopg, {THREADS} threads, misfire_grace_time None"
    pending = 1_000_000
    steady = 200
    in_batches = False
    shares = False
    heals_s = 5.0
    armed = "SELECT id::bigint, next_run_time FROM apscheduler_jobs"
    copy = """
        INSERT INTO apscheduler_jobs (id, next_run_time, job_state)
        SELECT (-n)::text, extract(epoch FROM now()) + 2592000 + n * 0.01, job_state
        FROM (SELECT * FROM apscheduler_jobs LIMIT 1) AS one, generate_series(1, $1::bigint) AS n
    """

    async def install(self, url: str) -> None:
        self._arming = _scheduler(url)
        self._arming.start(paused=True)

    async def arm(self, due: Sequence[Due], batch: int) -> None:
        for one in due:
            when = datetime.fromtimestamp(one.at, UTC)
            self._arming.add_job(fire, "date", run_date=when, args=[one.id], id=str(one.id))

    async def close(self) -> None:
        # Why not before: a paused scheduler that is shut down submits what is due to executors that
        # are gone, and removes it.
        self._arming.shutdown()

    def work(self, url: str, ready: Callable[[], None]) -> None:
        _effects.append(ConnectionPool(url, min_size=THREADS, max_size=THREADS, open=True))
        _scheduler(url).start()
        ready()
        threading.Event().wait()


PEER = APScheduler()
