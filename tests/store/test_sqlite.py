"""SQLite's connection: what a statement costs, and what it must not leave behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from engine.db import Database
from engine.errors import Unavailable
from engine.sqlite import Connection, connect

SELECT = sa.text("SELECT n FROM numbers ORDER BY n")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    made = Database(f"sqlite:///{tmp_path / 'numbers.sqlite3'}")
    await made.write(lambda tx: tx.execute(sa.text("CREATE TABLE numbers (n INTEGER PRIMARY KEY)")))
    await made.write(lambda tx: tx.execute(sa.text("INSERT INTO numbers VALUES (1), (2), (3)")))
    yield made
    await made.close()


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is done in the threads of connections, from now on."""
    made: list[Any] = []
    execute = Connection._execute

    async def counted(self: Connection, work: Any, *args: Any, **kwargs: Any) -> Any:
        made.append(work)
        return await execute(self, work, *args, **kwargs)  # type: ignore[no-untyped-call]  # aiosqlite's

    monkeypatch.setattr(Connection, "_execute", counted)
    return made


async def test_a_look_is_one_trip_for_each_statement(database: Database, trips: list[Any]) -> None:
    """Its rows come along, and it has no BEGIN, no end and no cursor to close."""
    async with database.look() as tx:
        assert (await tx.execute(SELECT)).scalars().all() == [1, 2, 3]
        trips.clear()
        assert (await tx.execute(SELECT)).scalars().all() == [1, 2, 3]
    assert len(trips) == 1


async def test_a_unit_is_its_statements_and_a_begin_and_a_commit(
    database: Database, trips: list[Any]
) -> None:
    """Each is one trip to SQLite's thread, and there are no others."""

    async def unit(tx: Any) -> None:
        await tx.execute(SELECT)
        await tx.execute(sa.text("DELETE FROM numbers WHERE n = 3"))

    await database.write(unit)
    assert len(trips) == 2 + 2


async def test_what_a_unit_did_is_gone_when_it_fails(database: Database) -> None:
    """The connection goes back to its pool without a transaction, and the next unit has its own."""

    async def unit(tx: Any) -> None:
        await tx.execute(sa.text("DELETE FROM numbers"))
        raise ValueError

    with pytest.raises(ValueError):
        await database.write(unit)
    async with database.snapshot() as tx:
        assert (await tx.execute(SELECT)).scalars().all() == [1, 2, 3]
    await database.write(lambda tx: tx.execute(sa.text("INSERT INTO numbers VALUES (4)")))


async def test_a_snapshot_does_not_move(database: Database) -> None:
    """What people read is of one instant, though others write between its statements; a look is not."""
    async with database.snapshot() as held, database.look() as looking:
        before = [(await tx.execute(SELECT)).scalars().all() for tx in (held, looking)]
        await database.write(lambda tx: tx.execute(sa.text("INSERT INTO numbers VALUES (4)")))
        after = [(await tx.execute(SELECT)).scalars().all() for tx in (held, looking)]
    assert before == [[1, 2, 3], [1, 2, 3]]
    assert after == [[1, 2, 3], [1, 2, 3, 4]]


@pytest.mark.parametrize("way", ["snapshot", "look"])
async def test_a_reader_writes_nothing(database: Database, way: str) -> None:
    """Its connection is made for reading only, with a transaction or without."""
    with pytest.raises(Unavailable, match="cannot store"):
        async with getattr(database, way)() as tx:
            await tx.execute(sa.text("DELETE FROM numbers"))


async def test_an_error_has_its_class_and_leaves_the_connection_usable(database: Database) -> None:
    """What SQLite refuses is SQLAlchemy's own error, and the next unit is written."""
    with pytest.raises(sa.exc.IntegrityError):
        await database.write(lambda tx: tx.execute(sa.text("INSERT INTO numbers VALUES (1)")))
    written = await database.write(
        lambda tx: tx.execute(sa.text("UPDATE numbers SET n = n + 10 WHERE n < 3 RETURNING n"))
    )
    assert sorted(written.scalars()) == [11, 12]


async def test_many_rows_are_counted(database: Database) -> None:
    """Of a statement for many rows one hears how many there were."""
    done = await database.write(
        lambda tx: tx.execute(sa.text("INSERT INTO numbers VALUES (:n)"), [{"n": n} for n in (7, 8, 9)])
    )
    assert done.rowcount == 3


async def test_whoever_is_cancelled_leaves_no_lock(database: Database) -> None:
    """(B113) Questions and units cancelled at any point: the next unit is written at once."""
    for after in range(30):
        asked = asyncio.ensure_future(_ask(database))
        for _ in range(after):
            await asyncio.sleep(0)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
    async with asyncio.timeout(1):
        await database.write(lambda tx: tx.execute(sa.text("INSERT INTO numbers VALUES (100)")))


async def _ask(database: Database) -> None:
    async with database.look() as tx:
        await tx.execute(SELECT)
    await database.write(lambda tx: tx.execute(sa.text("UPDATE numbers SET n = n")))


async def test_a_begin_that_nobody_waits_for_is_rolled_back(tmp_path: Path) -> None:
    """(V4) The thread may come to it only after its asker was cancelled; nobody is locked out by it."""
    path = str(tmp_path / "numbers.sqlite3")
    holder, cancelled = await connect(path), await connect(path)
    for connection in (holder, cancelled):
        await connection.cursor().execute("PRAGMA busy_timeout=5000")
    await holder.cursor().execute("BEGIN IMMEDIATE")
    begun = asyncio.ensure_future(cancelled.cursor().execute("BEGIN IMMEDIATE"))
    await asyncio.sleep(0)
    begun.cancel()
    await asyncio.gather(begun, return_exceptions=True)
    ended = asyncio.ensure_future(cancelled.rollback())
    await holder.rollback()
    await ended
    await cancelled.cursor().execute("SELECT 1")  # so its thread has come to all that was before
    assert not cancelled.in_transaction
    for connection in (holder, cancelled):
        await connection.close()
