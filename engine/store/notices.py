"""Notices among the deliveries: found by their key, reworded, cancelled. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from engine.db import Tx, any_of
from engine.models import Delivery, DeliveryStatus
from engine.schema import deliveries
from engine.store.deliveries import QUEUED, read


async def by_keys(tx: Tx, org_id: int, keys: Sequence[str]) -> list[Delivery]:
    """Those of these keys that there are, in the order of their making."""
    if not keys:
        return []
    ids = await tx.scalars(
        sa.select(deliveries.c.id)
        .where(deliveries.c.org_id == org_id, any_of(deliveries.c.idem_key, keys))
        .order_by(deliveries.c.id)
    )
    found = await read(tx, list(ids))
    return [found[one] for one in sorted(found)]


_AGAIN = {"status": DeliveryStatus.QUEUED.value, "reason": "", "attempts": 0, "ended_at": None}


async def revive(tx: Tx, ids: Sequence[int]) -> None:
    """Those that died, to be tried like new ones."""
    if ids:
        await tx.execute(
            sa.update(deliveries)
            .where(any_of(deliveries.c.id, sorted(ids)), deliveries.c.status == DeliveryStatus.DEAD.value)
            .values(**_AGAIN)
        )


async def cancel(tx: Tx, ids: Sequence[int], reason: str, now: datetime) -> None:
    """Those that are still queued; one that is being sent is recorded by its sender."""
    if ids:
        await tx.execute(
            sa.update(deliveries)
            .where(any_of(deliveries.c.id, sorted(ids)), QUEUED)
            .values(status=DeliveryStatus.CANCELLED.value, reason=reason, ended_at=now)
        )


async def reword(tx: Tx, bodies: Mapping[int, Mapping[str, Any]]) -> None:
    """What is still queued says this when it is sent."""
    for one, body in sorted(bodies.items()):
        await tx.execute(sa.update(deliveries).where(deliveries.c.id == one, QUEUED).values(body=dict(body)))
