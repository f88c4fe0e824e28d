"""Begins attempts: with the commit of its `sending` row an attempt lies before or after any ack.

Runs inside the caller's transaction; sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from engine.db import Tx
from engine.escalation import still_wanted
from engine.models import ORG, Card, Delivery, DeliveryStatus, IncidentView, Timer
from engine.store import cards, deliveries, incidents, timers, views
from engine.store.deliveries import Record

LEASE: Final = timedelta(seconds=30)
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
    tx: Tx, due: Sequence[Timer], owner: str, now: datetime, *, skip_locked: bool = False
) -> Beginning:
    """Claim what is free and begin what is still wanted; the rest is cancelled.

    `skip_locked`: what belongs to an incident that somebody holds is left for later, so that one
    incident keeps no other waiting.
    """
    found = await deliveries.read(tx, [timer.subject_id for timer in due])
    ids = {one.incident_id for one in found.values() if one.incident_id}
    held = await incidents.lock_shared(tx, sorted(ids), skip_locked=skip_locked)
    locked = (
        {one.id for one in found.values() if one.incident_id in ids - set(held)} if skip_locked else set()
    )
    skipped = tuple(timer for timer in due if timer.subject_id in locked)
    claimed = await timers.claim(tx, [t for t in due if t not in skipped], owner, now + LEASE, now)
    # Read again under the locks: an ack may have cancelled one of them while we waited.
    found = await deliveries.read(tx, [timer.subject_id for timer in claimed])
    left = [one.id for one in found.values() if one.status is DeliveryStatus.SENDING]
    unknown = await deliveries.unknown(tx, ORG, left, now)
    wanted: list[tuple[Timer, Delivery]] = []
    for timer in claimed:
        delivery = found.get(timer.subject_id)
        reason = _unwanted(delivery, held)
        if delivery is not None and reason is None:
            tried = delivery.attempts + unknown.get(delivery.id, 0)
            wanted.append((timer, replace(delivery, attempts=tried)))
        else:
            incident = held.get(delivery.incident_id or 0) if delivery is not None else None
            epoch = incident.fate.epoch if incident is not None and not incident.fate.open else None
            await _cancel(tx, timer, delivery, reason or "", epoch, now)
    numbers = await deliveries.begin(tx, ORG, [delivery.id for _, delivery in wanted], now)
    begun = await _with_views(tx, wanted, numbers)
    return Beginning(begun, len(claimed) - len(begun), sum(unknown.values()), skipped)


def _incident(delivery: Delivery | None) -> int | None:
    return None if delivery is None else delivery.incident_id


def _unwanted(delivery: Delivery | None, held: Mapping[int, incidents.Incident]) -> str | None:
    if delivery is None:
        return "it is gone"
    if delivery.status not in OPEN:
        return f"it is {delivery.status}"
    incident = held.get(delivery.incident_id or 0)
    return None if incident is None else still_wanted(delivery.kind, delivery.round, incident.fate)


async def _cancel(
    tx: Tx, timer: Timer, delivery: Delivery | None, reason: str, epoch: int | None, now: datetime
) -> None:
    await timers.finish(tx, timer)
    if delivery is not None and delivery.status in OPEN:
        status = DeliveryStatus.CANCELLED
        end = Record(delivery.id, 0, "cancelled", reason, status, counts=False, epoch=epoch)
        await deliveries.record(tx, delivery.org_id, end, now)


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
