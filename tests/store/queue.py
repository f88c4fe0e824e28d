"""One queue of timers, read as a lane reads it."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from engine.db import Database, Tx
from engine.models import LaneName, Rank, Timer
from engine.schema import timers as table
from engine.store.due import Place, beginnings, near


async def due(tx: Tx, lane: LaneName, now: datetime, limit: int, after: Timer | None = None) -> list[Timer]:
    """What is due and untaken: by rank, the oldest first; `after` a timer: the rest of its queue too."""
    places = beginnings([lane])
    if after is not None:
        own = Place(lane, Rank(after.rank), after.due_at, after.id)
        places = tuple(
            own if place.rank == after.rank else place for place in places if place.rank >= after.rank
        )
    found, _ = await near(tx, places, now, now, limit)
    return found[:limit]


async def lease(database: Database, subject: int) -> datetime | None:
    """Until when somebody holds the one timer of this subject."""
    async with database.snapshot() as tx:
        rows = await tx.execute(sa.select(table.c.lease_until).where(table.c.subject_id == subject))
        return rows.scalar_one()  # type: ignore[no-any-return]  # SQLAlchemy knows the type, mypy does not
