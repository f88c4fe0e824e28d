"""The audit: asks each minute whether every invariant holds, says loudly what does not, and repairs what
may be repaired.

Never pages by itself: a repair arms the timer that should have been there, or takes away what has
nothing left to work. What only a person can judge is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final

import sqlalchemy as sa
import structlog

from engine import metrics
from engine.clock import Clock
from engine.db import Database, Tx, any_of
from engine.errors import Unavailable
from engine.invariants import FOUND_AT_MOST, Finding, Invariant, find
from engine.models import ORG, DeliveryKind, DeliveryStatus, IncidentStatus, Rank, TimerKind
from engine.nudge import Nudge
from engine.pager.alarm import raise_alarm
from engine.schema import OPEN, alerts, deliveries, incidents
from engine.store import dead_letters, timers
from engine.store import incidents as incident_store
from engine.store.incidents import Incident
from engine.store.timers import Arming

log = structlog.get_logger(__name__)

SHOWN: Final = 5  # subjects that an alarm names
BEHIND: Final = frozenset({DeliveryKind.OPS.value, DeliveryKind.NOTICE.value})  # they wait for every page
OF_INCIDENTS: Final = frozenset(
    {
        Invariant.INCIDENT_WITHOUT_TIMER,
        Invariant.FATE_TIMER_OVERDUE,
        Invariant.ALERT_ON_RESOLVED_INCIDENT,
        Invariant.INCIDENT_WITHOUT_ALERT,
        Invariant.ALERTS_MISCOUNTED,
    }
)
# Locked before they are repaired, since their timers and counts are touched.
LOCKED: Final = (Invariant.INCIDENT_WITHOUT_TIMER, Invariant.ALERTS_MISCOUNTED)
REPAIRED: Final = (
    *LOCKED,
    Invariant.DELIVERY_WITHOUT_TIMER,
    Invariant.SENDING_PAST_LEASE,
    Invariant.TIMER_WITHOUT_SUBJECT,
)
ADVICE: Final = {
    Invariant.INCIDENT_WITHOUT_TIMER: "They go on now.",
    Invariant.FATE_TIMER_OVERDUE: "No worker takes them: see that one runs, and what its log says.",
    Invariant.ALERT_ON_RESOLVED_INCIDENT: "Nobody is paged for these alerts: reopen the incident, or resolve"
    " them at their source.",
    Invariant.INCIDENT_WITHOUT_ALERT: "Nothing will resolve them: somebody must.",
    Invariant.ALERTS_MISCOUNTED: "Counted anew where something fires; where nothing does, somebody must"
    " resolve the incident.",
    Invariant.DELIVERY_WITHOUT_TIMER: "They go out when they are due.",
    Invariant.DELIVERY_OVERDUE: "No worker takes them: see that one runs, and what its log says.",
    Invariant.SENDING_PAST_LEASE: "They are sent again now; it may be for the second time.",
    Invariant.TIMER_WITHOUT_SUBJECT: "They were taken away.",
}


class Audit:
    """`run` asks everything once, alarms once per invariant and quarter of an hour, and repairs."""

    def __init__(self, database: Database, clock: Clock, nudge: Nudge) -> None:
        self._database = database
        self._clock = clock
        self._nudge = nudge

    async def run(self) -> list[Finding]:
        now = self._clock.now()
        async with self._database.snapshot() as tx:
            found = await find(tx, ORG, now)
            dead = await dead_letters.count(tx, ORG)
        metrics.dead_letters.set(dead)
        _show(found)
        if found:
            # Why in a write of its own, and first: no repair that fails takes an alarm with it.
            try:
                await self._database.write(lambda tx: _alarm(tx, found, now))
            finally:
                await self._repair(found, now)
                self._nudge()
        return found

    async def _repair(self, found: Sequence[Finding], now: datetime) -> None:
        try:
            _count(await self._database.write(lambda tx: _repair(tx, found, now)))
        except Unavailable:  # it will pass, and the next audit finds them again
            raise
        except Exception:
            log.exception("audit.repair_failed")
            await self._one_by_one(found, now)

    async def _one_by_one(self, found: Sequence[Finding], now: datetime) -> None:
        """One row that nobody can read keeps no other from its repair."""
        failed = []
        for finding in (one for one in found if one.invariant in REPAIRED):
            try:
                _count(await self._database.write(partial(_repair, found=[finding], now=now)))
            except Unavailable:
                raise
            except Exception:
                log.exception("audit.unrepaired", invariant=finding.invariant.value, subject=finding.subject)
                failed.append(finding)
        if failed:
            await self._database.write(lambda tx: _alarm_unrepaired(tx, failed, now))


def _count(repaired: Sequence[Finding]) -> None:
    for finding in repaired:
        metrics.audit_repairs.labels(finding.invariant.value).inc()
        log.warning("audit.repaired", invariant=finding.invariant.value, subject=finding.subject)


def _show(found: Sequence[Finding]) -> None:
    for invariant in Invariant:
        metrics.audit_findings.labels(invariant.value).set(len(_subjects(found, invariant)))
    for finding in found:
        log.error("audit.broken", invariant=finding.invariant.value, subject=finding.subject)


def _subjects(found: Sequence[Finding], *invariants: Invariant) -> list[int]:
    return sorted({finding.subject for finding in found if finding.invariant in invariants})


async def _repair(tx: Tx, found: Sequence[Finding], now: datetime) -> list[Finding]:
    """What was repaired. An incident that somebody holds is left to the next audit."""
    locked = await incident_store.lock(tx, _subjects(found, *LOCKED), skip_locked=True)
    held = {incident.id: incident for incident in locked}
    # Why again: under the locks, and what was under way a moment ago may have ended.
    still = [
        finding
        for finding in await find(tx, ORG, now)
        if finding in set(found) and (finding.invariant not in LOCKED or finding.subject in held)
    ]
    counted = await _count_again(tx, _subjects(still, Invariant.ALERTS_MISCOUNTED))
    stuck = _subjects(still, Invariant.INCIDENT_WITHOUT_TIMER)
    unsent = _subjects(still, Invariant.DELIVERY_WITHOUT_TIMER, Invariant.SENDING_PAST_LEASE)
    moved_on = [_next_timer(held[one], now) for one in stuck]
    await timers.arm(tx, ORG, [*moved_on, *await _deliver(tx, unsent, now)])
    await timers.finish_all(tx, _subjects(still, Invariant.TIMER_WITHOUT_SUBJECT))
    return [finding for finding in still if _is_repaired(finding, counted)]


def _is_repaired(finding: Finding, counted: set[int]) -> bool:
    if finding.invariant is Invariant.ALERTS_MISCOUNTED:
        return finding.subject in counted
    return finding.invariant in REPAIRED


async def _deliver(tx: Tx, ids: Sequence[int], now: datetime) -> list[Arming]:
    """A later step of somebody's rules waits for its time, and a notice passes no page."""
    if not ids:
        return []
    rows = await tx.execute(
        sa.select(deliveries.c.id, deliveries.c.status, deliveries.c.due_at, deliveries.c.kind).where(
            any_of(deliveries.c.id, ids)
        )
    )
    return [
        Arming(
            TimerKind.DELIVER,
            row.id,
            max(row.due_at, now) if row.status == DeliveryStatus.QUEUED.value else now,
            rank=Rank.NOTICE if row.kind in BEHIND else Rank.PAGE,
        )
        for row in rows
    ]


