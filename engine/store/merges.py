"""What moves from one incident to another when they are merged. Decides nothing.

Both incidents, and the dedup keys of the alerts that move, are locked before any of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from engine.db import Tx, any_of
from engine.models import AlertStatus, DeliveryKind, Severity
from engine.schema import UNFINISHED, alerts, dedup_keys, deliveries
from engine.store.dedup_keys import Key


@dataclass(frozen=True, slots=True)
class Moving:
    """Of an alert that moves, no more than a merge asks: there may be thousands, all under locks."""

    id: int
    service_id: int
    dedup_key: str
    status: AlertStatus
    severity: Severity | None
    raw_severity: str


async def keys_of(tx: Tx, org_id: int, incident_id: int) -> list[Key]:
    """The keys of all its alerts, those that are over too."""
    rows = await tx.execute(
        sa.select(alerts.c.service_id, alerts.c.dedup_key)
        .where(alerts.c.org_id == org_id, alerts.c.incident_id == incident_id)
        .distinct()
    )
    return [(row.service_id, row.dedup_key) for row in rows]


async def lock_alerts(tx: Tx, org_id: int, incident_id: int) -> list[Moving]:
    """Why locked one by one, in order of id: repeats are counted without their incident's lock."""
    rows = await tx.execute(
        sa.select(
            alerts.c.id,
            alerts.c.service_id,
            alerts.c.dedup_key,
            alerts.c.status,
            alerts.c.severity,
            alerts.c.raw_severity,
        )
        .where(alerts.c.org_id == org_id, alerts.c.incident_id == incident_id)
        .order_by(alerts.c.id)
        .with_for_update(key_share=True)
    )
    return [
        Moving(
            id=row.id,
            service_id=row.service_id,
            dedup_key=row.dedup_key,
            status=AlertStatus(row.status),
            severity=None if row.severity is None else Severity(row.severity),
            raw_severity=row.raw_severity,
        )
        for row in rows
    ]


async def move_alerts(tx: Tx, org_id: int, ids: Sequence[int], to: int) -> None:
    if ids:
        await tx.execute(
            sa.update(alerts)
            .where(alerts.c.org_id == org_id, any_of(alerts.c.id, ids))
            .values(incident_id=to)
        )


async def move_memory(tx: Tx, org_id: int, ids: Sequence[int], of: int, to: int) -> None:
    """What the keys of these alerts are remembered by: there they are looked for when they fire again."""
    if ids:
        moving = sa.select(alerts.c.service_id, alerts.c.dedup_key).where(
            alerts.c.org_id == org_id, any_of(alerts.c.id, ids)
        )
        await tx.execute(
            sa.update(dedup_keys)
            .where(
                dedup_keys.c.org_id == org_id,
                sa.tuple_(dedup_keys.c.service_id, dedup_keys.c.dedup_key).in_(moving),
                dedup_keys.c.last_incident_id == of,
            )
            .values(last_incident_id=to)
        )


async def move_responders(tx: Tx, org_id: int, of: int, to: int, round_: int) -> None:
    """Whoever is still being told goes on being told, of the other incident."""
    await tx.execute(
        sa.update(deliveries)
        .where(
            deliveries.c.org_id == org_id,
            deliveries.c.incident_id == of,
            deliveries.c.kind == DeliveryKind.RESPONDER.value,
            UNFINISHED,
        )
        .values(incident_id=to, round=round_)
    )
