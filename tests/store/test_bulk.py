"""Many rows in one statement: what goes in comes out, of every type, on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from engine.bulk import Insert, ReturningInsert, insert_many, update_many
from engine.db import Database, Tx
from engine.schema import Duration, Instant, Key
from tests.fakes import START

metadata = sa.MetaData()
things = sa.Table(
    "things",
    metadata,
    sa.Column("id", Key, primary_key=True),
    sa.Column("name", sa.Text, unique=True),
    sa.Column("at", Instant),
    sa.Column("lasts", Duration),
    sa.Column("body", sa.JSON(none_as_null=True)),
    sa.Column("yes", sa.Boolean),
    sa.Column("big", sa.BigInteger),
    sa.Column("usual", sa.Integer, default=7),
)
FULL = {
    "name": "\"quoted\", 'so' and \\ 😀 é",
    "at": START,
    "lasts": timedelta(seconds=3, microseconds=1),
    "body": {"list": [1, "é", None], "yes": True},
    "yes": True,
    "big": 2**62 + 1,
}
EMPTY = {"name": "123", "at": None, "lasts": None, "body": None, "yes": False, "big": -1}


def _unless_there(insert: Insert) -> ReturningInsert[Any]:
    return insert.on_conflict_do_nothing(index_elements=["name"]).returning(things.c.id, things.c.name)


@pytest.fixture
async def database(any_database_url: str) -> AsyncIterator[Database]:
    made = Database(any_database_url, pool_size=1)
    async with made.writer_engine.begin() as tx:
        await tx.run_sync(metadata.create_all)
    yield made
    await made.close()


async def rows(database: Database) -> list[dict[str, Any]]:
    async with database.snapshot() as tx:
        found = await tx.execute(sa.select(things).order_by(things.c.id))
        return [dict(row._mapping) for row in found]


async def test_every_type_comes_out_as_it_went_in(database: Database) -> None:
    """Text that looks like a number, a list in a JSON column, big integers, nothing at all."""
    lists = {**FULL, "name": "a list", "body": [[1], [2]]}
    await database.write(lambda tx: insert_many(tx, things, [FULL, EMPTY, lists]))
    found = await rows(database)
    assert [{name: row[name] for name in FULL} for row in found] == [FULL, EMPTY, lists]
    assert {row["usual"] for row in found} == {7}


@pytest.mark.parametrize("row", [FULL, EMPTY], ids=["full", "empty"])
async def test_a_column_of_one_value_has_it_in_each_row(database: Database, row: dict[str, Any]) -> None:
    """Such a column is converted once; what merely compares equal in JSON, 1 and true, stays what it is."""
    new = [{**row, "name": name, "body": {"n": body}} for name, body in (("a", 1), ("b", True), ("c", 1))]
    await database.write(lambda tx: insert_many(tx, things, new))
    found = [{name: one[name] for name in row} for one in await rows(database)]
    assert found == new
    assert [type(one["body"]["n"]) for one in found] == [int, bool, int]


async def test_rows_are_inserted_in_their_order_and_a_conflict_is_passed_over(database: Database) -> None:
    """Twelve times on one connection, with as many rows as come: the statement stays the same."""

    async def unit(tx: Tx, times: int) -> list[str]:
        new = [{**EMPTY, "name": f"{n}"} for n in range(times)]
        return [row.name for row in await insert_many(tx, things, new, _unless_there)]

    for times in range(1, 13):
        assert await database.write(lambda tx, times=times: unit(tx, times)) == [str(times - 1)]  # type: ignore[misc]  # mypy infers no type for a lambda's default
    assert [row["name"] for row in await rows(database)] == [str(n) for n in range(12)]


async def test_an_update_writes_each_row_its_own_values(database: Database) -> None:
    """Only where the condition holds; it says how many."""
    await database.write(lambda tx: insert_many(tx, things, [FULL, EMPTY]))
    new = [{"id": 1, "name": "one", "body": ["x"]}, {"id": 2, "name": "two", "body": {}}]
    for _ in range(12):
        kept = sa.text("things.big > 0")
        assert await database.write(lambda tx, kept=kept: update_many(tx, things, new, kept)) == 1  # type: ignore[misc]  # as above
    assert [(row["name"], row["body"]) for row in await rows(database)] == [("one", ["x"]), ("123", None)]
