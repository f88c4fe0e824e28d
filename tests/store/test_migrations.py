"""A migrated database is the schema: every table, index, predicate and CHECK."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from engine import migrate, schema
from engine.db import Database
from engine.errors import MidwatchError
from engine.migrate import current, is_current, newest, upgrade
from tests.servers import database_url, run_on_server


@pytest.fixture
async def empty_postgresql_url(postgresql_server: str) -> AsyncIterator[str]:
    name = f"empty_{uuid.uuid4().hex[:12]}"
    await run_on_server(postgresql_server, f'CREATE DATABASE "{name}"')
    yield database_url(postgresql_server, name)
    await run_on_server(postgresql_server, f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without any table."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/empty.sqlite3"
    url: str = request.getfixturevalue("empty_postgresql_url")
    return url


@pytest.fixture
async def migrated(empty_url: str) -> AsyncIterator[Database]:
    database = Database(empty_url)
    await upgrade(database)
    yield database
    await database.close()


def down_to(revision: str) -> Callable[[sa.Connection], None]:
    def down(connection: sa.Connection) -> None:
        config = migrate._config()
        config.attributes["connection"] = connection
        command.downgrade(config, revision)

    return down


def described(connection: sa.Connection) -> dict[str, Any]:
    """Everything that the database knows of its tables, in an order of its own."""
    inspector = sa.inspect(connection)
    parts = {
        "columns": inspector.get_columns,
        "keys": lambda table: [inspector.get_pk_constraint(table)],
        "foreign": inspector.get_foreign_keys,
        "unique": inspector.get_unique_constraints,
        "checks": inspector.get_check_constraints,
        "indexes": inspector.get_indexes,
    }
    return {
        f"{table}.{part}": sorted(_words(one) for one in read(table))
        for table in inspector.get_table_names()
        for part, read in parts.items()
        if table != "alembic_version"
    }


def _words(part: Mapping[str, Any]) -> str:
    """A constraint or index as text; the predicate of an index is an object with a text of its own."""
    options = {name: str(value) for name, value in part.get("dialect_options", {}).items()}
    return str(sorted({**part, "dialect_options": options}.items()))


async def test_an_empty_database_is_brought_to_the_newest_revision(empty_url: str) -> None:
    """The first upgrade makes everything, the second one nothing."""
    database = Database(empty_url)
    assert await current(database) is None
    assert await upgrade(database) == (None, newest())
    assert await is_current(database)
    assert await upgrade(database) == (newest(), newest())
    await database.close()


async def test_autogenerate_finds_nothing_to_do(migrated: Database) -> None:
    """The newest revision has every table and column of the schema."""

    def compare(connection: sa.Connection) -> list[Any]:
        return list(compare_metadata(MigrationContext.configure(connection), schema.metadata))

    async with migrated.writer_engine.connect() as connection:
        assert await connection.run_sync(compare) == []


async def test_checks_and_predicates_are_those_of_the_schema(migrated: Database, empty_url: str) -> None:
    """What autogenerate does not compare is the same too: CHECKs, index predicates, foreign keys."""
    async with migrated.writer_engine.begin() as tx:
        deployed = await tx.run_sync(described)
        await tx.run_sync(schema.metadata.drop_all)
    async with migrated.writer_engine.begin() as tx:
        await tx.run_sync(schema.metadata.create_all)
        made = await tx.run_sync(described)
    assert deployed == made
    assert "ck_incidents_open_alerts" in str(deployed["incidents.checks"])
    # PostgreSQL writes a predicate in its own words; SQLite keeps ours
    assert "status <> 'resolved'" in str(deployed["alerts.indexes"]).replace("::text", "").replace("\\", "")


async def test_a_downgrade_leaves_nothing(migrated: Database) -> None:
    """Down to base and up again: no table, index or type stays behind."""
    async with migrated.writer_engine.begin() as tx:
        await tx.run_sync(down_to("base"))
        assert await tx.run_sync(described) == {}
        await tx.run_sync(migrate._upgrade)
        assert "timers.columns" in await tx.run_sync(described)


async def test_six_processes_start_at_once(empty_url: str) -> None:
    """Whoever comes first migrates, the others wait and find it done."""
    databases = [Database(empty_url, pool_size=2) for _ in range(6)]
    async with asyncio.timeout(60):
        results = await asyncio.gather(*(upgrade(database) for database in databases))
    assert sorted(before or "" for before, _ in results) == ["", *[newest()] * 5]
    assert all(after == newest() for _, after in results)
    for database in databases:
        await database.close()


@pytest.fixture
async def read_for_long(
    empty_postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Database, AsyncConnection]]:
    """A database of an older release, and who reads it: a backup, say."""
    monkeypatch.setattr(migrate, "AT_A_TABLE", "100ms")
    monkeypatch.setattr(migrate, "PAUSE", timedelta(milliseconds=100))
    database, other = Database(empty_postgresql_url), Database(empty_postgresql_url)
    await upgrade(database)
    async with database.writer_engine.begin() as tx:
        await tx.run_sync(down_to("0003"))
    async with other.writer_engine.connect() as reader:
        await reader.execute(sa.select(schema.timers.c.id))
        yield database, reader
    await database.close()
    await other.close()


async def test_a_migration_waits_at_no_table_while_others_work(
    read_for_long: tuple[Database, AsyncConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a long reader it gives up soon and tries again, so that whoever pages gets in between."""
    database, reader = read_for_long
    refused, plain = asyncio.Event(), migrate._upgrade

    def spy(connection: sa.Connection) -> None:
        try:
            plain(connection)
        except DBAPIError:
            refused.set()
            raise

    monkeypatch.setattr(migrate, "_upgrade", spy)
    upgrading = asyncio.create_task(upgrade(database))
    async with asyncio.timeout(10):
        await refused.wait()
        await database.write(lambda tx: tx.execute(sa.update(schema.timers).values(attempt=1)))
    assert not upgrading.done()
    await reader.rollback()
    async with asyncio.timeout(20):
        assert await upgrading == ("0003", newest())


