"""Handoffs as rows, and what a handoff sheet is made of: open incidents and noisy alerts.

Decides nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from engine.db import Tx, any_of, upsert
from engine.schema import OPEN, alerts, handoffs, incidents

INCIDENTS_SHOWN: Final = 10
NOISIEST_SHOWN: Final = 5
LISTENED_TO: Final = 10_000  # alerts, of the newest incidents


@dataclass(frozen=True, slots=True)
class Handoff:
    id: int
    schedule_id: int
    at: datetime
    people: frozenset[int]  # who came on
    body: Mapping[str, Any]
    accepted_by: int | None
    accepted_at: datetime | None

    @property
    def texts(self) -> Mapping[str, str]:
        """What its posts say, by reader. Of one that an earlier release told it is not known."""
        return dict(self.body.get("texts", {}))


@dataclass(frozen=True, slots=True)
class OpenIncident:
    number: int
    title: str
    status: str
    snoozed_until: datetime | None
    acknowledged_by: str | None


@dataclass(frozen=True, slots=True)
class Noisy:
    summary: str
    events: int


_COLUMNS: Final = (
    handoffs.c.id,
    handoffs.c.schedule_id,
    handoffs.c.at,
    handoffs.c.people,
    handoffs.c.body,
    handoffs.c.accepted_by,
    handoffs.c.accepted_at,
)


_INCIDENTS: Final = sa.select(
    incidents.c.number,
    incidents.c.title,
    incidents.c.status,
    incidents.c.snoozed_until,
    incidents.c.acknowledged_name,
)


def _handoff(row: Any) -> Handoff:
    return Handoff(
        row.id, row.schedule_id, row.at, frozenset(row.people), row.body, row.accepted_by, row.accepted_at
    )


async def insert(
    tx: Tx, org_id: int, schedule_id: int, at: datetime, people: Collection[int], body: Mapping[str, Any]
) -> int | None:
    """Its id; None if that handoff was told already."""
    new = upsert(tx, handoffs).values(
        org_id=org_id, schedule_id=schedule_id, at=at, people=sorted(people), body=dict(body)
    )
    new = new.on_conflict_do_nothing(index_elements=["org_id", "schedule_id", "at"])
    made = (await tx.execute(new.returning(handoffs.c.id))).scalar_one_or_none()
    return None if made is None else int(made)


async def forget(tx: Tx, org_id: int, schedule_id: int, before: datetime) -> None:
    """Drop those of the schedule that began before."""
    mine = sa.and_(handoffs.c.org_id == org_id, handoffs.c.schedule_id == schedule_id)
    await tx.execute(sa.delete(handoffs).where(mine, handoffs.c.at < before))


async def read(tx: Tx, org_id: int, handoff_id: int) -> Handoff | None:
    row = (
        await tx.execute(sa.select(*_COLUMNS).where(handoffs.c.org_id == org_id, handoffs.c.id == handoff_id))
    ).first()
    return None if row is None else _handoff(row)


async def newest(tx: Tx, org_id: int, schedule_id: int) -> int | None:
    """The id of the schedule's last handoff."""
    found = await tx.scalar(
        sa.select(sa.func.max(handoffs.c.id)).where(
            handoffs.c.org_id == org_id, handoffs.c.schedule_id == schedule_id
        )
    )
    return None if found is None else int(found)


async def accept(tx: Tx, org_id: int, handoff_id: int, person_id: int, now: datetime) -> bool:
    """False if somebody has accepted it: the row decides who was first."""
    done = await tx.execute(
        sa.update(handoffs)
        .where(handoffs.c.org_id == org_id, handoffs.c.id == handoff_id, handoffs.c.accepted_by.is_(None))
        .values(accepted_by=person_id, accepted_at=now)
    )
    return bool(done.rowcount)


async def open_incidents(tx: Tx, org_id: int, services: Sequence[int]) -> tuple[list[OpenIncident], int]:
    """The newest of these services, and how many there are."""
    of_these = _open_of(org_id, services)
    newest_first = _INCIDENTS.where(of_these).order_by(incidents.c.id.desc())
    found = [OpenIncident(*row) for row in await tx.execute(newest_first.limit(INCIDENTS_SHOWN))]
    if len(found) < INCIDENTS_SHOWN:
        return found, len(found)
    return found, int(await tx.scalar(sa.select(sa.func.count()).where(of_these)) or 0)


async def snoozed(tx: Tx, org_id: int, services: Sequence[int], until: datetime | None) -> list[OpenIncident]:
    """Of all that are open those that wake up before `until`, the first first."""
    at = incidents.c.snoozed_until
    ends = at.is_not(None) if until is None else at < until
    first = _INCIDENTS.where(_open_of(org_id, services), ends).order_by(at, incidents.c.id)
    return [OpenIncident(*row) for row in await tx.execute(first.limit(INCIDENTS_SHOWN))]


def _open_of(org_id: int, services: Sequence[int]) -> sa.ColumnElement[bool]:
    return sa.and_(
        incidents.c.org_id == org_id,
        any_of(incidents.c.service_id, services),
        OPEN,
        incidents.c.number.is_not(None),
    )


async def noisiest(
    tx: Tx, org_id: int, services: Sequence[int], begin: datetime, end: datetime
) -> list[Noisy]:
    """Of the incidents that opened in that time, the alerts that were heard of most, by their summary."""
    heard = (alerts.c.event_count + alerts.c.flap_count).label("events")
    # Why bounded: it is read while others wait to write, and a storm may have made any number.
    newest = (
        sa.select(alerts.c.summary, heard)
        .join(incidents, incidents.c.id == alerts.c.incident_id)
        .where(incidents.c.org_id == org_id, any_of(incidents.c.service_id, services))
        # Why by the incident: of those there is an index by time, and of alerts there is none.
        .where(incidents.c.opened_at >= begin, incidents.c.opened_at < end)
        .order_by(incidents.c.opened_at.desc())
        .limit(LISTENED_TO)
        .subquery()
    )
    events = sa.func.sum(newest.c.events).label("events")
    rows = await tx.execute(
        sa.select(newest.c.summary, events)
        .group_by(newest.c.summary)
        .order_by(events.desc(), newest.c.summary)
        .limit(NOISIEST_SHOWN)
    )
    return [Noisy(row.summary, int(row.events)) for row in rows]
