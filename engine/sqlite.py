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

    def cursor(self) -> Cursor:  # type: ignore[override]  # theirs makes a trip to be made
        return Cursor(self)

    async def commit(self) -> None:
        if self.in_transaction:
            await super().commit()

    async def rollback(self) -> None:
        if self.in_transaction:
            await super().rollback()

    async def run(self, work: Callable[[sqlite3.Connection], sqlite3.Cursor]) -> sqlite3.Cursor:
        """Do `work` in the thread of the connection."""
        done: sqlite3.Cursor = await self._execute(work, self._conn)  # type: ignore[no-untyped-call]  # theirs
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
    connection = Connection(lambda: sqlite3.connect(path))
    await connection
    return connection
