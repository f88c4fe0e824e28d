"""Messages that wait for Slack, and what became of incidents meanwhile. Decides nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import sqlalchemy as sa

from engine.db import Tx, any_of
from engine.models import Delivery, DeliveryKind, IncidentStatus, Method, TimerKind
from engine.outage import WAITS
from engine.schema import UNFINISHED, deliveries, incidents, timers
from engine.store.deliveries import QUEUED, read

AT_ONCE: Final = 500
SLACK: Final = (Method.SLACK.value, Method.CHANNEL.value)
PAGES: Final = (DeliveryKind.PAGE.value, DeliveryKind.RESPONDER.value)
ELSEWHERE: Final = (Method.SMS.value, Method.VOICE.value, Method.PUSH.value, Method.EMAIL.value)

# Why the index's own words beside `queued`: see schema.UNFINISHED.
_STILL_QUEUED: Final = sa.and_(QUEUED, sa.text(f"deliveries.{UNFINISHED.text}"))
_WAITING: Final = deliveries.c.reason.startswith(WAITS, autoescape=True)


async def between_tries(tx: Tx, org_id: int) -> dict[int, int]:
    """Pages by Slack that failed before and wait for their next try: the incident of each."""
    rows = await tx.execute(
        sa.select(deliveries.c.id, deliveries.c.incident_id)
        .where(
            deliveries.c.org_id == org_id,
            _STILL_QUEUED,
            any_of(deliveries.c.method, SLACK),
            any_of(deliveries.c.kind, PAGES),
            deliveries.c.attempts > 0,
            deliveries.c.incident_id.is_not(None),
            sa.not_(_WAITING),
        )
        .order_by(deliveries.c.id)
        .limit(AT_ONCE)
    )
    return {row.id: row.incident_id for row in rows}


async def for_slack(tx: Tx, org_id: int) -> list[Delivery]:
    """What was put off because Slack is down, the oldest first."""
    ids = await tx.scalars(
        sa.select(deliveries.c.id)
        .where(deliveries.c.org_id == org_id, _STILL_QUEUED, _WAITING)
        .order_by(deliveries.c.id)
        .limit(AT_ONCE)
    )
    found = await read(tx, list(ids))
    return [found[one] for one in sorted(found)]


async def cards_put_off(tx: Tx, org_id: int, now: datetime) -> list[int]:
    """Cards that will be tried again later than now."""
    rows = await tx.scalars(
        sa.select(timers.c.subject_id)
        .where(
            timers.c.org_id == org_id,
            timers.c.kind == TimerKind.CARD.value,
            timers.c.due_at > now,
            timers.c.lease_until.is_(None),
        )
        .order_by(timers.c.subject_id)
    )
    return list(rows)


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """What an outage missed: numbers of incidents, and how many pages went which way."""

    opened: tuple[int, ...]
    acknowledged: tuple[tuple[int, str], ...]  # and by which way
    resolved: tuple[int, ...]
    still_open: tuple[tuple[int, str], ...]  # of those that were open in it, and their titles
    pages: Counter[str]  # by method


async def meanwhile(tx: Tx, org_id: int, start: datetime, end: datetime) -> Meanwhile:
    rows = (
        await tx.execute(
            sa.select(
                incidents.c.id,
                incidents.c.number,
                incidents.c.title,
                incidents.c.status,
                incidents.c.opened_at,
                incidents.c.acknowledged_at,
                incidents.c.acknowledged_via,
                incidents.c.resolved_at,
            )
            .where(
                incidents.c.org_id == org_id,
                incidents.c.number.is_not(None),
                sa.or_(
                    sa.text("incidents.status <> 'resolved'"),
                    incidents.c.opened_at >= start,
                    incidents.c.resolved_at >= start,
                ),
            )
            .order_by(incidents.c.number)
        )
    ).all()
    acked = [
        (row.number, row.acknowledged_via)
        for row in rows
        if row.acknowledged_via and _in(row.acknowledged_at, start, end)
    ]
    return Meanwhile(
        tuple(row.number for row in rows if _in(row.opened_at, start, end)),
        tuple(acked),
        tuple(row.number for row in rows if _in(row.resolved_at, start, end)),
        tuple((row.number, row.title) for row in rows if row.status != IncidentStatus.RESOLVED.value),
        await _pages(tx, org_id, [row.id for row in rows], start, end),
    )


async def _pages(
    tx: Tx, org_id: int, incident_ids: Sequence[int], start: datetime, end: datetime
) -> Counter[str]:
    if not incident_ids:
        return Counter()
    rows = await tx.execute(
        sa.select(deliveries.c.method, sa.func.count())
        .where(
            deliveries.c.org_id == org_id,
            any_of(deliveries.c.incident_id, incident_ids),
            any_of(deliveries.c.method, ELSEWHERE),
            any_of(deliveries.c.kind, PAGES),
            deliveries.c.sent_at >= start,
            deliveries.c.sent_at <= end,
        )
        .group_by(deliveries.c.method)
    )
    return Counter(dict(rows.all()))


def _in(at: datetime | None, start: datetime, end: datetime) -> bool:
    return at is not None and start <= at <= end
