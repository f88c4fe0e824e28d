"""A newer version has migrated the schema: who may go on, who may not, and that nobody goes back."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from engine import migrate, schema
from engine.db import Database
from engine.errors import MidwatchError, Unavailable
from engine.migrate import generation, look, newest, upgrade
from tests.store.test_migrations import empty_postgresql_url, empty_url, migrated

__all__ = ["empty_postgresql_url", "empty_url", "migrated"]

FUTURE = "9999"


async def made_newer(database: Database, oldest: int) -> None:
    """As a release of the future leaves the schema: a revision that nobody here knows, and its mark."""
    async with database.writer_engine.begin() as tx:
        await tx.execute(sa.text("UPDATE alembic_version SET version_num = :it"), {"it": FUTURE})
        await tx.execute(sa.update(schema.schema_mark).values(revision=FUTURE, oldest=oldest))


async def test_each_migration_writes_the_mark(migrated: Database) -> None:
    """The mark names the newest revision, and lets its own version work."""
    async with migrated.snapshot() as tx:
        row = (await tx.execute(sa.select(schema.schema_mark))).one()
    assert row.revision == newest()
    assert row.oldest <= generation()


async def test_an_older_version_goes_on_above_the_mark(migrated: Database) -> None:
    """A newer schema that allows it is worked on as it is: nothing is migrated, nothing taken back (F-20)."""
    await made_newer(migrated, oldest=generation())
    found = await look(migrated)
    assert (found.newer, found.allowed, found.current) == (True, True, True)
    assert await upgrade(migrated) == (FUTURE, FUTURE)
    assert await migrate.current(migrated) == FUTURE


async def test_an_older_version_stops_below_the_mark(migrated: Database) -> None:
    """It does not start, does not migrate, and says what to do (F-20)."""
    await made_newer(migrated, oldest=generation() + 1)
    with pytest.raises(MidwatchError, match=rf"revision {FUTURE}.*Upgrade Midwatch here"):
        await upgrade(migrated)
    assert not (await look(migrated)).current
    assert await migrate.current(migrated) == FUTURE


async def test_a_barred_process_writes_nothing_more(migrated: Database) -> None:
    """Whatever still wants to write is told to come back: to another process."""
    migrated.bar()

    async def unit(tx: sa.ext.asyncio.AsyncConnection) -> None:
        raise AssertionError("it must not come to this")

    with pytest.raises(Unavailable):
        await migrated.write(unit)
