"""Reads incidents as people see them: one view for the card, the SMS, the call and the API.

Decides nothing and changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from engine.db import Tx, any_of
from engine.models import (
    Alert,
    Attempt,
    DeliveryKind,
    DeliveryStatus,
    IncidentStatus,
    IncidentView,
    Method,
    Severity,
    Urgency,
    Via,
)
from engine.schema import (
    alerts,
    deliveries,
    incidents,
    people,
    policies,
    policy_versions,
    services,
    timers,
)
from engine.store.alerts import alert_of
from engine.store.timers import FATE_KINDS

SHOWN_ALERTS = 10  # the newest ones; a card has no room for more

_policy_name = (
    sa.select(policies.c.name)
    .join(policy_versions, policy_versions.c.policy_id == policies.c.id)
    .where(policy_versions.c.id == incidents.c.policy_version_id)
    .scalar_subquery()
)
_other = incidents.alias("other")
_merged_number = (
    sa.select(_other.c.number)
    .where(_other.c.id == incidents.c.merged_into)
    .correlate(incidents)
    .scalar_subquery()
)
_INCIDENTS = sa.select(
    incidents,
    _merged_number.label("merged_number"),
    services.c.name.label("service_name"),
    services.c.channel.label("service_channel"),
    _policy_name.label("policy_name"),
).join(services, services.c.id == incidents.c.service_id)


async def by_ids(tx: Tx, org_id: int, ids: Sequence[int]) -> list[IncidentView]:
    """These incidents, in the order of `ids`."""
    rows = await tx.execute(_INCIDENTS.where(incidents.c.org_id == org_id, any_of(incidents.c.id, ids)))
    found = {row.id: row for row in rows}
    return await _views(tx, org_id, [found[one] for one in ids if one in found])


async def newest(
    tx: Tx, org_id: int, statuses: Sequence[str], limit: int, before_id: int | None
) -> list[IncidentView]:
    statement = _INCIDENTS.where(incidents.c.org_id == org_id, incidents.c.number.is_not(None))
    if statuses:
        statement = statement.where(any_of(incidents.c.status, statuses))
    if before_id is not None:
        statement = statement.where(incidents.c.id < before_id)
    rows = await tx.execute(statement.order_by(incidents.c.id.desc()).limit(limit))
    return await _views(tx, org_id, rows.all())


async def _views(tx: Tx, org_id: int, rows: Sequence[Any]) -> list[IncidentView]:
    ids = [row.id for row in rows]
    if not ids:
        return []
    newest_alerts = await _newest_alerts(tx, org_id, ids)
    counted = await _event_counts(tx, org_id, ids)
    receipts = await _receipts(tx, org_id, ids)
    next_steps = await _next_steps(tx, org_id, ids)
    return [
        _view(
            row,
            tuple(newest_alerts.get(row.id, ())),
            counted.get(row.id, 0),
            tuple(receipts.get(row.id, ())),
            next_steps.get(row.id),
        )
        for row in rows
    ]


def _view(
    row: Any, shown: tuple[Alert, ...], events: int, receipts: tuple[Attempt, ...], next_step: Any
) -> IncidentView:
    return IncidentView(
        id=row.id,
        org_id=row.org_id,
        number=row.number or 0,
        status=IncidentStatus(row.status),
        urgency=Urgency(row.urgency),
        title=row.title,
        service_id=row.service_id,
        service=row.service_name,
        channel=row.service_channel,
        policy=row.policy_name,
        severity=None if row.severity is None else Severity(row.severity),
        raw_severity=row.raw_severity,
        epoch=row.epoch,
        round=row.round,
        pass_=row._mapping["pass"],
        level=row.level,
        opened_at=row.opened_at,
        alerts=shown,
        alert_count=row.alert_count,
        firing_count=row.open_alerts,
        event_count=events,
        truncated=row.truncated,
        acknowledged_at=row.acknowledged_at,
        acknowledged_by=row.acknowledged_name,
        acknowledged_via=None if row.acknowledged_via is None else Via(row.acknowledged_via),
        resolved_at=row.resolved_at,
        resolved_by=row.resolved_by,
        resolved_via=None if row.resolved_via is None else Via(row.resolved_via),
        snoozed_until=row.snoozed_until,
        held_until=row.held_until,
        merged_into=row.merged_number,
        next_step_at=next_step,
        receipts=receipts,
    )


async def _newest_alerts(tx: Tx, org_id: int, ids: Sequence[int]) -> dict[int, list[Alert]]:
    age = (
        sa.func.row_number()
        .over(
            partition_by=alerts.c.incident_id,
            order_by=(sa.case((alerts.c.status == "firing", 0), else_=1), alerts.c.id.desc()),
        )
        .label("age")
    )
    ranked = (
        sa.select(alerts, age).where(alerts.c.org_id == org_id, any_of(alerts.c.incident_id, ids)).subquery()
    )
    rows = await tx.execute(
        sa.select(ranked).where(ranked.c.age <= SHOWN_ALERTS).order_by(ranked.c.incident_id, ranked.c.age)
    )
    found: dict[int, list[Alert]] = defaultdict(list)
    for row in rows:
        found[row.incident_id].append(alert_of(row))
    return found


async def _event_counts(tx: Tx, org_id: int, ids: Sequence[int]) -> dict[int, int]:
    rows = await tx.execute(
        sa.select(alerts.c.incident_id, sa.func.sum(alerts.c.event_count).label("events"))
        .where(alerts.c.org_id == org_id, any_of(alerts.c.incident_id, ids))
        .group_by(alerts.c.incident_id)
    )
    return {row.incident_id: int(row.events) for row in rows}


async def _receipts(tx: Tx, org_id: int, ids: Sequence[int]) -> dict[int, list[Attempt]]:
    """What was tried in the present round, and what is queued next."""
    rows = await tx.execute(
        sa.select(deliveries, people.c.name.label("person_name"))
        .select_from(
            deliveries.outerjoin(people, people.c.id == deliveries.c.person_id).join(
                incidents,
                sa.and_(incidents.c.id == deliveries.c.incident_id, incidents.c.round == deliveries.c.round),
            )
        )
        .where(
            deliveries.c.org_id == org_id,
            any_of(deliveries.c.incident_id, ids),
            any_of(deliveries.c.kind, [DeliveryKind.PAGE.value, DeliveryKind.RESPONDER.value]),
        )
        .order_by(deliveries.c.id)
    )
    found: dict[int, list[Attempt]] = defaultdict(list)
    for row in rows:
        found[row.incident_id].append(_receipt(row))
    return found


def _receipt(row: Any) -> Attempt:
    method = Method(row.method)
    who = row.person_name or (row.address if method is Method.CHANNEL else "fallback")
    return Attempt(
        person=who or "",
        method=method,
        status=DeliveryStatus(row.status),
        at=row.ended_at or row.sent_at or row.due_at,
        level=row.level,
        reason=row.reason,
    )


async def _next_steps(tx: Tx, org_id: int, ids: Sequence[int]) -> dict[int, Any]:
    rows = await tx.execute(
        sa.select(timers.c.subject_id, sa.func.min(timers.c.due_at).label("due_at"))
        .where(
            timers.c.org_id == org_id,
            any_of(timers.c.kind, [kind.value for kind in FATE_KINDS]),
            any_of(timers.c.subject_id, ids),
        )
        .group_by(timers.c.subject_id)
    )
    return {row.subject_id: row.due_at for row in rows}
