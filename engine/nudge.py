"""Wakes workers early: an event in this process, NOTIFY to the others on PostgreSQL.

A nudge carries no data and may be lost: it only shortens the wait, the row is the truth. Never
sent inside a transaction, where NOTIFY takes one database-wide lock until the commit.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import asyncpg
import structlog
from sqlalchemy.engine import make_url

from engine.clock import monotonic
from engine.db import Database, without_tls

log = structlog.get_logger(__name__)

CHANNEL: Final = "midwatch_timers"
AT_MOST_EVERY: Final = timedelta(milliseconds=5)
ASK_EVERY: Final = timedelta(seconds=10)  # a connection that died in silence is noticed by asking only
ANSWER_WITHIN: Final = timedelta(seconds=5)
RECONNECT: Final = (0.2, 1.0, 5.0)  # seconds, the last one for ever


class Nudge:
    """`nudge()` after a commit that armed a timer; subscribers are called in this process at once."""

    def __init__(self, database: Database) -> None:
        self._dsn = None if database.is_sqlite else _dsn(database.url)
        self._subscribers: list[Callable[[], None]] = []
        self._pending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.lost_at: float | None = None  # monotonic: since when nobody hears the other processes

    def heard_at(self) -> float:
        """When this process could last hear the others, on the monotonic clock."""
        return monotonic() if self.lost_at is None else self.lost_at

    def subscribe(self, wake: Callable[[], None]) -> None:
        self._subscribers.append(wake)

    def __call__(self) -> None:
        self._wake()
        self._pending.set()

    def _wake(self) -> None:
        for wake in self._subscribers:
            wake()

    async def start(self) -> None:
        if self._dsn is not None:
            self.lost_at = monotonic()
            self._task = asyncio.create_task(self._run(self._dsn), name="nudge")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _run(self, dsn: dict[str, Any]) -> None:
        failures = 0
        while True:
            try:
                await self._exchange(dsn)
                failures = 0
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                wait = RECONNECT[min(failures, len(RECONNECT) - 1)]
                failures += 1
                log.warning("nudge.lost", error=type(error).__name__, again_in_s=wait)
                await asyncio.sleep(wait)

    async def _exchange(self, dsn: dict[str, Any]) -> None:
        within = ANSWER_WITHIN.total_seconds()
        connection = await asyncpg.connect(**dsn, timeout=within, command_timeout=within)
        gone = asyncio.Event()

        def end(*_: object) -> None:
            gone.set()
            self._pending.set()  # or the loop below would wait for our next own nudge to notice

        connection.add_termination_listener(end)
        try:
            await connection.add_listener(CHANNEL, self._heard)
            self.lost_at = None
            self._wake()  # what was said while nobody listened
            while not gone.is_set():
                said = await self._said_within(ASK_EVERY)
                if gone.is_set():
                    break
                await connection.execute(f"NOTIFY {CHANNEL}" if said else "SELECT 1")
                await asyncio.sleep(AT_MOST_EVERY.total_seconds())
        finally:
            self.lost_at = monotonic()
            connection.terminate()

    async def _said_within(self, pause: timedelta) -> bool:
        """There is something to tell the others."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause.total_seconds()):
                await self._pending.wait()
        said = self._pending.is_set()
        self._pending.clear()
        return said

    def _heard(self, connection: Any, pid: int, _channel: str, _payload: str) -> None:
        if pid != connection.get_server_pid():
            self._wake()


def _dsn(url: str) -> dict[str, Any]:
    url, tls = without_tls(url)
    parsed = make_url(url)
    return {
        **tls,
        "user": parsed.username,
        "password": parsed.password or None,
        "host": parsed.query.get("host") or parsed.host,
        "port": parsed.port,
        "database": parsed.database,
    }
