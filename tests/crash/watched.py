"""A database that tells a trap of every boundary, and the trap that waits at the Nth of them.

What the fault does to the process (kill it, stop it) is given by whoever sets the trap; what it does
to a statement or a commit is done here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import asyncpg
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.util import await_only

import bot.app
from engine.db import Database, Tx
from engine.nudge import _dsn
from tests.crash.faults import KILLS, OTHERS, Boundaries, Fault, Killed, Kind, Point

T = TypeVar("T")
Meet = Callable[[Kind, bool], Awaitable[None]]


class Trap:
    """Waits at the Nth boundary. Once the process is dead, nothing of it goes on."""

    def __init__(self, fault: Fault, *, kill: Callable[[], None], meet: Meet) -> None:
        self.boundaries = Boundaries(fault)
        self.dead = False
        self._kill = kill
        self._meet = meet

    def check(self, point: Point, what: str) -> Kind | None:
        """The fault that happens here, if one does."""
        if self.dead:
            raise Killed(what)
        if not self.boundaries.reached(point, what):
            return None
        kind = self.boundaries.fault.kind
        if kind in KILLS:
            self.dead = True
            self._kill()
            raise Killed(what)
        return kind

    async def meet(self, kind: Kind, *, blocked: bool = False) -> None:
        """Hang, or let another worker go first. `blocked`: we hold what no other can go on without."""
        await self._meet(kind, blocked)


class Watched(Database):
    """One for all runs of a test: each engine compiles every statement anew."""

    def __init__(self, url: str, *, pool_size: int = 2) -> None:
        super().__init__(url, pool_size=pool_size)
        self.trap: Trap | None = None
        self._watch(self._writer.sync_engine, Point.STATEMENT)
        for reader in (self._reader, self._looker):
            self._watch(reader.sync_engine, Point.READ)

        @event.listens_for(self._writer.sync_engine, "commit")
        def commit(connection: sa.Connection) -> None:
            self._before(connection, Point.COMMIT, "")

    def _watch(self, engine: sa.Engine, point: Point) -> None:
        @event.listens_for(engine, "before_cursor_execute")
        def statement(connection: sa.Connection, _cursor: Any, text: str, *_: Any) -> None:
            self._before(connection, point, " ".join(text.split())[:70])

    async def _transact(self, unit: Callable[[Tx], Awaitable[T]]) -> T:
        result = await super()._transact(unit)
        kind = self.trap.check(Point.COMMITTED, "") if self.trap is not None else None
        if kind is Kind.UNHEARD:
            raise self._unheard()
        if kind in OTHERS and self.trap is not None:
            await self.trap.meet(kind)
        return result

    def _before(self, connection: sa.Connection, point: Point, what: str) -> None:
        kind = self.trap.check(point, what) if self.trap is not None else None
        if kind is Kind.REFUSED:
            raise self._refused()
        if kind is Kind.LOST:
            await_only(self._lose(connection))
        elif kind in OTHERS:
            await_only(self._meet(kind, connection, point))

    async def _meet(self, kind: Kind, connection: sa.Connection, point: Point) -> None:
        assert self.trap is not None
        holds = _in_transaction(connection)
        if holds and kind is Kind.HANG and not self.is_sqlite:
            # The server ends a transaction in which nothing has happened for ten seconds.
            await self._lose(connection)
        await self.trap.meet(kind, blocked=holds and self.is_sqlite and point is not Point.READ)

    async def _lose(self, connection: sa.Connection) -> None:
        driver: Any = connection.connection.driver_connection
        surgeon = await asyncpg.connect(**_dsn(self.url))
        try:
            await surgeon.fetchval("SELECT pg_terminate_backend($1, 5000)", driver.get_server_pid())
        finally:
            await surgeon.close()

    def _refused(self) -> DBAPIError:
        if self.is_sqlite:
            return OperationalError("", None, sqlite3.OperationalError("database is locked"))
        return OperationalError("", None, asyncpg.LockNotAvailableError("lock timeout"))

    def _unheard(self) -> DBAPIError:
        if self.is_sqlite:
            return OperationalError("", None, sqlite3.OperationalError("disk I/O error"))
        lost = asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
        return OperationalError("", None, lost, connection_invalidated=True)


def _in_transaction(connection: sa.Connection) -> bool:
    driver: Any = connection.connection.driver_connection
    return bool(driver.is_in_transaction() if hasattr(driver, "is_in_transaction") else driver.in_transaction)


@contextmanager
def instead_of_its_own(database: Database) -> Iterator[None]:
    """What is built in this block uses this database."""
    own = bot.app.__dict__["Database"]
    bot.app.__dict__["Database"] = lambda _url: database
    try:
        yield
    finally:
        bot.app.__dict__["Database"] = own
