"""What stands from the last look ahead, and what Slack does not show: the same that the status lists.

Never looks ahead by itself: the running Midwatch does each morning.
"""

from __future__ import annotations

from collections.abc import Sequence

from asyncpg import PostgresError
from sqlalchemy.exc import DBAPIError

from bot.doctor.finding import Finding, warning
from engine.db import Database
from engine.errors import Unavailable
from engine.rota.coverage import standing

ADVICE = "See docs/guides/calendars.md; what is put right is gone after the next look."


async def examine(database: Database) -> Sequence[Finding]:
    try:
        found = await standing(database)
    except (Unavailable, DBAPIError, PostgresError, OSError):
        return []  # the database's own check has said it
    return [warning(f"schedule {name}", text.rstrip("."), ADVICE) for name, text in found]
