"""Brings a database to the newest schema, one process at a time; says who may work on a newer one.

Never runs on its own: `midwatch run` and `midwatch migrate` ask for it. Never goes back: a schema
that a newer version made stays as it is.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib import resources
from typing import Final

import sqlalchemy as sa
import structlog
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.db import Database, Tx, sqlstate
from engine.errors import MidwatchError
from engine.store import marks

log = structlog.get_logger(__name__)

PATIENCE: Final = "10min"  # while another process migrates
AT_A_TABLE: Final = "1500ms"
PAUSE: Final = timedelta(seconds=3)  # in which those who waited for us go on
TRIES: Final = 60  # four and a half minutes in all
HELD: Final = frozenset({"55P03", "40P01"})  # lock timeout, deadlock
HELD_TOO_LONG: Final = (
    "The database could not be migrated: something holds its tables for minutes, such as a backup or a "
    "session that was left open. Nothing was changed. Start it again when that has ended."
)
LOCK: Final = 0x4D696477  # "Midw": the advisory lock that migrations take on PostgreSQL


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(resources.files("migrations")))
    return config


@dataclass(frozen=True, slots=True)
class Standing:
    """Where this version stands on the schema that it found."""

    revision: str | None  # None: an empty database
    newer: bool = False  # a later version made it
    allowed: bool = True  # and says that this one may go on

    @property
    def current(self) -> bool:
        """There is nothing to migrate, and this version may work."""
        return self.allowed and (self.newer or self.revision == newest())

    @property
    def refusal(self) -> str:
        return (
            f"A newer version of Midwatch has changed the database (to revision {self.revision}), and this "
            f"version ({newest()}) may no longer work on it. Upgrade Midwatch here, and start it again."
        )


async def standing(tx: Tx) -> Standing:
    """Two small reads: a running process asks every few seconds."""
    revision = await tx.run_sync(_current)
    if revision is None or revision in _known():
        return Standing(revision)
    mark = await marks.mark(tx)
    return Standing(revision, newer=True, allowed=mark is not None and mark.oldest <= generation())


async def upgrade(database: Database) -> tuple[str | None, str]:
    """Migrate to the newest revision; returns the one before and the one after.

    A schema of a newer version is left as it is, if that version lets this one work on it; if not,
    this raises. So it does when others hold the tables all the time.
    """
    for tried in range(1, TRIES + 1):
        try:
            return await _upgrade_once(database)
        except DBAPIError as error:
            if sqlstate(error) not in HELD:
                raise
            log.warning("schema.held", tried=tried, of=TRIES, code=sqlstate(error))
            if tried == TRIES:
                raise MidwatchError(HELD_TOO_LONG) from error
        await asyncio.sleep(PAUSE.total_seconds())
    raise AssertionError  # pragma: no cover  # the loop returns or raises


async def _upgrade_once(database: Database) -> tuple[str | None, str]:
    async with database.writer_engine.begin() as tx:
        await _lock(tx, database)
        found = await standing(tx)
        if not found.allowed:
            raise MidwatchError(found.refusal)
        if found.newer and found.revision is not None:
            log.warning("schema.newer", revision=found.revision, ours=newest())
            return found.revision, found.revision
        await tx.run_sync(_upgrade)
    if found.revision != newest():
        log.info("schema.migrated", before=found.revision, after=newest())
    return found.revision, newest()


async def look(database: Database) -> Standing:
    """Where this version stands now."""
    async with database.snapshot() as tx:
        return await standing(tx)


async def current(database: Database) -> str | None:
    """The revision that the database is at; None for an empty one."""
    return (await look(database)).revision


async def is_current(database: Database) -> bool:
    return (await look(database)).current


@cache
def newest() -> str:
    """The revision that this version of Midwatch works on."""
    return str(ScriptDirectory.from_config(_config()).get_current_head())


def generation() -> int:
    """This version, as schema marks name it: the number of its newest revision."""
    return int(newest())


@cache
def _known() -> frozenset[str]:
    scripts = ScriptDirectory.from_config(_config()).walk_revisions()
    return frozenset(script.revision for script in scripts)


async def _lock(tx: AsyncConnection, database: Database) -> None:
    """Two processes that start together migrate one after the other. SQLite has BEGIN IMMEDIATE."""
    if not database.is_sqlite:
        # Why: the engine's own timeouts are for requests, and whoever waits here waits for a migration.
        for timeout in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"):
            await tx.execute(sa.select(sa.func.set_config(timeout, PATIENCE, True)))
        await tx.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
        # Why so short: whoever waits for a table behind a long reader, such as a backup, keeps
        # everybody who comes after from it, and nobody is paged.
        await tx.execute(sa.select(sa.func.set_config("lock_timeout", AT_A_TABLE, True)))


def _upgrade(connection: sa.Connection) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _current(connection: sa.Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()
