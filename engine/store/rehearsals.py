"""Rehearsals: of an outage, with an incident of its own, known by its key; or of one person's contact
methods. Decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import sqlalchemy as sa

from engine.db import Tx, any_of
from engine.schema import rehearsals

PREFIX: Final = "rehearsal-"  # of the keys; that it is one, its row says


@dataclass(frozen=True, slots=True)
class Rehearsed:
    key: str
    schedule: str
    incident_id: int
    begun_at: datetime
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class Tested:
    """A rehearsal of one person's contact methods; its deliveries are found by its key."""

    key: str
    person_id: int
    begun_at: datetime
    ends_at: datetime


async def begin(tx: Tx, org_id: int, key: str, schedule: str, now: datetime, ends_at: datetime) -> None:
    row = {"org_id": org_id, "key": key, "schedule": schedule, "begun_at": now, "ends_at": ends_at}
    await tx.execute(sa.insert(rehearsals).values(row))


async def opened(tx: Tx, org_id: int, key: str, incident_id: int) -> None:
    this = sa.update(rehearsals).where(rehearsals.c.org_id == org_id, rehearsals.c.key == key)
    await tx.execute(this.values(incident_id=incident_id))


async def known(tx: Tx, org_id: int, keys: Sequence[str]) -> bool:
    """Is one of these the key of a rehearsal?"""
    these = sa.select(rehearsals.c.key).where(rehearsals.c.org_id == org_id, any_of(rehearsals.c.key, keys))
    return (await tx.execute(these.limit(1))).first() is not None


async def going_on(tx: Tx, org_id: int) -> list[Rehearsed]:
    rows = await tx.execute(
        sa.select(
            rehearsals.c.key,
            rehearsals.c.schedule,
            rehearsals.c.incident_id,
            rehearsals.c.begun_at,
            rehearsals.c.ends_at,
        )
        .where(
            rehearsals.c.org_id == org_id,
            rehearsals.c.incident_id.is_not(None),
            rehearsals.c.reported_at.is_(None),
        )
        .order_by(rehearsals.c.begun_at)
    )
    return [Rehearsed(*row) for row in rows]


async def begin_test(tx: Tx, org_id: int, test: Tested) -> None:
    row = {"org_id": org_id, "key": test.key, "schedule": "", "person_id": test.person_id}
    await tx.execute(
        sa.insert(rehearsals).values({**row, "begun_at": test.begun_at, "ends_at": test.ends_at})
    )


_TESTS = sa.select(
    rehearsals.c.key, rehearsals.c.person_id, rehearsals.c.begun_at, rehearsals.c.ends_at
).where(rehearsals.c.person_id.is_not(None))


async def unreported(tx: Tx, org_id: int) -> list[Tested]:
    """Rehearsals of contact methods that nobody was told the end of."""
    these = _TESTS.where(rehearsals.c.org_id == org_id, rehearsals.c.reported_at.is_(None))
    return [Tested(*row) for row in await tx.execute(these.order_by(rehearsals.c.begun_at))]


async def last_test(tx: Tx, org_id: int, person_id: int) -> Tested | None:
    these = _TESTS.where(rehearsals.c.org_id == org_id, rehearsals.c.person_id == person_id)
    row = (await tx.execute(these.order_by(rehearsals.c.begun_at.desc()).limit(1))).first()
    return None if row is None else Tested(*row)


async def report(tx: Tx, org_id: int, key: str, now: datetime) -> bool:
    """It is over. True for whoever says so first."""
    this = sa.and_(rehearsals.c.org_id == org_id, rehearsals.c.key == key, rehearsals.c.reported_at.is_(None))
    ended = await tx.execute(sa.update(rehearsals).where(this).values(reported_at=now))
    return ended.rowcount == 1
