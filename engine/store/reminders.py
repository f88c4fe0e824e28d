"""Which reminders each person turned off, and how far the changes of each schedule were told.

Decides nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from engine.db import Tx, upsert
from engine.models import TimerKind
from engine.schema import overrides, reminders_off, schedules, shift_marks, timers


async def off(tx: Tx, org_id: int) -> Mapping[int, frozenset[str]]:
    """By person: the kinds that they turned off."""
    found: dict[int, set[str]] = defaultdict(set)
    rows = await tx.execute(
        sa.select(reminders_off.c.person_id, reminders_off.c.kind).where(reminders_off.c.org_id == org_id)
    )
    for row in rows:
        found[row.person_id].add(row.kind)
    return {person: frozenset(kinds) for person, kinds in found.items()}


async def turn_off(tx: Tx, org_id: int, person_id: int, kinds: Collection[str]) -> None:
    for kind in sorted(kinds):
        insert = upsert(tx, reminders_off).values(org_id=org_id, person_id=person_id, kind=kind)
        await tx.execute(insert.on_conflict_do_nothing(index_elements=["org_id", "person_id", "kind"]))


async def turn_on(tx: Tx, org_id: int, person_id: int, kinds: Collection[str]) -> None:
    for kind in sorted(kinds):
        await tx.execute(
            sa.delete(reminders_off).where(
                reminders_off.c.org_id == org_id,
                reminders_off.c.person_id == person_id,
                reminders_off.c.kind == kind,
            )
        )


@dataclass(frozen=True, slots=True)
class Mark:
    """Who was said to be on call the last time, and up to when things were told."""

    people: frozenset[int]
    told_until: datetime


async def mark(tx: Tx, org_id: int, schedule_id: int) -> Mark | None:
    row = (
        await tx.execute(
            sa.select(shift_marks.c.people, shift_marks.c.told_until).where(
                shift_marks.c.org_id == org_id, shift_marks.c.schedule_id == schedule_id
            )
        )
    ).first()
    return None if row is None else Mark(frozenset(row.people), row.told_until)


async def set_mark(tx: Tx, org_id: int, schedule_id: int, new: Mark) -> None:
    insert = upsert(tx, shift_marks).values(
        org_id=org_id, schedule_id=schedule_id, people=sorted(new.people), told_until=new.told_until
    )
    excluded = insert.excluded
    await tx.execute(
        insert.on_conflict_do_update(
            index_elements=["org_id", "schedule_id"],
            set_={"people": excluded.people, "told_until": excluded.told_until},
        )
    )


async def forget_mark(tx: Tx, org_id: int, schedule_id: int) -> None:
    """A schedule that was deleted announces nothing should it come back."""
    await tx.execute(
        sa.delete(shift_marks).where(shift_marks.c.org_id == org_id, shift_marks.c.schedule_id == schedule_id)
    )


async def overridden_since(tx: Tx, org_id: int, schedule_id: int, since: datetime, now: datetime) -> bool:
    """Was an override that is on by now set after `since`, or taken back?"""
    changed = sa.or_(overrides.c.created_at > since, overrides.c.cancelled_at > since)
    row = await tx.scalar(
        sa.select(overrides.c.id)
        .where(overrides.c.org_id == org_id, overrides.c.schedule_id == schedule_id)
        .where(overrides.c.end_at > since, overrides.c.start_at <= now, changed)
        .limit(1)
    )
    return row is not None


async def is_deleted(tx: Tx, org_id: int, schedule_id: int) -> bool:
    """One that cannot be read is not."""
    row = await tx.scalar(
        sa.select(schedules.c.id).where(
            schedules.c.org_id == org_id, schedules.c.id == schedule_id, schedules.c.deleted_at.is_(None)
        )
    )
    return row is None


async def armed(tx: Tx, org_id: int) -> Mapping[int, datetime]:
    """By schedule: when its shifts are looked at next."""
    rows = await tx.execute(
        sa.select(timers.c.subject_id, timers.c.due_at).where(
            timers.c.org_id == org_id, timers.c.kind == TimerKind.SHIFT.value
        )
    )
    return {row.subject_id: row.due_at for row in rows}
