"""Begins attempts: with the commit of its `sending` row an attempt lies before or after any ack.

Runs inside the caller's transaction; sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from engine.db import Tx, waiting_at_most
from engine.escalation import still_wanted
from engine.models import ORG, Card, Delivery, DeliveryStatus, IncidentView, Timer
from engine.store import attempts, cards, deliveries, incidents, timers, views
from engine.store.attempts import Record
from engine.store.incidents import Incident

LEASE: Final = timedelta(seconds=30)
NOT_AFTER: Final = "not_after"  # in a body: from then on it would say what is not so any more
OPEN: Final = frozenset({DeliveryStatus.QUEUED, DeliveryStatus.SENDING})


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt whose `sending` row has committed. The timer's `attempt` is the fence; `number` is what
    people see: it goes on when the timer was made anew."""

    timer: Timer
    delivery: Delivery
    number: int
    view: IncidentView | None = None
    cards: tuple[Card, ...] = ()


@dataclass(frozen=True, slots=True)
class Beginning:
    """What one transaction did: attempts begun, timers ended, older attempts closed as unknown."""

    begun: tuple[Begun, ...]
    ended: int
    unknown: int
    skipped: tuple[Timer, ...] = ()  # somebody holds their incidents


async def begin(
    tx: Tx,
    due: Sequence[Timer],
    owner: str,
    now: datetime,
    *,
    wait: timedelta | None = None,
    counted: Sequence[int] = (),
) -> Beginning:
    """Claim what is free and begin what is still wanted; the rest is cancelled. With its commit nothing
    speaks against the `counted` timers any more.

    What belongs to an incident that somebody holds is left for later, so that one incident keeps no
    other waiting; `wait`: unless it is let go so soon.
    """
    about = await deliveries.incidents_of(tx, [timer.subject_id for timer in due])
    held = await _lock(tx, sorted({*about.values()}), wait)
    left = {one for one, incident in about.items() if incident not in held}
    free = [timer for timer in due if timer.subject_id not in left]
    if counted:
        await timers.uncount_attempts(tx, counted, now)  # before the claim, whose number is the fence
    claimed = await timers.claim(tx, free, owner, now + LEASE, now)
    # Why only now: under the locks an ack may have cancelled one of them while we waited.
    found = await deliveries.read(tx, [timer.subject_id for timer in claimed])
    unheard = [one.id for one in found.values() if one.status is DeliveryStatus.SENDING]
    unknown = await attempts.close_unknown(tx, ORG, unheard, now)
    reasons = {timer: _unwanted(found.get(timer.subject_id), held, now) for timer in claimed}
    await _cancel(tx, {timer: why for timer, why in reasons.items() if why is not None}, found, held, now)
    wanted: list[tuple[Timer, Delivery]] = []
    for timer in (timer for timer, why in reasons.items() if why is None):
        delivery = found[timer.subject_id]
        tried = delivery.attempts + unknown.get(delivery.id, 0)
        wanted.append((timer, replace(delivery, attempts=tried)))
    numbers = await attempts.begin(tx, ORG, [delivery.id for _, delivery in wanted], now)
    begun = await _with_views(tx, wanted, numbers)
    skipped = tuple(timer for timer in due if timer.subject_id in left)
    return Beginning(begun, len(claimed) - len(begun), sum(unknown.values()), skipped)


async def _lock(tx: Tx, ids: Sequence[int], wait: timedelta | None) -> dict[int, Incident]:
    """Those that nobody else holds; with `wait` all of them, or none if that takes longer."""
    if wait is None:
        return await incidents.lock_shared(tx, ids, skip_locked=True)
    held: dict[int, Incident] = {}
    async with waiting_at_most(tx, wait):
        held = await incidents.lock_shared(tx, ids)
    return held


def _unwanted(delivery: Delivery | None, held: Mapping[int, Incident], now: datetime) -> str | None:
    if delivery is None:
        return "it is gone"
    if delivery.status not in OPEN:
        return f"it is {delivery.status}"
    until = delivery.body.get(NOT_AFTER)
    if until is not None and now >= datetime.fromisoformat(until):
        return "it is past its sense"
    incident = held.get(delivery.incident_id or 0)
    return None if incident is None else still_wanted(delivery.kind, delivery.round, incident.fate)


async def _cancel(
    tx: Tx,
    unwanted: Mapping[Timer, str],
    found: Mapping[int, Delivery],
    held: Mapping[int, Incident],
    now: datetime,
) -> None:
    await timers.finish_all(tx, [timer.id for timer in unwanted])
    ends = []
    for timer, reason in unwanted.items():
        delivery = found.get(timer.subject_id)
        if delivery is not None and delivery.status in OPEN:
            incident = held.get(delivery.incident_id or 0)
            epoch = incident.fate.epoch if incident is not None and not incident.fate.open else None
            status = DeliveryStatus.CANCELLED
            ends.append(Record(delivery.id, 0, "cancelled", reason, status, counts=False, epoch=epoch))
    await attempts.record(tx, ORG, ends, now)


async def _with_views(
    tx: Tx, wanted: Sequence[tuple[Timer, Delivery]], numbers: Mapping[int, int]
) -> tuple[Begun, ...]:
    ids = sorted({delivery.incident_id for _, delivery in wanted if delivery.incident_id})
    seen = {view.id: view for view in await views.by_ids(tx, ORG, ids)} if ids else {}
    shown = await cards.of_incidents(tx, ORG, ids) if ids else []
    return tuple(
        Begun(
            timer,
            delivery,
            numbers[delivery.id],
            seen.get(delivery.incident_id or 0),
            tuple(card for card in shown if card.incident_id == delivery.incident_id),
        )
        for timer, delivery in wanted
    )
