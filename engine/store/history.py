"""Schedules over a stretch of time: each version while it was in force, with the overrides of then.

Only reads. An override that was cancelled held until then, and one that was made late held from then on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

import sqlalchemy as sa

from engine.db import Tx
from engine.directory import InForce
from engine.errors import BadInput
from engine.schedule import OverrideKind, ScheduleOverride, parse_schedule, with_overrides
from engine.schema import overrides, schedule_versions, schedules
from engine.store.calendars import read_shifts


async def read_history(
    tx: Tx, org_id: int, a: datetime, b: datetime, schedule_id: int | None = None
) -> dict[int, list[InForce]]:
    """By schedule that is there now: what was, is and will be in force from `a` up to `b`, in order."""
    versions_of, overrides_of = _versions(org_id, a, b), _overrides(org_id, a, b)
    if schedule_id is not None:
        versions_of = versions_of.where(schedule_versions.c.schedule_id == schedule_id)
        overrides_of = overrides_of.where(overrides.c.schedule_id == schedule_id)
    versions = defaultdict(list)
    for row in await tx.execute(versions_of):
        versions[row.schedule_id].append(row)
    taken = defaultdict(list)
    for row in await tx.execute(overrides_of):
        taken[row.schedule_id].append(row)
    followed = await read_shifts(tx, org_id, a)
    return {
        one: [*_in_force(rows, [*followed.get(one, ()), *map(_as_it_held, taken[one])], a, b)]
        for one, rows in versions.items()
    }


def _versions(org_id: int, a: datetime, b: datetime) -> sa.Select[Any]:
    """The last of each schedule that began up to `a`, and those that begin before `b`."""
    v = schedule_versions.c
    older = schedule_versions.alias("older").c
    in_force_at_a = (
        sa.select(sa.func.max(older.effective_from))
        .where(older.org_id == org_id, older.schedule_id == v.schedule_id, older.effective_from <= a)
        .scalar_subquery()
    )
    return (
        sa.select(v.schedule_id, v.effective_from, v.definition)
        .join(schedules, schedules.c.id == v.schedule_id)
        .where(v.org_id == org_id, v.effective_from < b, schedules.c.deleted_at.is_(None))
        .where(sa.or_(v.effective_from > a, v.effective_from == in_force_at_a))
        .order_by(v.schedule_id, v.effective_from, v.id)
    )


def _overrides(org_id: int, a: datetime, b: datetime) -> sa.Select[Any]:
    o = overrides.c
    held = sa.or_(o.cancelled_at.is_(None), sa.and_(o.cancelled_at > a, o.cancelled_at > o.start_at))
    return sa.select(*o).where(o.org_id == org_id, o.end_at > a, o.start_at < b, held).order_by(o.id)


def _in_force(
    versions: Sequence[Any], taken: Sequence[ScheduleOverride], a: datetime, b: datetime
) -> Iterator[InForce]:
    begins = [max(a, version.effective_from) for version in versions]
    for version, (start, end) in zip(versions, pairwise([*begins, b]), strict=True):
        if start >= end:
            continue
        try:
            plain = parse_schedule(version.definition)
        except BadInput:  # said where schedules are read to page by them
            continue
        yield InForce(with_overrides(plain, taken), start, end)


def _as_it_held(row: Any) -> ScheduleOverride:
    end = row.end_at if row.cancelled_at is None else min(row.end_at, row.cancelled_at)
    covers = None if row.covers_id is None else str(row.covers_id)
    start = max(row.start_at, row.created_at)
    return ScheduleOverride(OverrideKind(row.kind), str(row.person_id), start, end, covers)
