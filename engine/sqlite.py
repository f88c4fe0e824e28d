"""A connection to SQLite: each statement is one trip to its thread, and brings its rows along.

aiosqlite makes four trips, for the cursor, the statement, the rows and the end of the cursor. A trip costs
more than most statements do: two thirds of the time of an answer were trips. Knows no table.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import aiosqlite


class Connection(aiosqlite.Connection):
    """What SQLAlchemy's driver asks of a connection, with cursors of ours."""

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, iter_chunk_size=1)
        self._thread.daemon = True  # or one that nobody closed would keep the process from ending
        self._under_way = False  # whoever was cancelled has left work behind: it goes on in the thread

    def cursor(self) -> Cursor:  # type: ignore[override]  # theirs makes a trip to be made
        return Cursor(self)

    async def commit(self) -> None:
        if self._may_hold:
            await super().commit()

    async def rollback(self) -> None:
        if self._may_hold:
            await super().rollback()

    @property
    def _may_hold(self) -> bool:
        """A BEGIN that nobody waits for any more is not seen yet, and must be ended all the same."""
        return self._under_way or self.in_transaction

    async def run(self, work: Callable[[sqlite3.Connection], sqlite3.Cursor]) -> sqlite3.Cursor:
        """Do `work` in the thread of the connection."""
        self._under_way = True
        try:
            done: sqlite3.Cursor = await self._execute(work, self._conn)  # type: ignore[no-untyped-call]  # theirs
        except sqlite3.Error:
            self._under_way = False
            raise
        self._under_way = False
        return done


class Cursor:
    """One statement and its rows, which are all read with it: who holds a cursor holds no lock."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows: Sequence[Any] = ()
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    async def __aenter__(self) -> Self:
        return self

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Self:
        def work(connection: sqlite3.Connection) -> sqlite3.Cursor:
            cursor = connection.execute(sql, parameters)
            self._rows = cursor.fetchall() if cursor.description else ()
            return cursor

        return await self._run(work)

    async def executemany(self, sql: str, parameters: Iterable[Sequence[Any]]) -> Self:
        return await self._run(lambda connection: connection.executemany(sql, parameters))

    async def fetchall(self) -> Sequence[Any]:
        rows, self._rows = self._rows, ()
        return rows

    async def close(self) -> None:
        self._rows = ()

    async def _run(self, work: Callable[[sqlite3.Connection], sqlite3.Cursor]) -> Self:
        done = await self._connection.run(work)
        self.description, self.rowcount, self.lastrowid = done.description, done.rowcount, done.lastrowid
        return self


async def connect(path: str) -> Connection:
    # Why no level: the driver's own transactions begin after the first read, and lose updates.
    connection = Connection(lambda: sqlite3.connect(path, isolation_level=None))
    await connection
    return connection
