"""The database is locked, cut off or at odds with itself: what waits, what is done again, what is let go."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable
from datetime import timedelta

import asyncpg
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from engine import db
from engine.db import Database, Tx, upsert
from engine.models import ORG
from engine.schema import counters
from tests.servers import run_on_server

PATIENCE = 20  # seconds that a test waits at most


def count(tx: Tx, name: str) -> sa.Executable:
    insert = upsert(tx, counters).values(org_id=ORG, name=name, value=1)
    return insert.on_conflict_do_update(
        index_elements=["org_id", "name"], set_={"value": counters.c.value + 1}
    )


async def count_up(database: Database, names: Iterable[str], pause: asyncio.Barrier | None = None) -> None:
    """One unit that takes the rows in this order; `pause` lets another take its first one meanwhile."""
    waited = False

    async def unit(tx: Tx) -> None:
        nonlocal waited
        for name in names:
            await tx.execute(count(tx, name))
            if pause is not None and not waited:
                waited = True
                await pause.wait()

    await database.write(unit)


async def values(database: Database) -> dict[str, int]:
    async with database.snapshot() as tx:
        return {row.name: row.value for row in await tx.execute(sa.select(counters.c.name, counters.c.value))}


async def test_a_file_that_is_locked_for_a_while_is_waited_for(sqlite_url: str) -> None:
    """Another process writes for a moment: the unit waits for it and is stored (F-12, B114)."""
    database = Database(sqlite_url)
    await count_up(database, ["a"])
    other = sqlite3.connect(str(make_url(sqlite_url).database), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(count_up(database, ["a"]))
    asyncio.get_running_loop().call_later(0.3, other.execute, "COMMIT")
    await asyncio.wait_for(writing, PATIENCE)
    other.close()
    assert await values(database) == {"a": 2}
    await database.close()


async def test_of_two_units_in_a_deadlock_both_are_done_once(postgresql_url: str) -> None:
    """PostgreSQL ends one of them; it is run again, whole, and neither is lost or doubled (F-16)."""
    database = Database(postgresql_url)
    await count_up(database, ["a", "b"])
    both = asyncio.Barrier(2)
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(count_up(database, ["a", "b"], both), count_up(database, ["b", "a"], both))
    assert await values(database) == {"a": 3, "b": 3}
    await database.close()


async def test_a_server_that_cut_every_connection_is_asked_again(
    postgresql_url: str, postgresql_server: str
) -> None:
    """The next request of each kind works: dead connections are noticed before they are used (B116)."""
    database = Database(postgresql_url)
    await asyncio.gather(*(count_up(database, [f"k{n}"]) for n in range(5)))
    name = make_url(postgresql_url).database
    cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"  # noqa: S608  # ours
    await run_on_server(postgresql_server, cut)
    await count_up(database, ["a"])
    assert len(await values(database)) == 6
    await database.close()


async def test_a_worker_that_hangs_in_a_transaction_loses_its_locks(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that stalls with a row locked keeps the others from it for a bounded time (B115)."""
    monkeypatch.setattr(db, "IDLE_TIMEOUT", timedelta(milliseconds=300))
    stuck, database = Database(postgresql_url), Database(postgresql_url)
    holding, never = asyncio.Event(), asyncio.Event()

    async def unit(tx: Tx) -> None:
        await tx.execute(count(tx, "a"))
        holding.set()
        await never.wait()
        await tx.execute(count(tx, "a"))

    stalled = asyncio.create_task(stuck.write(unit))
    await asyncio.wait_for(holding.wait(), PATIENCE)
    await asyncio.wait_for(count_up(database, ["a"]), PATIENCE)
    assert await values(database) == {"a": 1}
    never.set()  # it wakes up, finds its transaction gone, and does it again
    await asyncio.wait_for(asyncio.gather(stalled, return_exceptions=True), PATIENCE)
    assert (await values(database))["a"] in {1, 3}
    for one in (stuck, database):
        await one.close()


async def test_the_locks_of_a_killed_process_are_free_at_once(postgresql_url: str) -> None:
    """Its connection ends with it, and so does its transaction (B115)."""
    database = Database(postgresql_url)
    await count_up(database, ["a"])
    dsn = make_url(postgresql_url)
    killed = await asyncpg.connect(
        user=dsn.username,
        password=dsn.password or None,
        host=dsn.query.get("host") or dsn.host,
        port=dsn.port,
        database=dsn.database,
    )
    await killed.execute("BEGIN")
    await killed.execute("UPDATE counters SET value = 100")
    writing = asyncio.create_task(count_up(database, ["a"]))
    killed._transport.abort()  # as the system does to the sockets of a killed process
    await asyncio.wait_for(writing, PATIENCE)
    assert await values(database) == {"a": 2}
    await database.close()
