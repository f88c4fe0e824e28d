"""procrastinate: a job is a timer by `schedule_at`; a periodic task takes up what a dead worker held."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from procrastinate import App, PsycopgConnector
from procrastinate.tasks import Task
from psycopg_pool import AsyncConnectionPool

from tests.bench.peers.peer import EFFECT, Due, chunks

AT_ONCE = 20
POLL_S = 0.1
DEAD_AFTER_S = 30  # its default


def _app(url: str, effects: AsyncConnectionPool | None = None) -> tuple[App, Task[Any, Any, Any]]:
    app = App(connector=PsycopgConnector(conninfo=url, min_size=4, max_size=AT_ONCE))

    @app.task(queue="fire", name="fire")
    async def fire(number: int) -> None:
        assert effects is not None
        async with effects.connection() as connection:
            await connection.execute(f"{EFFECT} (%s)", (number,))

    # The recipe of its documentation, asked each 5 seconds instead of each 10 minutes.
    @app.periodic(cron="* * * * * */5")
    @app.task(queue="fire", queueing_lock="retry_stalled_jobs", pass_context=True, name="retry_stalled")
    async def retry_stalled(context: Any, timestamp: int) -> None:
        for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=DEAD_AFTER_S):
            await app.job_manager.retry_job(job)

    return app, fire


class Procrastinate:
    name = "procrastinate"
    settings = (
        f"concurrency {AT_ONCE}, listen_notify, a poll each {POLL_S} s (what is due later notifies nobody), "
        f"finished jobs deleted, its recipe for stalled jobs each 5 s, dead after {DEAD_AFTER_S} s"
    )
    pending = 10_000
    steady = 50
    in_batches = True
    shares = True
    heals_s = DEAD_AFTER_S + 15.0
    armed = """
        SELECT (args ->> 'number')::bigint, extract(epoch FROM scheduled_at)::float8
        FROM procrastinate_jobs WHERE task_name = 'fire'
    """
    copy = """
        INSERT INTO procrastinate_jobs (queue_name, task_name, priority, args, scheduled_at)
        SELECT queue_name, task_name, priority, jsonb_build_object('number', -n), now() + interval '30 days'
        FROM (SELECT * FROM procrastinate_jobs WHERE task_name = 'fire' LIMIT 1) AS one,
             generate_series(1, $1::bigint) AS n
    """

    async def install(self, url: str) -> None:
        self._app, self._fire = _app(url)
        await self._app.open_async()
        await self._app.schema_manager.apply_schema_async()

    async def arm(self, due: Sequence[Due], batch: int) -> None:
        for some in chunks(due, batch):
            jobs = [
                self._fire.configure(schedule_at=datetime.fromtimestamp(one.at, UTC)).make_new_job(
                    number=one.id
                )
                for one in some
            ]
            await self._app.job_manager.batch_defer_jobs_async(jobs=jobs)

    async def close(self) -> None:
        await self._app.close_async()

    def work(self, url: str, ready: Callable[[], None]) -> None:
        asyncio.run(self._work(url, ready))

    async def _work(self, url: str, ready: Callable[[], None]) -> None:
        async with AsyncConnectionPool(
            url, min_size=4, max_size=AT_ONCE, kwargs={"autocommit": True}
        ) as effects:
            app, _ = _app(url, effects)
            async with app.open_async():
                ready()
                await app.run_worker_async(
                    queues=["fire"],
                    concurrency=AT_ONCE,
                    fetch_job_polling_interval=POLL_S,
                    delete_jobs="always",
                    install_signal_handlers=False,
                )


PEER = Procrastinate()