async def _count_again(tx: Tx, ids: Sequence[int]) -> set[int]:
    """The incidents whose open alerts were counted anew.

    Why not to nothing: an open incident without an open alert would have been resolved by its
    source, and whether it was is not for us to say; as it is, it pages.
    """
    if not ids:
        return set()
    firing = (
        sa.select(sa.func.count())
        .where(alerts.c.org_id == ORG, alerts.c.incident_id == incidents.c.id, alerts.c.status == "firing")
        .scalar_subquery()
    )
    rows = await tx.execute(
        sa.update(incidents)
        .where(incidents.c.org_id == ORG, any_of(incidents.c.id, ids), OPEN, firing > 0)
        .values(open_alerts=firing)
        .returning(incidents.c.id)
    )
    return set(rows.scalars())


def _next_timer(incident: Incident, now: datetime) -> Arming:
    """What moves it on: the end of its snooze, or the ladder now."""
    fate = incident.fate
    if fate.snoozed_until is not None:
        return Arming(TimerKind.UNSNOOZE, incident.id, fate.snoozed_until, fate.epoch)
    unanswered = fate.status is IncidentStatus.UNANSWERED
    kind = TimerKind.EXHAUST if unanswered else TimerKind.ESCALATE
    return Arming(kind, incident.id, now, fate.epoch)


async def _alarm(tx: Tx, found: Sequence[Finding], now: datetime) -> None:
    for invariant in Invariant:
        ids = _subjects(found, invariant)
        if ids:
            count = f"{len(ids)}{' or more' if len(ids) >= FOUND_AT_MOST else ''}"
            which = await _named(tx, invariant, ids[:SHOWN])
            more = " …" if len(ids) > SHOWN else ""
            said = invariant.value.replace("_", " ")
            text = f"The audit found {count} × {said}: {which}{more}. {ADVICE[invariant]}"
            await raise_alarm(tx, ORG, f"audit:{invariant}", text, now)


async def _alarm_unrepaired(tx: Tx, failed: Sequence[Finding], now: datetime) -> None:
    which = [f"{one.invariant.value.replace('_', ' ')} {one.subject}" for one in failed[:SHOWN]]
    more = " …" if len(failed) > SHOWN else ""
    text = (
        f"The audit could not repair these, by id: {', '.join(which)}{more}. Its log says why; see to them."
    )
    await raise_alarm(tx, ORG, "audit:unrepaired", text, now)


async def _named(tx: Tx, invariant: Invariant, ids: Sequence[int]) -> str:
    """As people know them: an incident by its #, also where a delivery is meant."""
    column = incidents.c.id
    if invariant not in OF_INCIDENTS:
        if invariant is Invariant.TIMER_WITHOUT_SUBJECT:
            return f"timer {', '.join(map(str, ids))}"
        column = deliveries.c.id
    rows = await tx.execute(
        sa.select(incidents.c.number)
        .select_from(incidents.outerjoin(deliveries, deliveries.c.incident_id == incidents.c.id))
        .where(any_of(column, ids))
        .distinct()
        .order_by(incidents.c.number)
    )
    numbers = [f"#{number}" for number in rows.scalars() if number is not None]
    return ", ".join(numbers) or f"ids {', '.join(map(str, ids))}"
