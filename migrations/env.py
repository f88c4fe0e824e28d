"""Runs migrations on the connection it is given, or on MIDWATCH_DATABASE_URL for the alembic command.

Never builds an engine of its own: the program's own factory knows how each database is set up.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, Literal

import sqlalchemy as sa
from alembic import context
from alembic.autogenerate.api import AutogenContext

from engine import schema
from engine.db import Database


def render_item(kind: str, item: Any, _context: AutogenContext) -> str | Literal[False]:
    """Version files import nothing of ours: what the schema says may change, history may not."""
    if kind == "type" and isinstance(item, (schema.Instant, schema.Duration)):
        return "sa.BigInteger()"
    return False


def run(connection: sa.Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=schema.metadata,
        render_as_batch=True,
        render_item=render_item,
    )
    with context.begin_transaction():
        context.run_migrations()


async def run_by_command() -> None:
    database = Database(os.environ.get("MIDWATCH_DATABASE_URL", "sqlite:///data/midwatch.sqlite3"))
    try:
        async with database.writer_engine.begin() as tx:
            await tx.run_sync(run)
    finally:
        await database.close()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    asyncio.run(run_by_command())
