"""The invariants of the pager as queries: asked each minute, said loudly, repaired where that is safe.

Never pages by itself: a repair arms the timer that should have been there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
import structlog

from engine import metrics
from engine.clock import Clock
from engine.db import Database, Tx, any_of
from engine.models import ORG, IncidentStatus, TimerKind
from engine.nudge import Nudge
from engine.pager.alarm import raise_alarm
from engine.schema import alerts, deliveries, incidents, timers
from engine.store import incidents as incident_store
from engine.store.incidents import Incident
from engine.store.timers import FATE_KINDS, Arming, arm

log = structlog.get_logger(__name__)

SETTLED: Final = timedelta(seconds=10)  # what is younger may still be under way
LEASE_GRACE: Final = timedelta(seconds=60)
WITHOUT_TIMER: Final = "incident_without_timer"
UNSENT: Final = "delivery_without_timer"


@dataclass(frozen=True, slots=True)
class Finding:
    """A row that breaks an invariant; `subject` is the id of an incident or a delivery."""

    invariant: str
    subject: int


_fate_timer = sa.exists().where(
    timers.c.org_id == incidents.c.org_id,
    any_of(timers.c.kind, [kind.value for kind in FATE_KINDS]),
    timers.c.subject_id == incidents.c.id,
)
_deliver_timer = sa.exists().where(
    timers.c.org_id == deliveries.c.org_id,
    timers.c.kind == TimerKind.DELIVER.value,
    timers.c.subject_id == deliveries.c.id,
)
_has_alert = sa.exists().where(alerts.c.org_id == incidents.c.org_id, alerts.c.incident_id == incidents.c.id)


def _queries(org_id: int, now: datetime) -> dict[str, sa.Select[Any]]:
    moving = sa.or_(
        sa.and_(incidents.c.status == "triggered", incidents.c.urgency != "none"),
        sa.and_(incidents.c.status == "unanswered", incidents.c.urgency == "high"),
        incidents.c.snoozed_until.is_not(None) & (incidents.c.status == "acknowledged"),
    )
    old = incidents.c.opened_at < now - SETTLED
    return {
        WITHOUT_TIMER: sa.select(incidents.c.id).where(
            incidents.c.org_id == org_id, moving, old, ~_fate_timer
        ),
        "alert_on_resolved_incident": sa.select(alerts.c.incident_id)
        .join(incidents, incidents.c.id == alerts.c.incident_id)
        .where(alerts.c.org_id == org_id, alerts.c.status == "firing", incidents.c.status == "resolved"),
        "incident_without_alert": sa.select(incidents.c.id).where(
            incidents.c.org_id == org_id,
            incidents.c.opened_by == "",
            incidents.c.status != "resolved",
            old,
            ~_has_alert,
        ),
        "sending_past_lease": sa.select(deliveries.c.id)
        .join(timers, sa.and_(timers.c.subject_id == deliveries.c.id, timers.c.kind == "deliver"))
        .where(
            deliveries.c.org_id == org_id,
            deliveries.c.status == "sending",
            timers.c.lease_until < now - LEASE_GRACE,
        ),
        UNSENT: sa.select(deliveries.c.id).where(
            deliveries.c.org_id == org_id,
            deliveries.c.status.in_(("queued", "sending")),
            deliveries.c.created_at < now - SETTLED,
            ~_deliver_timer,
        ),
    }


async def find(tx: Tx, org_id: int, now: datetime) -> list[Finding]:
    """Everything that breaks an invariant now."""
    found: list[Finding] = []
    for invariant, query in _queries(org_id, now).items():
        rows = await tx.execute(query.limit(100))
        ids = list(rows.scalars())
        metrics.audit_findings.labels(invariant).set(len(ids))
        found += [Finding(invariant, one) for one in ids]
    return found


class Audit:
    """`run` asks everything once, alarms once per invariant, and repairs what it may."""

    def __init__(self, database: Database, clock: Clock, nudge: Nudge) -> None:
        self._database = database
        self._clock = clock
        self._nudge = nudge

    async def run(self) -> list[Finding]:
        now = self._clock.now()
        async with self._database.snapshot() as tx:
            found = await find(tx, ORG, now)
        if found:
            for finding in found:
                log.error("audit.broken", invariant=finding.invariant, subject=finding.subject)
            await self._database.write(lambda tx: self._repair(tx, found, now))
            self._nudge()
        return found

    async def _repair(self, tx: Tx, found: Sequence[Finding], now: datetime) -> None:
        held = await incident_store.lock(tx, sorted(_subjects(found, WITHOUT_TIMER)))
        # Why again: under the locks, and what was under way a moment ago may have ended.
        still = await find(tx, ORG, now)
        stuck, unsent = _subjects(still, WITHOUT_TIMER), _subjects(still, UNSENT)
        await arm(
            tx,
            ORG,
            [
                *(_next_timer(incident, now) for incident in held if incident.id in stuck),
                *(Arming(TimerKind.DELIVER, one, now) for one in sorted(unsent)),
            ],
        )
        counts = Counter(finding.invariant for finding in found)
        for invariant, count in sorted(counts.items()):
            text = f"The audit found {count} × {invariant.replace('_', ' ')}; what is safe was repaired."
            await raise_alarm(tx, ORG, f"audit:{invariant}", text, now)


def _subjects(found: Sequence[Finding], invariant: str) -> set[int]:
    return {finding.subject for finding in found if finding.invariant == invariant}


def _next_timer(incident: Incident, now: datetime) -> Arming:
    """What moves it on: the end of its snooze, or the ladder now."""
    fate = incident.fate
    if fate.snoozed_until is not None:
        return Arming(TimerKind.UNSNOOZE, incident.id, fate.snoozed_until, fate.epoch)
    unanswered = fate.status is IncidentStatus.UNANSWERED
    kind = TimerKind.EXHAUST if unanswered else TimerKind.ESCALATE
    return Arming(kind, incident.id, now, fate.epoch)
