"""Which hosts work on this database, and when each was last seen at it. Decides nothing.

Kept among the counters, as microseconds: it must be readable before any migration of ours.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final

import sqlalchemy as sa

from engine.db import Tx, any_of, upsert
from engine.schema import EPOCH, MICROSECOND, counters

PREFIX: Final = "host:"
AFTER: Final = "host;"  # the first text behind every text with that prefix


async def seen(tx: Tx, org_id: int) -> dict[str, datetime]:
    """When each host was last seen, by its own clock."""
    rows = await tx.execute(
        sa.select(counters.c.name, counters.c.value).where(
            counters.c.org_id == org_id, counters.c.name >= PREFIX, counters.c.name < AFTER
        )
    )
    return {row.name.removeprefix(PREFIX): EPOCH + row.value * MICROSECOND for row in rows}


async def see(tx: Tx, org_id: int, host: str, now: datetime) -> None:
    insert = upsert(tx, counters).values(
        org_id=org_id, name=PREFIX + host, value=(now - EPOCH) // MICROSECOND
    )
    await tx.execute(
        insert.on_conflict_do_update(index_elements=["org_id", "name"], set_={"value": insert.excluded.value})
    )


async def forget(tx: Tx, org_id: int, hosts: Collection[str]) -> None:
    names = [PREFIX + host for host in sorted(hosts)]
    await tx.execute(sa.delete(counters).where(counters.c.org_id == org_id, any_of(counters.c.name, names)))
