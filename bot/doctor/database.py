"""Is the database there, set up, and does it keep what it promises?

Never writes to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy.engine import make_url

from bot.doctor.finding import Finding, ok, problem, warning
from bot.settings import Settings
from bot.why import database_away, why
from engine.checks import SKEW_BAD, SKEW_NOTED, faults, skew
from engine.clock import Clock
from engine.db import Database
from engine.migrate import Standing, standing
from engine.models import ORG
from engine.store import marks

ABOUT: Final = "database"
GONE: Final = timedelta(seconds=60)  # half of it silence, half for clocks of hosts that differ


async def examine(settings: Settings, database: Database | None, clock: Clock) -> Sequence[Finding]:
    if database is None:
        file = make_url(settings.database_url).database
        return [problem(ABOUT, f"there is none yet: {file} is not there", "Run: midwatch migrate")]
    try:
        wrong = [problem(ABOUT, fault.text, fault.advice) for fault in await faults(database)]
        wrong += _clocks(await skew(database, clock))
        async with database.snapshot() as tx:
            schema = await standing(tx)
            ticked_at = await marks.last_tick(tx, ORG) if schema.current else None
    except Exception as error:
        if not (database_away(error) or isinstance(error, OSError)):
            raise
        return [problem(ABOUT, f"cannot be used: {why(error)}", "Check MIDWATCH_DATABASE_URL and its host.")]
    return [_schema(database, schema), *wrong, *_worker(ticked_at, clock)]


def _schema(database: Database, schema: Standing) -> Finding:
    if not schema.allowed:
        return problem(ABOUT, "a newer version of Midwatch has changed it", "Upgrade Midwatch here.")
    if not schema.current:
        return problem(ABOUT, "its tables are missing or old", "Run: midwatch migrate")
    state = "of a newer version, which this one may work on" if schema.newer else "up to date"
    return ok(ABOUT, f"{_name(database)}, {state}")


def _clocks(apart: timedelta) -> list[Finding]:
    if abs(apart) < SKEW_NOTED:
        return []
    report = problem if abs(apart) >= SKEW_BAD else warning
    text = f"its clock and ours are {abs(apart).total_seconds():.0f} s apart"
    return [report(ABOUT, text, "Set both hosts by NTP.")]


def _worker(ticked_at: datetime | None, clock: Clock) -> list[Finding]:
    """An install that never ran is new; one that ran and does not is worth a line."""
    if ticked_at is None or clock.now() - ticked_at < GONE:
        return []
    text = f"no worker has ticked since {ticked_at:%Y-%m-%d %H:%M} UTC: nobody is paged"
    return [warning("worker", text, "Start it: midwatch run")]


def _name(database: Database) -> str:
    url = make_url(database.url)
    return f"SQLite in {url.database}" if database.is_sqlite else f"PostgreSQL {url.database} at {url.host}"
