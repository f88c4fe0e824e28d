"""Records how an attempt ended, and everything that follows from it, in one transaction.

Fenced by the attempt number: whoever lost the lease changes nothing. Sends nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine import metrics
from engine.db import Tx
from engine.directory import Directory
from engine.errors import LeaseLost
from engine.escalation import still_wanted
from engine.escalation.fate import FALLBACK
from engine.models import (
    Delivery,
    DeliveryKind,
    DeliveryStatus,
    Method,
    Outcome,
    Sent,
    Timer,
    TimerKind,
    Urgency,
)
from engine.notify.begin import Begun
from engine.notify.verdict import PAGES, Verdict, judge
from engine.pager.alarm import raise_alarm
from engine.pager.apply import card_armings
from engine.pager.ladder import Resolver
from engine.store import cards, deliveries, incidents, timers
from engine.store.deliveries import Record
from engine.store.directory import policy_by_version
from engine.store.incidents import Incident

log = structlog.get_logger(__name__)

UNWORKABLE_TRIES: Final = 5
UNWORKABLE_AGAIN: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that ended: where it went, and what came of it."""

    begun: Begun
    address: str
    outcome: Outcome
    threaded: bool = False  # a line in a thread is no card


@dataclass(frozen=True, slots=True)
class Recorded:
    """The verdict, and whether somebody had answered while the message was in flight."""

    verdict: Verdict
    too_late: bool


async def record(tx: Tx, ended: Ended, directory: Directory, now: datetime, jitter: float) -> Recorded:
    """Raises LeaseLost when another worker holds the timer by now."""
    delivery = ended.begun.delivery
    incident = await _locked(tx, delivery.incident_id)
    urgency = incident.fate.urgency if incident is not None else Urgency.LOW
    verdict = judge(delivery, ended.outcome, urgency, now, jitter)
    await _fence(tx, ended.begun.timer, verdict)
    await deliveries.record(tx, delivery.org_id, _row(ended, verdict), now)
    too_late = incident is not None and still_wanted(delivery.kind, delivery.round, incident.fate) is not None
    if isinstance(ended.outcome, Sent) and incident is not None and delivery.kind in PAGES:
        metrics.sent_after_ack.inc(too_late)
        await _sent(tx, ended, ended.outcome, incident, now)
    if verdict.next_rule:
        await pull_next_rule(tx, delivery, now)
    if verdict.status is DeliveryStatus.DEAD:
        await died(tx, delivery, verdict.reason, incident, directory, now)
    if incident is not None and delivery.kind in PAGES:
        await timers.arm(tx, delivery.org_id, await card_armings(tx, delivery.org_id, [incident.id], now))
    return Recorded(verdict, too_late)


async def _locked(tx: Tx, incident_id: int | None) -> Incident | None:
    if incident_id is None:
        return None
    return next(iter(await incidents.lock(tx, [incident_id])), None)


async def _fence(tx: Tx, timer: Timer, verdict: Verdict) -> None:
    # Why first: the effects below happen once per attempt, however late a stalled worker wakes.
    held = (
        await timers.finish(tx, timer)
        if verdict.again_at is None
        else await timers.postpone(tx, timer, verdict.again_at)
    )
    if not held:
        raise LeaseLost


def _row(ended: Ended, verdict: Verdict) -> Record:
    sent = ended.outcome if isinstance(ended.outcome, Sent) else None
    return Record(
        delivery_id=ended.begun.delivery.id,
        number=ended.begun.number,
        outcome=verdict.word,
        reason=verdict.reason,
        status=verdict.status,
        provider=sent.provider if sent else "",
        provider_ref=sent.ref if sent else "",
        counts=verdict.counts,
    )


async def _sent(tx: Tx, ended: Ended, sent: Sent, incident: Incident, now: datetime) -> None:
    delivery = ended.begun.delivery
    if incident.last_paged_at is None:
        metrics.page_seconds.observe((now - incident.opened_at).total_seconds())
    await incidents.paged(tx, incident.id, now)
    channel_id, ts = sent.detail.get("channel_id"), sent.detail.get("ts")
    if channel_id and ts and not ended.threaded:
        person = delivery.person_id if delivery.method is Method.SLACK else None
        card = await cards.ensure(tx, delivery.org_id, incident.id, ended.address, person, now)
        await cards.placed(tx, card, str(channel_id), str(ts), now)


async def pull_next_rule(tx: Tx, delivery: Delivery, now: datetime) -> None:
    """The person's next contact rule fires now: this one failed them."""
    later = await deliveries.later_steps(tx, delivery)
    if later:
        await timers.pull(tx, delivery.org_id, TimerKind.DELIVER, [later[0].id], now)


async def died(
    tx: Tx, delivery: Delivery, reason: str, incident: Incident | None, directory: Directory, now: datetime
) -> None:
    """A dead delivery is loud, and the ladder goes on past it."""
    metrics.deliveries_dead.labels(delivery.method.value).inc()
    log.error("delivery.dead", delivery=delivery.id, method=delivery.method.value, reason=reason)
    if delivery.kind is not DeliveryKind.OPS:  # an alarm about an alarm would never end
        number = f"#{incident.number}: " if incident is not None else ""
        text = f"{number}a message by {delivery.method} could not be delivered: {reason}"
        cause = f"dead:{delivery.method}:{reason[:60]}"
        await raise_alarm(tx, delivery.org_id, cause, text, now)
    if incident is not None and delivery.kind is DeliveryKind.PAGE:
        await _go_on(tx, delivery, incident, directory, now)


async def _go_on(tx: Tx, delivery: Delivery, incident: Incident, directory: Directory, now: datetime) -> None:
    """When the last page of the present level is dead, its time is over now."""
    fate = incident.fate
    present = (delivery.round, delivery.pass_, delivery.level) == (fate.round, fate.pass_, fate.level)
    if not present or await deliveries.alive_in_level(tx, delivery):
        return
    if fate.level != FALLBACK:
        await timers.pull(tx, incident.org_id, TimerKind.ESCALATE, [incident.id], now)
        return
    # One more link at once, while there is one; then the fallback's own interval rules.
    version = incident.policy_version_id
    policy = None if version is None else await policy_by_version(tx, incident.org_id, version)
    if fate.links < len(Resolver(directory, fate.urgency, now).chain(policy)):
        await timers.pull(tx, incident.org_id, TimerKind.EXHAUST, [incident.id], now)


async def put_off(tx: Tx, timer: Timer, now: datetime) -> int:
    """A delivery that cannot even be begun: later, and in the end dead and loud. Reads nothing of it."""
    tries = await timers.defer_failed(tx, timer, now + UNWORKABLE_AGAIN)
    if tries < UNWORKABLE_TRIES:
        return 0
    await timers.finish_all(tx, [timer.id])
    await deliveries.set_status(tx, timer.subject_id, DeliveryStatus.DEAD, "it could not be worked", now)
    metrics.deliveries_dead.labels("unknown").inc()
    text = f"delivery {timer.subject_id} could not be worked {tries} times, and is given up"
    await raise_alarm(tx, timer.org_id, "deliver:unworkable", text, now)
    return 1


async def put_back(tx: Tx, begun: Begun, now: datetime) -> None:
    """It was begun too long ago to be sent as begun: unsent, and due again now."""
    if await timers.postpone(tx, begun.timer, now):
        delivery = begun.delivery
        end = Record(delivery.id, begun.number, "not_started", "", DeliveryStatus.QUEUED, counts=False)
        await deliveries.record(tx, delivery.org_id, end, now)
