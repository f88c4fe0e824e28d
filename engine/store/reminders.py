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
from engine.schedule import OverrideKind
from engine.schema import overrides, reminders_off, schedules, shift_marks


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


@dataclass(frozen=True, slots=True)
class Overridden:
    """An override that was set or taken back; one that only adds a person concerns no other."""

    start_at: datetime
    end_at: datetime
    only: int | None

    def tells(self, person_id: int, at: datetime) -> bool:
        """Does it say already who is on call from `at` on, to this person?"""
        return self.start_at <= at <= self.end_at and self.only in {None, person_id}


async def overrides_since(tx: Tx, org_id: int, schedule_id: int, since: datetime) -> list[Overridden]:
    """What was set after `since`, or taken back, and was not over by then."""
    rows = await tx.execute(
        sa.select(overrides.c.kind, overrides.c.person_id, overrides.c.start_at, overrides.c.end_at)
        .where(overrides.c.org_id == org_id, overrides.c.schedule_id == schedule_id)
        .where(overrides.c.end_at > since)
        .where(sa.or_(overrides.c.created_at > since, overrides.c.cancelled_at > since))
    )
    adds = OverrideKind.ADD.value
    return [Overridden(row.start_at, row.end_at, row.person_id if row.kind == adds else None) for row in rows]


async def is_deleted(tx: Tx, org_id: int, schedule_id: int) -> bool:
    """One that cannot be read is not."""
    row = await tx.scalar(
        sa.select(schedules.c.id).where(
            schedules.c.org_id == org_id, schedules.c.id == schedule_id, schedules.c.deleted_at.is_(None)
        )
    )
    return row is None
