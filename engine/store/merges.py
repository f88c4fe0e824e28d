"""What moves from one incident to another when they are merged. Decides nothing.

Both incidents, and the dedup keys of the alerts that move, are locked before any of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from engine.db import Tx, any_of
from engine.models import Alert, DeliveryKind
from engine.schema import UNFINISHED, alerts, dedup_keys, deliveries
from engine.store.alerts import alert_of
from engine.store.dedup_keys import Key


async def keys_of(tx: Tx, org_id: int, incident_id: int) -> list[Key]:
    """The keys of all its alerts, those that are over too."""
    rows = await tx.execute(
        sa.select(alerts.c.service_id, alerts.c.dedup_key)
        .where(alerts.c.org_id == org_id, alerts.c.incident_id == incident_id)
        .distinct()
    )
    return [(row.service_id, row.dedup_key) for row in rows]


async def lock_alerts(tx: Tx, org_id: int, incident_id: int) -> list[Alert]:
    """Why locked one by one, in order of id: repeats are counted without their incident's lock."""
    rows = await tx.execute(
        sa.select(alerts)
        .where(alerts.c.org_id == org_id, alerts.c.incident_id == incident_id)
        .order_by(alerts.c.id)
        .with_for_update(key_share=True)
    )
    return [alert_of(row) for row in rows]


async def move_alerts(tx: Tx, org_id: int, ids: Sequence[int], to: int) -> None:
    if ids:
        await tx.execute(
            sa.update(alerts)
            .where(alerts.c.org_id == org_id, any_of(alerts.c.id, ids))
            .values(incident_id=to)
        )


async def move_memory(tx: Tx, org_id: int, keys: Sequence[Key], of: int, to: int) -> None:
    """What a key is remembered by goes with its last alert: there it is looked for when it fires again."""
    if keys:
        await tx.execute(
            sa.update(dedup_keys)
            .where(
                dedup_keys.c.org_id == org_id,
                dedup_keys.c.service_id == sa.bindparam("of_service"),
                dedup_keys.c.dedup_key == sa.bindparam("of_key"),
                dedup_keys.c.last_incident_id == of,
            )
            .values(last_incident_id=to),
            [{"of_service": service, "of_key": key} for service, key in sorted(keys)],
        )


async def move_responders(tx: Tx, org_id: int, of: int, to: int, round_: int) -> list[int]:
    """Whoever is still being told goes on being told, of the other incident. Returns their ids."""
    rows: Any = await tx.execute(
        sa.update(deliveries)
        .where(
            deliveries.c.org_id == org_id,
            deliveries.c.incident_id == of,
            deliveries.c.kind == DeliveryKind.RESPONDER.value,
            UNFINISHED,
        )
        .values(incident_id=to, round=round_)
        .returning(deliveries.c.person_id)
    )
    return sorted(set(rows.scalars()))
