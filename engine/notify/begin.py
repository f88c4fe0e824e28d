"""Begins attempts: with the commit of its `sending` row an attempt lies before or after any ack.

Runs inside the caller's transaction; sends nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from engine.db import Tx, waiting_at_most
from engine.escalation import still_wanted
from engine.models import ORG, Card, Delivery, DeliveryStatus, IncidentView, Timer, Urgency
from engine.notify import bundle, lines
from engine.notify.verdict import PAGES
from engine.store import attempts, cards, deliveries, incidents, timers, views
from engine.store import lines as line_rows
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
    carried: tuple[Begun, ...] = ()  # go in its message


@dataclass(frozen=True, slots=True)
class Beginning:
    """What one transaction did: attempts begun, timers ended or moved, older attempts closed as unknown."""

    begun: tuple[Begun, ...]  # one for each message
    worked: int  # timers: begun, ended, or moved
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
    at_once: bool = False,
) -> Beginning:
    """Claim what is free and begin what is still wanted; the rest is cancelled. With its commit nothing
    speaks against the `counted` timers any more.

    What belongs to an incident that somebody holds is left for later, so that one incident keeps no
    other waiting; `wait`: unless it is let go so soon. What else is due on the line of one of these goes
    with it, unless they are begun by themselves (`wait`, `counted`) because one may be the end of us.
    """
    about = await deliveries.incidents_of(tx, [timer.subject_id for timer in due])
    if wait is None and not counted:
        due, about = await _with_others(tx, due, about, now)
    held = await _lock(tx, sorted({*about.values()}), wait)
    left = {one for one, incident in about.items() if incident not in held}
    free = [timer for timer in due if timer.subject_id not in left]
    skipped = tuple(timer for timer in due if timer.subject_id in left)
    if counted:
        await timers.uncount_attempts(tx, counted, now)  # before the claim, whose number is the fence
    # Why only now: under the locks an ack may have cancelled one of them while we waited.
    found = await deliveries.read(tx, [timer.subject_id for timer in free])
    reasons = {timer.subject_id: _unwanted(found.get(timer.subject_id), held, now) for timer in free}
    high = {one.id for one in found.values() if _is_high(one, held)}
    wanted = [found[one] for one, why in reasons.items() if why is None]
    elsewhere = set() if at_once else await lines.not_ours(tx, wanted, high, now)
    if elsewhere:
        await timers.move(tx, [(one, lines.later(now)) for one in free if one.subject_id in elsewhere])
    ours = [timer for timer in free if timer.subject_id not in elsewhere]
    claimed = await timers.claim(tx, ours, owner, now + LEASE, now)
    unknown = await _close_unheard(tx, claimed, found, now)
    unwanted = {timer: why for timer in claimed if (why := reasons[timer.subject_id]) is not None}
    await _cancel(tx, unwanted, found, held, now)
    each = [(timer, found[timer.subject_id]) for timer in claimed if timer not in unwanted]
    tried = [(timer, replace(one, attempts=one.attempts + unknown.get(one.id, 0))) for timer, one in each]
    numbers = await attempts.begin(tx, ORG, [one.id for _, one in tried], now)
    messages = await _messages(tx, await _with_views(tx, tried, numbers), high)
    return Beginning(messages, len(claimed) + len(elsewhere), sum(unknown.values()), skipped)


async def _close_unheard(
    tx: Tx, claimed: Sequence[Timer], found: Mapping[int, Delivery], now: datetime
) -> dict[int, int]:
    """Earlier attempts at these that were never heard of again, by delivery."""
    known = [found[timer.subject_id] for timer in claimed if timer.subject_id in found]
    unheard = [one.id for one in known if one.status is DeliveryStatus.SENDING]
    return await attempts.close_unknown(tx, ORG, unheard, now)


async def _with_others(
    tx: Tx, due: Sequence[Timer], about: Mapping[int, int], now: datetime
) -> tuple[list[Timer], dict[int, int]]:
    """These, and whatever else is due on their lines; and the incidents of all that are about one."""
    ids = [timer.subject_id for timer in due]
    others = await line_rows.along(tx, ORG, ids, bundle.METHODS, now, bundle.MOST)
    more = {timer: incident for timer, incident in others.items() if timer.subject_id not in ids}
    theirs = {timer.subject_id: incident for timer, incident in more.items() if incident is not None}
    return [*due, *more], {**about, **theirs}


def _is_high(delivery: Delivery, held: Mapping[int, Incident]) -> bool:
    incident = held.get(delivery.incident_id or 0)
    return delivery.kind in PAGES and incident is not None and incident.fate.urgency is Urgency.HIGH


async def _messages(tx: Tx, begun: Sequence[Begun], high: Collection[int]) -> tuple[Begun, ...]:
    """One for each message, which carries what goes with it; kept in the rows too."""
    loads = bundle.loads(begun, lambda one: one.delivery, lambda one: one.delivery.id in high)
    carriers = {each.delivery.id: load[0].delivery.id for load in loads for each in load[1:]}
    alone = {load[0].delivery.id: None for load in loads if load[0].delivery.carried_by is not None}
    await line_rows.carry(tx, {**carriers, **alone})
    return tuple(replace(load[0], carried=tuple(load[1:])) for load in loads)


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
    told = delivery.body.get(bundle.UPDATE)
    if told is not None and incident is not None and incident.fate.status != told:
        return f"the incident is {incident.fate.status} by now"
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