async def test_a_migration_ends_when_the_tables_are_always_held(
    read_for_long: tuple[Database, AsyncConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what to look for, and has changed nothing."""
    monkeypatch.setattr(migrate, "TRIES", 2)
    with pytest.raises(MidwatchError, match="such as a backup"):
        await upgrade(read_for_long[0])
    assert await current(read_for_long[0]) == "0003"


async def test_a_migration_that_deadlocks_is_tried_again(
    empty_postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its locks are taken in an order of its own: whoever pages may be the winner."""
    monkeypatch.setattr(migrate, "PAUSE", timedelta())
    database, tries, plain = Database(empty_postgresql_url), 0, migrate._upgrade

    def deadlocks(connection: sa.Connection) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            connection.execute(sa.text("DO $$ BEGIN RAISE 'deadlock' USING ERRCODE = '40P01'; END $$"))
        plain(connection)

    monkeypatch.setattr(migrate, "_upgrade", deadlocks)
    assert await upgrade(database) == (None, newest())
    assert tries == 2
    await database.close()


async def test_a_slow_migration_is_waited_for(
    empty_postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for the migration of another process is not cut off by the timeouts of requests."""
    database = Database(empty_postgresql_url)
    settings: dict[str, str] = {}
    plain = migrate._upgrade

    def spy(connection: sa.Connection) -> None:
        for name in ("lock_timeout", "statement_timeout"):
            settings[name] = str(connection.scalar(sa.select(sa.func.current_setting(name))))
        plain(connection)

    monkeypatch.setattr(migrate, "_upgrade", spy)
    await upgrade(database)
    assert settings == {"lock_timeout": "1500ms", "statement_timeout": "10min"}
    async with database.writer_engine.connect() as connection:
        assert await connection.scalar(sa.select(sa.func.current_setting("lock_timeout"))) == "3s"
    await database.close()
