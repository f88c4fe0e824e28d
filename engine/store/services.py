"""Services and the organisation's fallback list as rows.

Never decides where an alert goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from engine.db import Tx, upsert
from engine.directory import Service, Target, TargetKind
from engine.models import Urgency
from engine.schema import fallbacks, services
from engine.store.reading import read_all


async def read_services(tx: Tx, org_id: int) -> dict[int, Service]:
    """Those that were not deleted, by id."""
    statement = sa.select(services).where(services.c.org_id == org_id, services.c.deleted_at.is_(None))
    return read_all(await tx.execute(statement.order_by(services.c.id)), lambda row: row.id, _service)


async def save_service(tx: Tx, org_id: int, service: Service) -> int:
    """Insert or overwrite by name (the id it carries is not looked at); its id."""
    columns = {
        "policy_id": service.policy_id,
        "channel": service.channel,
        "group_by": None if service.group_by is None else list(service.group_by),
        "group_window": service.group_window,
        "flap_window": service.flap_window,
        "urgency": {word: urgency.value for word, urgency in service.urgency.items()},
        "deleted_at": None,
    }
    insert = upsert(tx, services).values(org_id=org_id, name=service.name, **columns)
    statement = insert.on_conflict_do_update(
        index_elements=["org_id", "name"], set_={name: insert.excluded[name] for name in columns}
    )
    return int((await tx.execute(statement.returning(services.c.id))).scalar_one())


async def read_fallback(tx: Tx, org_id: int) -> tuple[Target, ...]:
    statement = sa.select(fallbacks).where(fallbacks.c.org_id == org_id)
    return tuple(_target(row) for row in await tx.execute(statement.order_by(fallbacks.c.position)))


async def replace_fallback(tx: Tx, org_id: int, targets: Sequence[Target]) -> None:
    await tx.execute(sa.delete(fallbacks).where(fallbacks.c.org_id == org_id))
    rows = [
        {"org_id": org_id, "position": position, "kind": target.kind.value, "ref": str(target.ref)}
        for position, target in enumerate(targets)
    ]
    if rows:
        await tx.execute(sa.insert(fallbacks), rows)


def _service(row: Any) -> Service:
    return Service(
        id=row.id,
        name=row.name,
        policy_id=row.policy_id,
        channel=row.channel,
        group_by=None if row.group_by is None else tuple(row.group_by),
        group_window=row.group_window,
        flap_window=row.flap_window,
        urgency={word: Urgency(urgency) for word, urgency in row.urgency.items()},
    )


def _target(row: Any) -> Target:
    kind = TargetKind(row.kind)
    return Target(kind, row.ref if kind is TargetKind.CHANNEL else int(row.ref))
