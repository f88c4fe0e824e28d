"""What must hold of the stored rows at every commit, each as a query that finds what breaks it.

Each starts from a small set, the open incidents, the unfinished deliveries, the timers that are due
soonest, and finds it by its index: a million closed incidents and pending timers cost nothing.
Decides nothing, and never writes.

That no key has two open alerts or incidents needs no query: two unique indexes hold it
(uq_alerts_open, uq_incidents_open).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import sqlalchemy as sa

from engine.db import Tx, any_of
from engine.models import LaneName, Rank, TimerKind
from engine.schema import EPOCH, OPEN, UNFINISHED, alerts, cards, deliveries, incidents, timers
from engine.store.timers import LANES

SETTLED: Final = timedelta(seconds=10)  # what is younger may still be under way
OVERDUE: Final = timedelta(seconds=60)  # no worker that works is so late
FOUND_AT_MOST: Final = 100  # of each: more say no more
SOONEST: Final = 1_000  # timers of a lane that are looked at; the others' turn comes before they fire

# A kind of a newer version is left alone, here too.
KINDS: Final = {lane: [kind.value for kind, its in LANES.items() if its is lane] for lane in LaneName}
# Whom a timer of paging is about. Those of schedules look for themselves whether theirs is there still.
SUBJECTS: Final = {LaneName.FATE: incidents, LaneName.DELIVER: deliveries, LaneName.CARD: cards}


class Invariant(StrEnum):
    """Named as what is found when it is broken; the labels of the metric."""

    INCIDENT_WITHOUT_TIMER = "incident_without_timer"
    FATE_TIMER_OVERDUE = "fate_timer_overdue"
    ALERT_ON_RESOLVED_INCIDENT = "alert_on_resolved_incident"
    INCIDENT_WITHOUT_ALERT = "incident_without_alert"
    ALERTS_MISCOUNTED = "alerts_miscounted"
    DELIVERY_WITHOUT_TIMER = "delivery_without_timer"
    DELIVERY_OVERDUE = "delivery_overdue"
    SENDING_PAST_LEASE = "sending_past_lease"
    TIMER_WITHOUT_SUBJECT = "timer_without_subject"


@dataclass(frozen=True, slots=True)
class Finding:
    """A row that breaks an invariant; `subject` is the id of the incident, delivery or timer."""

    invariant: Invariant
    subject: int


async def find(tx: Tx, org_id: int, now: datetime) -> list[Finding]:
    """Everything that breaks an invariant now, up to a hundred of each."""
    found: list[Finding] = []
    for invariant, query in queries(org_id, now).items():
        rows = await tx.execute(query.limit(FOUND_AT_MOST))
        found += [Finding(invariant, one) for one in rows.scalars()]
    return found


def queries(org_id: int, now: datetime) -> dict[Invariant, sa.Select[Any]]:
    """Each selects the ids of what breaks it."""
    return {
        **_of_incidents(org_id, now),
        **_of_deliveries(org_id, now),
        Invariant.TIMER_WITHOUT_SUBJECT: _without_subject(org_id),
    }


# --- incidents and alerts ------------------------------------------------------------------------------


def _of_incidents(org_id: int, now: datetime) -> dict[Invariant, sa.Select[Any]]:
    opened = sa.select(incidents.c.id).where(incidents.c.org_id == org_id, OPEN)
    # Why coalesce: a bare column would tempt SQLite to walk every incident by its age.
    opened_at = incidents.c.opened_at
    settled = sa.func.coalesce(opened_at, sa.literal(EPOCH, opened_at.type)) < now - SETTLED
    climbs = sa.or_(
        sa.and_(incidents.c.status == "triggered", incidents.c.urgency != "none"),
        sa.and_(incidents.c.status == "unanswered", incidents.c.urgency == "high"),
    )
    snoozed = sa.and_(incidents.c.status == "acknowledged", incidents.c.snoozed_until.is_not(None))
    # Why the epoch: a timer of another epoch does nothing when it fires.
    stuck = sa.or_(
        climbs & ~_moved_by(TimerKind.ESCALATE, TimerKind.EXHAUST), snoozed & ~_moved_by(TimerKind.UNSNOOZE)
    )
    has_alert = sa.exists().where(alerts.c.org_id == org_id, alerts.c.incident_id == incidents.c.id)
    return {
        Invariant.INCIDENT_WITHOUT_TIMER: opened.where(stuck, settled),
        Invariant.FATE_TIMER_OVERDUE: _overdue(now),
        Invariant.ALERT_ON_RESOLVED_INCIDENT: sa.select(alerts.c.incident_id).where(
            alerts.c.org_id == org_id, OPEN, _of_a_resolved_incident()
        ),
        Invariant.INCIDENT_WITHOUT_ALERT: opened.where(incidents.c.opened_by == "", settled, ~has_alert),
        Invariant.ALERTS_MISCOUNTED: _miscounted(org_id),
    }


def _moved_by(*kinds: TimerKind) -> sa.Exists:
    return sa.exists().where(
        timers.c.org_id == incidents.c.org_id,
        any_of(timers.c.kind, [kind.value for kind in kinds]),
        timers.c.subject_id == incidents.c.id,
        timers.c.epoch == incidents.c.epoch,
    )


def _of_a_resolved_incident() -> sa.Exists:
    return sa.exists().where(incidents.c.id == alerts.c.incident_id, incidents.c.status == "resolved")


def _overdue(now: datetime) -> sa.Select[Any]:
    late = timers.c.due_at < now - OVERDUE
    found = [
        sa.select(timers.c.subject_id).where(*_in_line(LaneName.FATE, rank), late, _free(now))
        for rank in Rank
    ]
    return sa.select(sa.union_all(*found).subquery().c.subject_id)


def _in_line(lane: LaneName, rank: Rank) -> tuple[sa.ColumnElement[bool], ...]:
    """Timers as their index has them: a lane, a rank, by due time."""
    return timers.c.lane == lane.value, timers.c.rank == int(rank), any_of(timers.c.kind, KINDS[lane])


def _miscounted(org_id: int) -> sa.Select[Any]:
    firing = (
        sa.select(alerts.c.incident_id, sa.func.count().label("firing"))
        .where(alerts.c.org_id == org_id, OPEN)
        .group_by(alerts.c.incident_id)
        .subquery()
    )
    return (
        sa.select(incidents.c.id)
        .select_from(incidents.outerjoin(firing, firing.c.incident_id == incidents.c.id))
        .where(
            incidents.c.org_id == org_id,
            OPEN,
            incidents.c.open_alerts != sa.func.coalesce(firing.c.firing, 0),
        )
    )


# --- deliveries and timers ------------------------------------------------------------------------------


def _of_deliveries(org_id: int, now: datetime) -> dict[Invariant, sa.Select[Any]]:
    unfinished = sa.select(deliveries.c.id).where(deliveries.c.org_id == org_id, UNFINISHED)
    late = timers.c.due_at < now - OVERDUE
    unleased = sa.or_(timers.c.lease_until.is_(None), timers.c.lease_until < now - OVERDUE)
    return {
        Invariant.DELIVERY_WITHOUT_TIMER: unfinished.where(
            deliveries.c.created_at < now - SETTLED, ~_deliver_timer()
        ),
        Invariant.DELIVERY_OVERDUE: unfinished.where(
            deliveries.c.status == "queued", _deliver_timer(late, _free(now))
        ),
        Invariant.SENDING_PAST_LEASE: unfinished.where(
            deliveries.c.status == "sending", _deliver_timer(unleased)
        ),
    }


def _deliver_timer(*where: sa.ColumnElement[bool]) -> sa.Exists:
    return sa.exists().where(
        timers.c.org_id == deliveries.c.org_id,
        timers.c.kind == TimerKind.DELIVER.value,
        timers.c.subject_id == deliveries.c.id,
        *where,
    )


def _free(now: datetime) -> sa.ColumnElement[bool]:
    return sa.or_(timers.c.lease_until.is_(None), timers.c.lease_until < now)


def _without_subject(org_id: int) -> sa.Select[Any]:
    found = sa.union_all(*(_lost(org_id, lane, rank) for lane in SUBJECTS for rank in Rank)).subquery()
    return sa.select(found.c.id)


def _lost(org_id: int, lane: LaneName, rank: Rank) -> sa.Select[Any]:
    """Of the timers that fire next, those of which nothing is left to work."""
    soonest = (
        sa.select(timers.c.id, timers.c.subject_id, timers.c.org_id)
        .where(*_in_line(lane, rank))
        .order_by(timers.c.due_at, timers.c.id)
        .limit(SOONEST)
        .subquery()
    )
    there = sa.exists().where(SUBJECTS[lane].c.id == soonest.c.subject_id)
    return sa.select(soonest.c.id).where(soonest.c.org_id == org_id, ~there)
