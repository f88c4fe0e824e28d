"""Alert rows: found, opened, counted, closed. Decides nothing; their dedup keys are locked before them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from engine.bulk import Insert, ReturningInsert, insert_many
from engine.db import Tx, any_of
from engine.models import Alert, AlertStatus, Link, Severity, Urgency
from engine.schema import OPEN, alerts
from engine.store.dedup_keys import Key


def alert_of(row: Any) -> Alert:
    return Alert(
        id=row.id,
        incident_id=row.incident_id,
        service_id=row.service_id,
        dedup_key=row.dedup_key,
        source_group=row.source_group,
        status=AlertStatus(row.status),
        severity=None if row.severity is None else Severity(row.severity),
        raw_severity=row.raw_severity,
        urgency=Urgency(row.urgency),
        summary=row.summary,
        labels=row.labels,
        links=tuple(Link(one["url"], one["text"]) for one in row.links),
        event_count=row.event_count,
        flap_count=row.flap_count,
        started_at=row.started_at,
        first_seen_at=row.first_seen_at,
        last_seen_at=row.last_seen_at,
        resolved_at=row.resolved_at,
    )


async def open_by_key(tx: Tx, org_id: int, keys: Sequence[Key]) -> dict[Key, Alert]:
    if not keys:
        return {}
    wanted = set(keys)
    rows = await tx.execute(
        sa.select(alerts).where(
            alerts.c.org_id == org_id,
            any_of(alerts.c.service_id, sorted({service for service, _ in keys})),
            any_of(alerts.c.dedup_key, sorted({key for _, key in keys})),
            OPEN,
        )
    )
    found = {(row.service_id, row.dedup_key): alert_of(row) for row in rows}
    return {key: alert for key, alert in found.items() if key in wanted}


async def of_source_groups(
    tx: Tx, org_id: int, service_id: int, groups: Sequence[str]
) -> list[tuple[str, str, datetime | None]]:
    """(source group, dedup key, start) of every alert open under these raw group keys."""
    rows = await tx.execute(
        sa.select(alerts.c.source_group, alerts.c.dedup_key, alerts.c.started_at).where(
            alerts.c.org_id == org_id,
            alerts.c.service_id == service_id,
            any_of(alerts.c.source_group, groups),
            OPEN,
        )
    )
    return [(row.source_group, row.dedup_key, row.started_at) for row in rows]


async def last_of_incidents(
    tx: Tx, org_id: int, incident_ids: Sequence[int], keys: Sequence[Key]
) -> dict[Key, Alert]:
    """The newest closed alert of each key within these incidents."""
    if not keys or not incident_ids:
        return {}
    wanted = set(keys)
    rows = await tx.execute(
        sa.select(alerts)
        .where(
            alerts.c.org_id == org_id,
            any_of(alerts.c.incident_id, incident_ids),
            any_of(alerts.c.dedup_key, sorted({key for _, key in keys})),
        )
        .order_by(alerts.c.id)
    )
    found = {(row.service_id, row.dedup_key): alert_of(row) for row in rows}
    return {key: alert for key, alert in found.items() if key in wanted}


async def of_incident(tx: Tx, org_id: int, incident_ids: Sequence[int]) -> list[Alert]:
    rows = await tx.execute(
        sa.select(alerts)
        .where(alerts.c.org_id == org_id, any_of(alerts.c.incident_id, incident_ids))
        .order_by(alerts.c.last_seen_at.desc(), alerts.c.id.desc())
    )
    return [alert_of(row) for row in rows]


@dataclass(frozen=True, slots=True)
class NewAlert:
    service_id: int
    incident_id: int
    dedup_key: str
    source_group: str | None
    severity: str | None
    raw_severity: str
    urgency: str
    summary: str
    labels: dict[str, str]
    links: list[dict[str, str]]
    event_count: int
    started_at: datetime | None


async def insert(tx: Tx, org_id: int, new: Sequence[NewAlert], now: datetime) -> dict[Key, int]:
    """Insert; a key whose alert another transaction opened meanwhile is missing from the answer."""
    if not new:
        return {}
    rows = await insert_many(
        tx,
        alerts,
        [
            {
                "service_id": one.service_id,
                "incident_id": one.incident_id,
                "dedup_key": one.dedup_key,
                "source_group": one.source_group,
                "severity": one.severity,
                "raw_severity": one.raw_severity,
                "urgency": one.urgency,
                "summary": one.summary,
                "labels": one.labels,
                "links": one.links,
                "event_count": one.event_count,
                "started_at": one.started_at,
            }
            for one in new
        ],
        _unless_open,
        {"org_id": org_id, "status": AlertStatus.FIRING.value, "first_seen_at": now, "last_seen_at": now},
    )
    return {(row.service_id, row.dedup_key): row.id for row in rows}


def _unless_open(insert: Insert) -> ReturningInsert[Any]:
    key = ["org_id", "service_id", "dedup_key"]
    insert = insert.on_conflict_do_nothing(index_elements=key, index_where=OPEN)
    return insert.returning(alerts.c.id, alerts.c.service_id, alerts.c.dedup_key)


def _held(org_id: int, of: sa.ColumnElement[bool]) -> sa.CTE:
    """The open alerts `of`, locked in order of id: one order everywhere, hence no deadlocks."""
    return (
        sa.select(alerts.c.id)
        .where(alerts.c.org_id == org_id, of, OPEN)
        .order_by(alerts.c.id)
        .with_for_update(key_share=True)
        .cte("held")
    )


def _update(org_id: int, of: sa.ColumnElement[bool]) -> sa.Update:
    """Of alerts that are open. The predicate is restated: it is asked again of a row that moved."""
    held = _held(org_id, of)
    return sa.update(alerts).where(alerts.c.id.in_(sa.select(held.c.id)), OPEN)


async def lock_open(tx: Tx, org_id: int, ids: Sequence[int]) -> dict[int, Alert]:
    """Lock those of these alerts that are open, in order of id."""
    if not ids:
        return {}
    rows = await tx.execute(
        sa.select(alerts)
        .where(alerts.c.org_id == org_id, any_of(alerts.c.id, ids), OPEN)
        .order_by(alerts.c.id)
        .with_for_update(key_share=True)
    )
    return {row.id: alert_of(row) for row in rows}


async def repeat(tx: Tx, org_id: int, times: Mapping[int, int], now: datetime) -> set[int]:
    """Count so many more events on each alert that is still open; returns those that were."""
    by_times: dict[int, list[int]] = defaultdict(list)
    for alert_id, count in times.items():
        by_times[count].append(alert_id)
    if len(by_times) > 1:
        await lock_open(tx, org_id, sorted(times))  # several updates, still one order of locks
    matched: set[int] = set()
    for count, ids in by_times.items():
        rows = await tx.execute(
            _update(org_id, any_of(alerts.c.id, ids))
            .values(event_count=alerts.c.event_count + count, last_seen_at=now)
            .returning(alerts.c.id)
        )
        matched.update(rows.scalars())
    return matched


async def reword(tx: Tx, org_id: int, words: Mapping[int, str]) -> None:
    """The newest words of the source, on alerts that are locked already."""
    if words:
        await tx.execute(
            sa.update(alerts)
            .where(alerts.c.org_id == org_id, alerts.c.id == sa.bindparam("of_id"), OPEN)
            .values(summary=sa.bindparam("new_summary", type_=sa.Text)),
            [{"of_id": alert_id, "new_summary": text} for alert_id, text in words.items()],
        )


@dataclass(frozen=True, slots=True)
class Refresh:
    """What an event changes on an alert that it repeats or takes up again."""

    alert_id: int
    times: int
    flaps: int
    severity: str | None
    raw_severity: str
    urgency: str
    summary: str
    started_at: datetime | None


async def refresh(tx: Tx, org_id: int, rows: Sequence[Refresh], now: datetime) -> None:
    """Firing (again), with the newest words of the source."""
    if rows:
        await tx.execute(
            sa.update(alerts)
            .where(alerts.c.org_id == org_id, alerts.c.id == sa.bindparam("of_id"))
            .values(
                status=AlertStatus.FIRING.value,
                resolved_at=None,
                resolved_by=None,
                event_count=alerts.c.event_count + sa.bindparam("times"),
                flap_count=alerts.c.flap_count + sa.bindparam("flaps"),
                severity=sa.bindparam("new_severity", type_=sa.Text),
                raw_severity=sa.bindparam("new_raw", type_=sa.Text),
                urgency=sa.bindparam("new_urgency", type_=sa.Text),
                summary=sa.bindparam("new_summary", type_=sa.Text),
                started_at=sa.bindparam("new_start", type_=alerts.c.started_at.type),
                last_seen_at=now,
            ),
            [
                {
                    "of_id": one.alert_id,
                    "times": one.times,
                    "flaps": one.flaps,
                    "new_severity": one.severity,
                    "new_raw": one.raw_severity,
                    "new_urgency": one.urgency,
                    "new_summary": one.summary,
                    "new_start": one.started_at,
                }
                for one in rows
            ],
        )


async def resolve(tx: Tx, org_id: int, ids: Sequence[int], by: str, now: datetime) -> None:
    if ids:
        await tx.execute(
            _update(org_id, any_of(alerts.c.id, ids)).values(
                status=AlertStatus.RESOLVED.value, resolved_at=now, resolved_by=by, last_seen_at=now
            )
        )


async def close_all(tx: Tx, org_id: int, incident_ids: Sequence[int], by: str, now: datetime) -> list[Alert]:
    """Close what is open on these incidents, and say which; their keys' memory is the caller's."""
    rows = await tx.execute(
        _update(org_id, any_of(alerts.c.incident_id, incident_ids))
        .values(status=AlertStatus.RESOLVED.value, resolved_at=now, resolved_by=by)
        .returning(alerts)
    )
    return [alert_of(row) for row in rows]


async def keys_of_incidents(tx: Tx, org_id: int, incident_ids: Sequence[int]) -> list[Key]:
    """The keys of the alerts open on these incidents."""
    rows = await tx.execute(
        sa.select(alerts.c.service_id, alerts.c.dedup_key).where(
            alerts.c.org_id == org_id, any_of(alerts.c.incident_id, incident_ids), OPEN
        )
    )
    return [(row.service_id, row.dedup_key) for row in rows]
