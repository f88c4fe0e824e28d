"""Is the database there, set up, and does it keep what it promises?

Never writes to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import make_url

from bot.doctor.finding import Finding, ok, problem, warning
from engine.clock import Clock
from engine.db import Database
from engine.errors import Unavailable
from engine.migrate import current, newest

ABOUT: Final = "database"
OLDEST_POSTGRESQL: Final = 130000
SKEW_NOTED, SKEW_BAD = timedelta(seconds=5), timedelta(seconds=30)
PRAGMAS: Final = {"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"}


async def examine(database: Database, clock: Clock) -> Sequence[Finding]:
    try:
        revision = await current(database)
        kept = await (_sqlite(database) if database.is_sqlite else _postgresql(database, clock))
    except (Unavailable, OSError) as error:
        cause = error.__cause__ or error
        return [
            problem(
                ABOUT,
                f"cannot be reached: {type(cause).__name__}",
                "Check MIDWATCH_DATABASE_URL and its host.",
            )
        ]
    if revision != newest():
        return [problem(ABOUT, "its tables are missing or old", "Run: midwatch migrate"), *kept]
    return [ok(ABOUT, f"{_name(database)}, up to date"), *kept]


async def _sqlite(database: Database) -> list[Finding]:
    async with database.writer_engine.connect() as connection:
        found = {name: str(await connection.scalar(sa.text(f"PRAGMA {name}"))).lower() for name in PRAGMAS}
    wrong = [name for name, value in PRAGMAS.items() if found[name] != value]
    if wrong:
        text = f"{', '.join(wrong)} is not as it must be; a crash could lose what was accepted"
        return [problem(ABOUT, text, "Put the file on a local disk: network shares cannot do it.")]
    return []


async def _postgresql(database: Database, clock: Clock) -> list[Finding]:
    async with database.snapshot() as tx:
        version = int(await tx.scalar(sa.text("SHOW server_version_num")) or 0)
        theirs = await tx.scalar(sa.select(sa.func.clock_timestamp()))
    found = []
    if version < OLDEST_POSTGRESQL:
        found.append(problem(ABOUT, "PostgreSQL is older than 13", "Upgrade PostgreSQL."))
    skew = abs(clock.now() - theirs) if theirs is not None else timedelta()
    if skew >= SKEW_NOTED:
        report = problem if skew >= SKEW_BAD else warning
        text = f"its clock and ours are {skew.total_seconds():.0f} s apart"
        found.append(report(ABOUT, text, "Set both hosts by NTP."))
    return found


def _name(database: Database) -> str:
    url = make_url(database.url)
    return f"SQLite in {url.database}" if database.is_sqlite else f"PostgreSQL {url.database} at {url.host}"
