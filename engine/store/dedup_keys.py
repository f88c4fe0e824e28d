"""What each dedup key of a service is remembered by. Its row is locked before any incident or alert.

Decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from engine.bulk import Insert, ReturningInsert, insert_many
from engine.db import Tx, given
from engine.schema import dedup_keys

Key = tuple[int, str]  # service id, dedup key


@dataclass(frozen=True, slots=True)
class DedupKey:
    """What is remembered of a key while no alert is open for it."""

    service_id: int
    dedup_key: str
    last_started_at: datetime | None = None
    last_ended_at: datetime | None = None
    end_arrived_at: datetime | None = None
    last_severity: str | None = None
    last_incident_id: int | None = None
    ended_by: str | None = None


async def lock(tx: Tx, org_id: int, keys: Sequence[Key]) -> dict[Key, DedupKey]:
    """Make and lock the rows of these keys, sorted, so that no two batches wait for each other."""
    if not keys:
        return {}
    wanted = [{"service_id": service, "dedup_key": key} for service, key in sorted(keys)]
    rows = await insert_many(tx, dedup_keys, wanted, _locked, {"org_id": org_id})
    found = (DedupKey(*row[1:]) for row in rows)
    return {(one.service_id, one.dedup_key): one for one in found}


def _locked(insert: Insert) -> ReturningInsert[Any]:
    return insert.on_conflict_do_update(
        index_elements=["org_id", "service_id", "dedup_key"],
        set_={"org_id": insert.excluded.org_id},  # changes nothing, and so takes the lock
    ).returning(dedup_keys)


_REMEMBERED = (
    "last_started_at",
    "last_ended_at",
    "end_arrived_at",
    "last_severity",
    "last_incident_id",
    "ended_by",
)
_REMEMBER = (
    sa.update(dedup_keys)
    .where(
        dedup_keys.c.org_id == given("of_org", dedup_keys.c.org_id),
        dedup_keys.c.service_id == given("of_service", dedup_keys.c.service_id),
        dedup_keys.c.dedup_key == given("of_key", dedup_keys.c.dedup_key),
    )
    .values({name: given(name, dedup_keys.c[name]) for name in _REMEMBERED})
)


async def remember(tx: Tx, org_id: int, ended: Sequence[DedupKey]) -> None:
    """Keep the last start and end of keys; their rows are locked already."""
    if ended:
        await tx.execute(
            _REMEMBER,
            [
                {
                    "of_org": org_id,
                    "of_service": one.service_id,
                    "of_key": one.dedup_key,
                    "last_started_at": one.last_started_at,
                    "last_ended_at": one.last_ended_at,
                    "end_arrived_at": one.end_arrived_at,
                    "last_severity": one.last_severity,
                    "last_incident_id": one.last_incident_id,
                    "ended_by": one.ended_by,
                }
                for one in ended
            ],
        )
