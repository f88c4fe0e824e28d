"""The two databases behave as one."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta, timezone

import pytest
import sqlalchemy as sa

from engine import schema
from engine.db import Database, Tx, Writer, any_of, finish, upsert
from engine.errors import Unavailable
from engine.models import ORG


async def count(database: Database) -> int:
    async with database.snapshot() as tx:
        return int(await tx.scalar(sa.select(sa.func.count()).select_from(schema.inbound)) or 0)


def remember(key: str, at: datetime) -> sa.Insert:
    return sa.insert(schema.inbound).values(org_id=ORG, source="test", external_id=key, at=at)


NOW = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)


async def test_instants_come_back_in_utc_to_the_microsecond(database: Database) -> None:
    """An instant with an offset is the same instant after a round trip (B117)."""
    west = NOW.astimezone(timezone(timedelta(hours=-8)))
    await database.write(lambda tx: tx.execute(remember("a", west)))
    async with database.snapshot() as tx:
        assert await tx.scalar(sa.select(schema.inbound.c.at)) == NOW


async def test_naive_instants_are_refused(database: Database) -> None:
    """A datetime without a zone never reaches a table."""
    with pytest.raises(sa.exc.StatementError):
        await database.write(lambda tx: tx.execute(remember("a", NOW.replace(tzinfo=None))))


async def test_a_snapshot_cannot_write(database: Database) -> None:
    """Reading for a view is read-only, and enforced."""
    with pytest.raises((sa.exc.DBAPIError, Unavailable)):
        async with database.snapshot() as tx:
            await tx.execute(remember("a", NOW))
    assert await count(database) == 0


async def test_any_of_takes_any_number_of_values(database: Database) -> None:
    """One statement text serves none, one and many values, numbers and text."""

    async def unit(tx: Tx) -> None:
        for key in ("a", "b", "c'; DROP TABLE inbound;--"):
            await tx.execute(remember(key, NOW))

    await database.write(unit)
    column = schema.inbound.c.external_id
    async with database.snapshot() as tx:
        for wanted in ([], ["a"], ["a", "b", "c'; DROP TABLE inbound;--", "nope"]) * 4:
            rows = (await tx.scalars(sa.select(column).where(any_of(column, wanted)))).all()
            assert sorted(rows) == sorted(set(wanted) - {"nope"})
        ids = await tx.scalars(sa.select(column).where(any_of(schema.inbound.c.org_id, [ORG, 7])))
        assert len(ids.all()) == 3


async def test_cancelled_units_run_to_their_end(database: Database) -> None:
    """A hundred units cancelled at random points leave a database that others can write (F-14, B113)."""
    chance = random.Random(7)

    async def unit(tx: Tx, key: str) -> None:
        await tx.execute(remember(key, NOW))
        await tx.execute(sa.select(schema.inbound.c.external_id))

    async def request(key: str) -> None:
        await database.write(lambda tx: unit(tx, key), rank=Writer.INGEST)

    tasks = [asyncio.create_task(request(f"k{n}")) for n in range(100)]
    for task in tasks:
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        task.cancel()
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    async with asyncio.timeout(1):
        await database.write(lambda tx: tx.execute(remember("after", NOW)))
    assert await count(database) >= 1


async def test_a_failing_unit_leaves_nothing(database: Database) -> None:
    """What a unit did before it failed is rolled back."""

    async def unit(tx: Tx) -> None:
        await tx.execute(remember("a", NOW))
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        await database.write(unit)
    assert await count(database) == 0


async def test_concurrent_counts_are_all_kept(database: Database) -> None:
    """Thirty concurrent read-modify-writes end at thirty."""

    async def unit(tx: Tx) -> None:
        counters = schema.counters
        statement = upsert(tx, counters).values(org_id=ORG, name="x", value=1)
        await tx.execute(
            statement.on_conflict_do_update(
                index_elements=["org_id", "name"], set_={"value": counters.c.value + 1}
            )
        )

    await asyncio.gather(*(database.write(unit) for _ in range(30)))
    async with database.snapshot() as tx:
        assert await tx.scalar(sa.select(schema.counters.c.value)) == 30


async def test_any_of_finds_rows_by_their_index(database: Database) -> None:
    """A look-up by ids reads those rows and not the table, on SQLite too."""
    if not database.is_sqlite:
        return  # PostgreSQL plans by the size of the table; the condition is the same text
    statement = sa.select(schema.incidents.c.id).where(any_of(schema.incidents.c.id, [1, 2]))
    async with database.snapshot() as tx:
        compiled = statement.compile(dialect=tx.dialect)
        plan = await tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}", ("[1, 2]",))
        assert any("SEARCH incidents" in str(row) for row in plan)


async def test_a_cancellation_is_not_lost_in_the_moment_that_a_unit_ends() -> None:
    """Whoever is cancelled once, as a loop is at the stop, hears of it though the unit has just ended."""
    unit: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    waiter = asyncio.create_task(finish(unit))
    await asyncio.sleep(0)
    unit.set_result(1)
    await asyncio.sleep(0)  # its end is on the way to the waiter
    assert unit.done()
    assert not waiter.done()
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
