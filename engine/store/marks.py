"""What processes leave for each other: the schema's mark, and the last tick of a worker.

Decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import sqlalchemy as sa

from engine.db import Tx, upsert
from engine.schema import Instant, counters, schema_mark

TICK: Final = "worker_tick"


@dataclass(frozen=True, slots=True)
class Mark:
    """`oldest` is the oldest version that may work on the schema, as the number of a revision."""

    revision: str
    oldest: int


async def mark(tx: Tx) -> Mark | None:
    """None where no migration wrote one."""
    row = (await tx.execute(sa.select(schema_mark.c.revision, schema_mark.c.oldest))).first()
    return None if row is None else Mark(row.revision, row.oldest)


async def tick(tx: Tx, org_id: int, now: datetime) -> None:
    """A worker is here, and all its loops go round."""
    at = Instant().process_bind_param(now, tx.dialect)
    insert = upsert(tx, counters).values(org_id=org_id, name=TICK, value=at)
    await tx.execute(
        insert.on_conflict_do_update(index_elements=["org_id", "name"], set_={"value": insert.excluded.value})
    )


async def last_tick(tx: Tx, org_id: int) -> datetime | None:
    """When a worker said so last, by its clock; None if there never was one."""
    value = await tx.scalar(
        sa.select(counters.c.value).where(counters.c.org_id == org_id, counters.c.name == TICK)
    )
    return Instant().process_result_value(value, tx.dialect)
