"""Alert rows: found, opened, counted, closed. Decides nothing; their dedup keys are locked before them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import RowMapping

from engine.bulk import Insert, ReturningInsert, insert_many
from engine.db import Tx, any_of, given, given_list
from engine.models import Alert, AlertStatus, Link, Severity, Urgency
from engine.schema import OPEN, alerts
from engine.store.dedup_keys import Key


def alert_of(row: RowMapping) -> Alert:
    # Why a mapping: a row whose columns are asked for as attributes costs eight times as much.
    return Alert(
        id=row["id"],
        incident_id=row["incident_id"],
        service_id=row["service_id"],
        dedup_key=row["dedup_key"],
        source_group=row["source_group"],
        status=AlertStatus(row["status"]),
        severity=None if row["severity"] is None else Severity(row["severity"]),
        raw_severity=row["raw_severity"],
        urgency=Urgency(row["urgency"]),
        summary=row["summary"],
        labels=row["labels"],
        links=tuple(Link(one["url"], one["text"]) for one in row["links"]),
        event_count=row["event_count"],
        flap_count=row["flap_count"],
        started_at=row["started_at"],
        first_seen_at=row["first_seen_at"],
        last_seen_at=row["last_seen_at"],
        resolved_at=row["resolved_at"],
    )


_OF_ORG = alerts.c.org_id == given("org", alerts.c.org_id)
_OF_IDS = any_of(alerts.c.id, given_list("ids", alerts.c.id))
_OF_KEYS = any_of(alerts.c.dedup_key, given_list("keys", alerts.c.dedup_key))
_OF_INCIDENTS = any_of(alerts.c.incident_id, given_list("incidents", alerts.c.incident_id))

_OPEN_BY_KEY = sa.select(alerts).where(
    _OF_ORG, any_of(alerts.c.service_id, given_list("services", alerts.c.service_id)), _OF_KEYS, OPEN
)


async def open_by_key(tx: Tx, org_id: int, keys: Sequence[Key]) -> dict[Key, Alert]:
    if not keys:
        return {}
    wanted = set(keys)
    services, names = sorted({service for service, _ in keys}), sorted({key for _, key in keys})
    rows = await tx.execute(_OPEN_BY_KEY, {"org": org_id, "services": services, "keys": names})
    found = (alert_of(row) for row in rows.mappings())
    return {key: alert for alert in found if (key := (alert.service_id, alert.dedup_key)) in wanted}


_OF_SOURCE_GROUPS = sa.select(alerts.c.source_group, alerts.c.dedup_key, alerts.c.started_at).where(
    _OF_ORG,
    alerts.c.service_id == given("service", alerts.c.service_id),
    any_of(alerts.c.source_group, given_list("groups", alerts.c.source_group)),
    OPEN,
)


async def of_source_groups(
    tx: Tx, org_id: int, service_id: int, groups: Sequence[str]
) -> list[tuple[str, str, datetime | None]]:
    """(source group, dedup key, start) of every alert open under these raw group keys."""
    rows = await tx.execute(_OF_SOURCE_GROUPS, {"org": org_id, "service": service_id, "groups": groups})
    return [(group, key, started_at) for group, key, started_at in rows]


_LAST_OF_INCIDENTS = sa.select(alerts).where(_OF_ORG, _OF_INCIDENTS, _OF_KEYS).order_by(alerts.c.id)


async def last_of_incidents(
    tx: Tx, org_id: int, incident_ids: Sequence[int], keys: Sequence[Key]
) -> dict[Key, Alert]:
    """The newest closed alert of each key within these incidents."""
    if not keys or not incident_ids:
        return {}
    wanted = set(keys)
    names = sorted({key for _, key in keys})
    rows = await tx.execute(_LAST_OF_INCIDENTS, {"org": org_id, "incidents": incident_ids, "keys": names})
    found = (alert_of(row) for row in rows.mappings())
    return {key: alert for alert in found if (key := (alert.service_id, alert.dedup_key)) in wanted}


_OF_INCIDENT = (
    sa.select(alerts).where(_OF_ORG, _OF_INCIDENTS).order_by(alerts.c.last_seen_at.desc(), alerts.c.id.desc())
)


async def of_incident(tx: Tx, org_id: int, incident_ids: Sequence[int]) -> list[Alert]:
    rows = await tx.execute(_OF_INCIDENT, {"org": org_id, "incidents": incident_ids})
    return [alert_of(row) for row in rows.mappings()]


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
    return {(service_id, key): one for service_id, key, one in rows}


def _unless_open(insert: Insert) -> ReturningInsert[Any]:
    key = ["org_id", "service_id", "dedup_key"]
    insert = insert.on_conflict_do_nothing(index_elements=key, index_where=OPEN)
    return insert.returning(alerts.c.service_id, alerts.c.dedup_key, alerts.c.id)


def _held(of: sa.ColumnElement[bool]) -> sa.CTE:
    """The open alerts `of`, locked in order of id: one order everywhere, hence no deadlocks."""
    return (
        sa.select(alerts.c.id)
        .where(_OF_ORG, of, OPEN)
        .order_by(alerts.c.id)
        .with_for_update(key_share=True)
        .cte("held")
    )


def _update(of: sa.ColumnElement[bool]) -> sa.Update:
    """Of alerts that are open. The predicate is restated: it is asked again of a row that moved."""
    return sa.update(alerts).where(alerts.c.id.in_(sa.select(_held(of).c.id)), OPEN)


_LOCK_OPEN = (
    sa.select(alerts).where(_OF_ORG, _OF_IDS, OPEN).order_by(alerts.c.id).with_for_update(key_share=True)
)


async def lock_open(tx: Tx, org_id: int, ids: Sequence[int]) -> dict[int, Alert]:
    """Lock those of these alerts that are open, in order of id."""
    if not ids:
        return {}
    rows = await tx.execute(_LOCK_OPEN, {"org": org_id, "ids": ids})
    return {alert.id: alert for alert in map(alert_of, rows.mappings())}


_NOW = given("now", alerts.c.last_seen_at)

_REPEAT = (
    _update(_OF_IDS)
    .values(event_count=alerts.c.event_count + given("times", alerts.c.event_count), last_seen_at=_NOW)
    .returning(alerts.c.id)
)


async def repeat(tx: Tx, org_id: int, times: Mapping[int, int], now: datetime) -> set[int]:
    """Count so many more events on each alert that is still open; returns those that were."""
    by_times: dict[int, list[int]] = defaultdict(list)
    for alert_id, count in times.items():
        by_times[count].append(alert_id)
    if len(by_times) > 1:
        await lock_open(tx, org_id, sorted(times))  # several updates, still one order of locks
    matched: set[int] = set()
    for count, ids in by_times.items():
        rows = await tx.execute(_REPEAT, {"org": org_id, "ids": ids, "times": count, "now": now})
        matched.update(rows.scalars())
    return matched


_REWORD = (
    sa.update(alerts)
    .where(_OF_ORG, alerts.c.id == given("of_id", alerts.c.id), OPEN)
    .values(summary=given("new_summary", alerts.c.summary))
)


async def reword(tx: Tx, org_id: int, words: Mapping[int, str]) -> None:
    """The newest words of the source, on alerts that are locked already."""
    if words:
        await tx.execute(
            _REWORD,
            [{"org": org_id, "of_id": alert_id, "new_summary": text} for alert_id, text in words.items()],
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


_REFRESH = (
    sa.update(alerts)
    .where(_OF_ORG, alerts.c.id == given("of_id", alerts.c.id))
    .values(
        status=AlertStatus.FIRING.value,
        resolved_at=None,
        resolved_by=None,
        event_count=alerts.c.event_count + given("times", alerts.c.event_count),
        flap_count=alerts.c.flap_count + given("flaps", alerts.c.flap_count),
        severity=given("new_severity", alerts.c.severity),
        raw_severity=given("new_raw", alerts.c.raw_severity),
        urgency=given("new_urgency", alerts.c.urgency),
        summary=given("new_summary", alerts.c.summary),
        started_at=given("new_start", alerts.c.started_at),
        last_seen_at=_NOW,
    )
)


async def refresh(tx: Tx, org_id: int, rows: Sequence[Refresh], now: datetime) -> None:
    """Firing (again), with the newest words of the source."""
    if rows:
        await tx.execute(
            _REFRESH,
            [
                {
                    "org": org_id,
                    "now": now,
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


_RESOLVED = {
    "status": AlertStatus.RESOLVED.value,
    "resolved_at": _NOW,
    "resolved_by": given("by", alerts.c.resolved_by),
}
_RESOLVE = _update(_OF_IDS).values(last_seen_at=_NOW, **_RESOLVED)
_CLOSE_ALL = _update(_OF_INCIDENTS).values(**_RESOLVED).returning(alerts)


async def resolve(tx: Tx, org_id: int, ids: Sequence[int], by: str, now: datetime) -> None:
    if ids:
        await tx.execute(_RESOLVE, {"org": org_id, "ids": ids, "by": by, "now": now})


async def close_all(tx: Tx, org_id: int, incident_ids: Sequence[int], by: str, now: datetime) -> list[Alert]:
    """Close what is open on these incidents, and say which; their keys' memory is the caller's."""
    rows = await tx.execute(_CLOSE_ALL, {"org": org_id, "incidents": incident_ids, "by": by, "now": now})
    return [alert_of(row) for row in rows.mappings()]


_KEYS_OF_INCIDENTS = sa.select(alerts.c.service_id, alerts.c.dedup_key).where(_OF_ORG, _OF_INCIDENTS, OPEN)


async def keys_of_incidents(tx: Tx, org_id: int, incident_ids: Sequence[int]) -> list[Key]:
    """The keys of the alerts open on these incidents."""
    rows = await tx.execute(_KEYS_OF_INCIDENTS, {"org": org_id, "incidents": incident_ids})
    return [(service_id, key) for service_id, key in rows]
