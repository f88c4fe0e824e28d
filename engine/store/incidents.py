"""Incident rows: read, lock, insert, save, seal. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import RowMapping

from engine.bulk import Insert, ReturningInsert, insert_many, update_many
from engine.db import Tx, any_of, given, given_list
from engine.directory import Target, TargetKind
from engine.escalation.fate import Fate, Kept
from engine.grouping import severity_weight
from engine.models import Actor, IncidentStatus, Severity, TimerKind, Urgency, Via
from engine.schema import OPEN, incidents

NOTHING_NEW: Final[Mapping[int, int]] = {}


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident row; everything that `decide` moves is its `fate`."""

    id: int
    org_id: int
    number: int | None
    service_id: int
    group_key: str
    title: str
    policy_version_id: int | None
    opened_at: datetime
    last_joined_at: datetime
    last_paged_at: datetime | None
    alert_count: int
    fate: Fate


@dataclass(frozen=True, slots=True)
class NewIncident:
    service_id: int
    group_key: str
    title: str
    fate: Fate
    severity: str | None
    raw_severity: str
    opened_at: datetime
    alert_count: int
    truncated: int = 0
    opened_by: str = ""
    last_paged_at: datetime | None = None


def _incident(row: RowMapping) -> Incident:
    # Why a mapping: a row whose columns are asked for as attributes costs eight times as much.
    return Incident(
        id=row["id"],
        org_id=row["org_id"],
        number=row["number"],
        service_id=row["service_id"],
        group_key=row["group_key"],
        title=row["title"],
        policy_version_id=row["policy_version_id"],
        opened_at=row["opened_at"],
        last_joined_at=row["last_joined_at"],
        last_paged_at=row["last_paged_at"],
        alert_count=row["alert_count"],
        fate=_fate(row),
    )


def _fate(row: RowMapping) -> Fate:
    severity = None if row["severity"] is None else Severity(row["severity"])
    return Fate(
        status=IncidentStatus(row["status"]),
        urgency=Urgency(row["urgency"]),
        severity=severity_weight(severity),
        epoch=row["epoch"],
        round=row["round"],
        pass_=row["pass"],
        level=row["level"],
        level_started_at=row["level_started_at"],
        reached=row["reached"],
        links=row["links"],
        reassigned_to=_target(row["reassigned_to"]),
        open_alerts=row["open_alerts"],
        acknowledged_at=row["acknowledged_at"],
        acknowledged_by=_actor(row["acknowledged_name"], row["acknowledged_via"], row["acknowledged_by"]),
        snoozed_until=row["snoozed_until"],
        held_until=row["held_until"],
        resolved_at=row["resolved_at"],
        resolved_by=_actor(row["resolved_by"], row["resolved_via"], None),
        kept=_kept(row),
        merged_into=row["merged_into"],
    )


def _target(stored: Any) -> Target | None:
    return None if stored is None else Target(TargetKind(stored["kind"]), stored["ref"])


def _actor(name: str | None, via: str | None, person_id: int | None) -> Actor | None:
    return None if name is None or via is None else Actor(name, Via(via), person_id)


def _kept(row: RowMapping) -> Kept | None:
    if row["kept_status"] is None:
        return None
    timer = None if row["kept_timer"] is None else TimerKind(row["kept_timer"])
    return Kept(IncidentStatus(row["kept_status"]), timer, row["kept_left"])


def fate_columns(fate: Fate) -> dict[str, Any]:
    """The columns of a fate; `severity` is written by whoever knows the word."""
    ack, resolve, kept = fate.acknowledged_by, fate.resolved_by, fate.kept
    target = fate.reassigned_to
    return {
        "status": fate.status.value,
        "urgency": fate.urgency.value,
        "epoch": fate.epoch,
        "round": fate.round,
        "pass": fate.pass_,
        "level": fate.level,
        "level_started_at": fate.level_started_at,
        "reached": fate.reached,
        "links": fate.links,
        "reassigned_to": None if target is None else {"kind": target.kind.value, "ref": target.ref},
        "open_alerts": fate.open_alerts,
        "acknowledged_at": fate.acknowledged_at,
        "acknowledged_by": ack.person_id if ack else None,
        "acknowledged_name": ack.name if ack else None,
        "acknowledged_via": ack.via.value if ack else None,
        "snoozed_until": fate.snoozed_until,
        "held_until": fate.held_until,
        "resolved_at": fate.resolved_at,
        "resolved_by": resolve.name if resolve else None,
        "resolved_via": resolve.via.value if resolve else None,
        "kept_status": kept.status.value if kept else None,
        "kept_timer": kept.timer.value if kept and kept.timer else None,
        "kept_left": kept.left if kept else None,
        "merged_into": fate.merged_into,
    }


_READ = (
    sa.select(incidents)
    .where(any_of(incidents.c.id, given_list("ids", incidents.c.id)))
    .order_by(incidents.c.id)
)


async def read(tx: Tx, ids: Sequence[int]) -> list[Incident]:
    rows = await tx.execute(_READ, {"ids": ids})
    return [_incident(row) for row in rows.mappings()]


# By `skip_locked`. Why `key_share`: a row that only names an incident (an event, a delivery) takes a share
# of its key; it must not wait for us, since whoever writes it may hold what we need next.
_LOCK = {skip: _READ.with_for_update(skip_locked=skip, key_share=True) for skip in (False, True)}
_LOCK_SHARED = {skip: _READ.with_for_update(read=True, skip_locked=skip) for skip in (False, True)}


