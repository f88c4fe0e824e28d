"""Schedules as rows: a name, a version for every change, and overrides.

Never changes a version: who was on call last Tuesday stays true.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
import structlog

from engine.db import Tx, upsert
from engine.directory import NamedSchedule, Override
from engine.errors import BadInput
from engine.schedule import OverrideKind, Schedule, ScheduleOverride, parse_schedule, with_overrides
from engine.schema import overrides, schedule_versions, schedules
from engine.store.calendars import read_shifts

log = structlog.get_logger(__name__)

RECENT: Final = timedelta(days=1)  # ended overrides are kept that long: "since when" looks back at them


@dataclass(frozen=True, slots=True)
class Version:
    """What is known of a version besides what it says, and whether its schedule was deleted."""

    id: int
    created_at: datetime
    created_by: str
    schedule: str
    deleted_at: datetime | None
    deleted_by: str | None


async def read_schedules(tx: Tx, org_id: int, now: datetime) -> dict[int, NamedSchedule]:
    """The version in force at `now` of each schedule that was not deleted, with its overrides, by id."""
    overridden = await _overrides_by_schedule(tx, org_id, now)
    followed = await read_shifts(tx, org_id, now - RECENT)
    found: dict[int, NamedSchedule] = {}
    for row in await tx.execute(_in_force(org_id, now)):
        # Why not raise: one schedule that cannot be read must not stop the others; its level falls back.
        try:
            plain = parse_schedule(row.definition)
        except BadInput as error:
            log.error("schedule.unreadable", schedule=row.name, error=str(error))  # noqa: TRY400  # said
            continue
        by_hand = map(taken, overridden[row.schedule_id])
        schedule = with_overrides(plain, [*followed.get(row.schedule_id, ()), *by_hand])
        found[row.schedule_id] = replace(
            named(row.schedule_id, row.name, schedule),
            channel=row.channel,
            user_group=row.user_group,
            topic=row.topic,
        )
    return found


def named(schedule_id: int, name: str, schedule: Schedule) -> NamedSchedule:
    """The schedule with the ids of those in its layers, in the order of their first turns."""
    users = [user for layer in schedule.layers for entry in layer.users for user in entry]
    fallback = None if schedule.fallback is None else int(schedule.fallback)
    return NamedSchedule(schedule_id, name, schedule, tuple(map(int, dict.fromkeys(users))), fallback)


async def name_schedule(tx: Tx, org_id: int, name: str) -> int:
    """The id of the schedule of this name, made or brought back if need be."""
    insert = upsert(tx, schedules).values(org_id=org_id, name=name)
    statement = insert.on_conflict_do_update(index_elements=["org_id", "name"], set_={"deleted_at": None})
    return int((await tx.execute(statement.returning(schedules.c.id))).scalar_one())


async def show_schedule(
    tx: Tx, org_id: int, schedule_id: int, channel: str | None, user_group: str | None, topic: bool
) -> None:
    """Where Slack tells of the schedule and shows whoever is on call."""
    await tx.execute(
        sa.update(schedules)
        .where(schedules.c.org_id == org_id, schedules.c.id == schedule_id)
        .values(channel=channel, user_group=user_group, topic=topic)
    )


async def append_schedule(
    tx: Tx, org_id: int, schedule_id: int, definition: Mapping[str, Any], now: datetime, *, by: str = ""
) -> None:
    """Store a new version that is in force from `now` on; `by` is whoever made it."""
    # Why: a clock a little behind the one of who saved last would store what never comes into force.
    newest = sa.select(sa.func.max(schedule_versions.c.effective_from)).where(
        schedule_versions.c.org_id == org_id, schedule_versions.c.schedule_id == schedule_id
    )
    last = (await tx.execute(newest)).scalar_one_or_none()
    await tx.execute(
        sa.insert(schedule_versions).values(
            org_id=org_id,
            schedule_id=schedule_id,
            effective_from=now if last is None else max(now, last),
            definition=definition,
            created_at=now,
            created_by=by,
        )
    )


async def newest_version(tx: Tx, org_id: int, schedule_id: int) -> Version | None:
    """The newest version of a schedule, deleted or not; None if there is no such schedule."""
    statement = (
        sa.select(
            schedule_versions.c.id,
            schedule_versions.c.created_at,
            schedule_versions.c.created_by,
            schedules.c.name,
            schedules.c.deleted_at,
            schedules.c.deleted_by,
        )
        .join(schedules, schedules.c.id == schedule_versions.c.schedule_id)
        .where(schedule_versions.c.org_id == org_id, schedule_versions.c.schedule_id == schedule_id)
        .order_by(schedule_versions.c.effective_from.desc(), schedule_versions.c.id.desc())
        .limit(1)
    )
    row = (await tx.execute(statement)).first()
    return None if row is None else Version(*row)


async def delete_schedule(tx: Tx, org_id: int, schedule_id: int, by: str, now: datetime) -> None:
    """Its versions stay: who was on call is still true."""
    await tx.execute(
        sa.update(schedules)
        .where(schedules.c.org_id == org_id, schedules.c.id == schedule_id, schedules.c.deleted_at.is_(None))
        .values(deleted_at=now, deleted_by=by)
    )


async def read_overrides(
    tx: Tx, org_id: int, *, after: datetime, schedule_id: int | None = None
) -> list[Override]:
    """Those not cancelled that end after `after`, in the order of their creation."""
    statement = sa.select(overrides).where(
        overrides.c.org_id == org_id, overrides.c.cancelled_at.is_(None), overrides.c.end_at > after
    )
    if schedule_id is not None:
        statement = statement.where(overrides.c.schedule_id == schedule_id)
    return [_override(row) for row in await tx.execute(statement.order_by(overrides.c.id))]


async def insert_override(tx: Tx, org_id: int, override: Override, now: datetime) -> int:
    statement = sa.insert(overrides).values(
        org_id=org_id,
        schedule_id=override.schedule_id,
        kind=override.kind,
        person_id=override.person_id,
        covers_id=override.covers_id,
        start_at=override.start_at,
        end_at=override.end_at,
        created_by=override.created_by,
        created_at=now,
    )
    return int((await tx.execute(statement.returning(overrides.c.id))).scalar_one())


async def cancel_override(tx: Tx, org_id: int, override_id: int, now: datetime) -> Override | None:
    """Mark it cancelled; None if there is none, or if it was cancelled or had ended before."""
    row = (
        await tx.execute(
            sa.update(overrides)
            .where(overrides.c.org_id == org_id, overrides.c.id == override_id)
            .where(overrides.c.cancelled_at.is_(None), overrides.c.end_at > now)
            .values(cancelled_at=now)
            .returning(*overrides.c)
        )
    ).first()
    return None if row is None else _override(row)


def _in_force(org_id: int, now: datetime) -> sa.Select[Any]:
    age = sa.func.row_number().over(
        partition_by=schedule_versions.c.schedule_id,
        order_by=(schedule_versions.c.effective_from.desc(), schedule_versions.c.id.desc()),
    )
    ranked = (
        sa.select(
            schedule_versions.c.schedule_id,
            schedule_versions.c.definition,
            schedules.c.name,
            schedules.c.channel,
            schedules.c.user_group,
            schedules.c.topic,
            age.label("age"),
        )
        .join(schedules, schedules.c.id == schedule_versions.c.schedule_id)
        .where(schedule_versions.c.org_id == org_id, schedule_versions.c.effective_from <= now)
        .where(schedules.c.deleted_at.is_(None))
        .subquery()
    )
    return sa.select(ranked).where(ranked.c.age == 1).order_by(ranked.c.schedule_id)


async def _overrides_by_schedule(tx: Tx, org_id: int, now: datetime) -> dict[int, list[Override]]:
    found: dict[int, list[Override]] = defaultdict(list)
    for override in await read_overrides(tx, org_id, after=now - RECENT):
        found[override.schedule_id].append(override)
    return found


def taken(override: Override) -> ScheduleOverride:
    """As the resolver wants it."""
    return ScheduleOverride(
        OverrideKind(override.kind),
        str(override.person_id),
        override.start_at,
        override.end_at,
        None if override.covers_id is None else str(override.covers_id),
    )


def _override(row: Any) -> Override:
    return Override(
        id=row.id,
        schedule_id=row.schedule_id,
        kind=row.kind,
        person_id=row.person_id,
        covers_id=row.covers_id,
        start_at=row.start_at,
        end_at=row.end_at,
        created_by=row.created_by,
    )
