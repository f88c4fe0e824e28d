"""Brings a database to the newest schema, one process at a time.

Never runs on its own: `midwatch run` and `midwatch migrate` ask for it.
"""

from __future__ import annotations

from importlib import resources
from typing import Final

import sqlalchemy as sa
import structlog
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.db import Database

log = structlog.get_logger(__name__)

PATIENCE: Final = "10min"
LOCK: Final = 0x4D696477  # "Midw": the advisory lock that migrations take on PostgreSQL


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(resources.files("migrations")))
    return config


async def upgrade(database: Database) -> tuple[str | None, str]:
    """Migrate to the newest revision; returns the one before and the one after."""
    async with database.writer_engine.begin() as tx:
        await _lock(tx, database)
        before = await tx.run_sync(_current)
        await tx.run_sync(_upgrade)
        after = newest()
    if before != after:
        log.info("schema.migrated", before=before, after=after)
    return before, after


async def current(database: Database) -> str | None:
    """The revision that the database is at; None for an empty one."""
    async with database.snapshot() as tx:
        return await tx.run_sync(_current)


async def is_current(database: Database) -> bool:
    return await current(database) == newest()


def newest() -> str:
    """The revision that this version of Midwatch works on."""
    return str(ScriptDirectory.from_config(_config()).get_current_head())


async def _lock(tx: AsyncConnection, database: Database) -> None:
    """Two processes that start together migrate one after the other. SQLite has BEGIN IMMEDIATE."""
    if not database.is_sqlite:
        # Why: the engine's own timeouts are for requests, and whoever waits here waits for a migration.
        for timeout in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"):
            await tx.execute(sa.select(sa.func.set_config(timeout, PATIENCE, True)))
        await tx.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))


def _upgrade(connection: sa.Connection) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _current(connection: sa.Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()