async def lock(tx: Tx, ids: Sequence[int], *, skip_locked: bool = False) -> list[Incident]:
    """Lock these incidents, in order of id: one order everywhere, hence no deadlocks."""
    if not ids:
        return []
    rows = await tx.execute(_LOCK[skip_locked], {"ids": sorted(ids)})
    return [_incident(row) for row in rows.mappings()]


async def lock_shared(tx: Tx, ids: Sequence[int], *, skip_locked: bool = False) -> dict[int, Incident]:
    """Nobody changes these until the transaction ends; others may read them just so."""
    rows = await tx.execute(_LOCK_SHARED[skip_locked], {"ids": sorted(ids)})
    return {one.id: one for one in map(_incident, rows.mappings())}


_IS_THERE = sa.select(incidents.c.id).where(
    incidents.c.id == given("one", incidents.c.id),
    incidents.c.org_id == given("org", incidents.c.org_id),
)


async def is_there(tx: Tx, org_id: int, incident_id: int) -> bool:
    return await tx.scalar(_IS_THERE, {"one": incident_id, "org": org_id}) is not None


_ID_OF = sa.select(incidents.c.id).where(
    incidents.c.org_id == given("org", incidents.c.org_id),
    incidents.c.number == given("of_number", incidents.c.number),
)


async def id_of(tx: Tx, org_id: int, number: int) -> int | None:
    found = await tx.scalar(_ID_OF, {"org": org_id, "of_number": number})
    return None if found is None else int(found)


_OPEN_BY_GROUP = sa.select(incidents.c.service_id, incidents.c.group_key, incidents.c.id).where(
    incidents.c.org_id == given("org", incidents.c.org_id),
    any_of(incidents.c.service_id, given_list("services", incidents.c.service_id)),
    any_of(incidents.c.group_key, given_list("groups", incidents.c.group_key)),
    OPEN,
)


async def open_by_group(
    tx: Tx, org_id: int, services: Sequence[int], group_keys: Sequence[str]
) -> dict[tuple[int, str], int]:
    """The open incident of each (service, group key)."""
    if not group_keys:
        return {}
    rows = await tx.execute(_OPEN_BY_GROUP, {"org": org_id, "services": services, "groups": group_keys})
    return {(service_id, group_key): one for service_id, group_key, one in rows}


async def insert(tx: Tx, org_id: int, new: Sequence[NewIncident]) -> dict[tuple[int, str], int]:
    """Insert; a group that another transaction opened meanwhile is missing from the answer."""
    if not new:
        return {}
    rows = await insert_many(tx, incidents, [_columns(one) for one in new], _unless_open, {"org_id": org_id})
    return {(service_id, group_key): one for service_id, group_key, one in rows}


def _unless_open(insert: Insert) -> ReturningInsert[Any]:
    key = ["org_id", "service_id", "group_key"]
    insert = insert.on_conflict_do_nothing(index_elements=key, index_where=OPEN)
    return insert.returning(incidents.c.service_id, incidents.c.group_key, incidents.c.id)


def _columns(new: NewIncident) -> dict[str, Any]:
    return {
        "service_id": new.service_id,
        "group_key": new.group_key,
        "title": new.title,
        "severity": new.severity,
        "raw_severity": new.raw_severity,
        "alert_count": new.alert_count,
        "truncated": new.truncated,
        "opened_by": new.opened_by,
        "opened_at": new.opened_at,
        "last_joined_at": new.opened_at,
        "last_paged_at": new.last_paged_at,
        **fate_columns(new.fate),
    }


async def save_fates(
    tx: Tx, changed: Sequence[tuple[Incident, Fate]], versions: Mapping[int, int] = NOTHING_NEW
) -> None:
    """Give each incident its new fate; writes the columns that differ for at least one of them.

    `versions`: the policy versions that they walk from now on, by incident, where that is new.
    """
    rows = [(one, fate_columns(one.fate), fate_columns(new)) for one, new in changed]
    differ = sorted({name for _, old, new in rows for name, value in new.items() if old[name] != value})
    written: list[dict[str, Any]] = [
        {"id": one.id, **{name: new[name] for name in differ}} for one, _, new in rows
    ]
    if versions:
        for row, (one, _) in zip(written, changed, strict=True):
            row["policy_version_id"] = versions.get(one.id, one.policy_version_id)
    if differ or versions:
        await update_many(tx, incidents, written)


def sealed_key(group_key: str, incident_id: int) -> str:
    """What a group key becomes when its incident takes no new alerts any more."""
    return f"{group_key}#sealed:{incident_id}"


async def seal(tx: Tx, sealed: Sequence[Incident]) -> None:
    """Free the group keys of open incidents that no new alert may join any more."""
    if sealed:
        rows = [{"id": one.id, "group_key": sealed_key(one.group_key, one.id)} for one in sealed]
        await update_many(tx, incidents, rows)


async def set_policy(tx: Tx, versions: dict[int, int]) -> None:
    """Remember the policy version that each incident walks."""
    if versions:
        rows = [{"id": one, "policy_version_id": version} for one, version in versions.items()]
        await update_many(tx, incidents, rows)


_PAGED = (
    sa.update(incidents)
    .where(any_of(incidents.c.id, given_list("ids", incidents.c.id)))
    .values(last_paged_at=given("now", incidents.c.last_paged_at))
)


async def paged(tx: Tx, ids: Sequence[int], now: datetime) -> None:
    if ids:
        await tx.execute(_PAGED, {"ids": ids, "now": now})
