"""Which hosts and workers live on this database, and when each was last seen at it. Decides nothing.

Kept among the counters, as microseconds: it must be readable before any migration of ours.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final

import sqlalchemy as sa

from engine.db import Tx, any_of, upsert
from engine.schema import EPOCH, MICROSECOND, counters

HOST: Final = "host"
WORKER: Final = "worker"  # a process that works timers


async def seen(tx: Tx, org_id: int, *, kind: str = HOST) -> dict[str, datetime]:
    """When each was last seen, by its own clock."""
    rows = await tx.execute(
        sa.select(counters.c.name, counters.c.value).where(
            counters.c.org_id == org_id,
            counters.c.name >= f"{kind}:",
            counters.c.name < f"{kind};",  # the first text behind every text with that prefix
        )
    )
    return {row.name.removeprefix(f"{kind}:"): EPOCH + row.value * MICROSECOND for row in rows}


async def see(tx: Tx, org_id: int, name: str, now: datetime, *, kind: str = HOST) -> None:
    insert = upsert(tx, counters).values(
        org_id=org_id, name=f"{kind}:{name}", value=(now - EPOCH) // MICROSECOND
    )
    await tx.execute(
        insert.on_conflict_do_update(index_elements=["org_id", "name"], set_={"value": insert.excluded.value})
    )


async def forget(tx: Tx, org_id: int, names: Collection[str], *, kind: str = HOST) -> None:
    rows = [f"{kind}:{name}" for name in sorted(names)]
    await tx.execute(sa.delete(counters).where(counters.c.org_id == org_id, any_of(counters.c.name, rows)))
