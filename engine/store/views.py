"""Reads incidents as people see them: one view for the card, the SMS, the call and the API.

Decides nothing and changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import RowMapping

from engine import skipped
from engine.db import Tx, any_of, given, given_list
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
_event_count = (
    sa.select(sa.func.sum(alerts.c.event_count))
    .where(alerts.c.org_id == incidents.c.org_id, alerts.c.incident_id == incidents.c.id)
    .scalar_subquery()
)
_next_step = (
    sa.select(sa.func.min(timers.c.due_at))
    .where(
        timers.c.org_id == incidents.c.org_id,
        timers.c.kind.in_([kind.value for kind in FATE_KINDS]),
        timers.c.subject_id == incidents.c.id,
    )
    .scalar_subquery()
)
# Why so much in one statement: each of its own costs more than what it finds.
_INCIDENTS = sa.select(
    incidents,
    _merged_number.label("merged_number"),
    _event_count.label("event_count"),
    _next_step.label("next_step_at"),
    services.c.name.label("service_name"),
    services.c.channel.label("service_channel"),
    _policy_name.label("policy_name"),
).join(services, services.c.id == incidents.c.service_id)
_BY_IDS = _INCIDENTS.where(
    incidents.c.org_id == given("org", incidents.c.org_id),
    any_of(incidents.c.id, given_list("ids", incidents.c.id)),
)


async def by_ids(tx: Tx, org_id: int, ids: Sequence[int]) -> list[IncidentView]:
    """These incidents, in the order of `ids`."""
    rows = await tx.execute(_BY_IDS, {"org": org_id, "ids": ids})
    found = {row["id"]: row for row in rows.mappings()}
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
    return await _views(tx, org_id, rows.mappings().all())


async def _views(tx: Tx, org_id: int, rows: Sequence[RowMapping]) -> list[IncidentView]:
    ids = [row["id"] for row in rows]
    if not ids:
        return []
    these = {"org": org_id, "ids": ids}
    newest_alerts = await _newest_alerts(tx, these)
    receipts = await _receipts(tx, these)
    return [
        _view(row, tuple(newest_alerts.get(one, ())), tuple(receipts.get(one, ())))
        for one, row in zip(ids, rows, strict=True)
    ]


def _view(row: RowMapping, shown: tuple[Alert, ...], receipts: tuple[Attempt, ...]) -> IncidentView:
    return IncidentView(
        id=row["id"],
        org_id=row["org_id"],
        number=row["number"] or 0,
        status=IncidentStatus(row["status"]),
        urgency=Urgency(row["urgency"]),
        title=row["title"],
        service_id=row["service_id"],
        service=row["service_name"],
        channel=row["service_channel"],
        policy=row["policy_name"],
        severity=None if row["severity"] is None else Severity(row["severity"]),
        raw_severity=row["raw_severity"],
        epoch=row["epoch"],
        round=row["round"],
        pass_=row["pass"],
        level=row["level"],
        opened_at=row["opened_at"],
        alerts=shown,
        alert_count=row["alert_count"],
        firing_count=row["open_alerts"],
        event_count=int(row["event_count"] or 0),
        truncated=row["truncated"],
        acknowledged_at=row["acknowledged_at"],
        acknowledged_by=row["acknowledged_name"],
        acknowledged_via=None if row["acknowledged_via"] is None else Via(row["acknowledged_via"]),
        resolved_at=row["resolved_at"],
        resolved_by=row["resolved_by"],
        resolved_via=None if row["resolved_via"] is None else Via(row["resolved_via"]),
        snoozed_until=row["snoozed_until"],
        held_until=row["held_until"],
        merged_into=row["merged_number"],
        next_step_at=row["next_step_at"],
        receipts=receipts,
    )


# The newest alerts of each incident, those that fire before the rest.
_AGE = sa.func.row_number().over(
    partition_by=alerts.c.incident_id,
    order_by=(sa.case((alerts.c.status == "firing", 0), else_=1), alerts.c.id.desc()),
)
_OF_THESE = sa.and_(
    alerts.c.org_id == given("org", alerts.c.org_id),
    any_of(alerts.c.incident_id, given_list("ids", alerts.c.incident_id)),
)
_RANKED = sa.select(alerts, _AGE.label("age")).where(_OF_THESE).subquery()
_NEWEST_ALERTS = (
    sa.select(_RANKED).where(_RANKED.c.age <= SHOWN_ALERTS).order_by(_RANKED.c.incident_id, _RANKED.c.age)
)


async def _newest_alerts(tx: Tx, these: Mapping[str, Any]) -> dict[int, list[Alert]]:
    rows = await tx.execute(_NEWEST_ALERTS, these)
    found: dict[int, list[Alert]] = defaultdict(list)
    for alert in map(alert_of, rows.mappings()):
        found[alert.incident_id].append(alert)
    return found


_RECEIPTS = (
    sa.select(
        deliveries.c.incident_id,
        deliveries.c.method,
        deliveries.c.address,
        people.c.name.label("person_name"),
        deliveries.c.status,
        deliveries.c.level,
        deliveries.c.reason,
        deliveries.c.attempts,
        deliveries.c.body,
        sa.func.coalesce(deliveries.c.ended_at, deliveries.c.sent_at, deliveries.c.due_at).label("at"),
    )
    .select_from(
        deliveries.outerjoin(people, people.c.id == deliveries.c.person_id).join(
            incidents,
            sa.and_(incidents.c.id == deliveries.c.incident_id, incidents.c.round == deliveries.c.round),
        )
    )
    .where(
        deliveries.c.org_id == given("org", deliveries.c.org_id),
        any_of(deliveries.c.incident_id, given_list("ids", deliveries.c.incident_id)),
        any_of(deliveries.c.kind, [DeliveryKind.PAGE.value, DeliveryKind.RESPONDER.value]),
    )
    .order_by(deliveries.c.id)
)


async def _receipts(tx: Tx, these: Mapping[str, Any]) -> dict[int, list[Attempt]]:
    """What was tried in the present round, and what is queued next."""
    rows = await tx.execute(_RECEIPTS, these)
    found: dict[int, list[Attempt]] = defaultdict(list)
    for row in rows.mappings():
        found[row["incident_id"]].append(_receipt(row))
    return found


def _receipt(row: RowMapping) -> Attempt:
    method = Method(row["method"])
    who = row["person_name"] or (row["address"] if method is Method.CHANNEL else "fallback")
    return Attempt(
        person=who or "",
        method=method,
        status=DeliveryStatus(row["status"]),
        at=row["at"],
        level=row["level"],
        reason=row["reason"],
        tries=row["attempts"],
        skipped=skipped.read(row["body"]),
    )
