"""What a provider says later about a message or a call: delivered, failed, nobody answered.

Monotone: a state never goes back, and a message that died or was delivered stays so, in whatever
order the provider's answers come.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import structlog

from engine.backoff import DELAYS
from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Directory
from engine.models import ORG, Delivery, DeliveryStatus, Method, TimerKind
from engine.notify.death import Death, count, died
from engine.notify.next_rule import pull_next_rules
from engine.notify.twilio_errors import TRANSIENT
from engine.nudge import Nudge
from engine.pager.apply import card_armings
from engine.store import deliveries, incidents, lines, timers
from engine.store.incidents import Incident
from engine.store.timers import Arming

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Said:
    """What a provider's word means for the delivery."""

    status: DeliveryStatus
    reason: str
    again: bool = False  # it may go through the next time


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of it."""

    changed: bool = False
    deaths: tuple[Death, ...] = ()


TRIES: Final = 2  # of a message that the carrier lost

PRESSED: Final = "pressed"  # our own word, for a key in a call: the provider has none
# Why `completed` is unconfirmed: a machine may have taken the call; only a key pressed is an answer.
SMS: Final = {
    "delivered": Said(DeliveryStatus.DELIVERED, ""),
    "read": Said(DeliveryStatus.DELIVERED, ""),
    "undelivered": Said(DeliveryStatus.DEAD, "the carrier did not deliver it"),
    "failed": Said(DeliveryStatus.DEAD, "the provider could not send it"),
}
CALL: Final = {
    PRESSED: Said(DeliveryStatus.DELIVERED, ""),
    "completed": Said(DeliveryStatus.UNCONFIRMED, "the call ended without a key pressed"),
    "busy": Said(DeliveryStatus.DEAD, "the line was busy", again=True),
    "no-answer": Said(DeliveryStatus.DEAD, "nobody picked up"),
    "failed": Said(DeliveryStatus.DEAD, "the call could not be placed"),
    "canceled": Said(DeliveryStatus.CANCELLED, "hung up"),
}


class ProviderStatus:
    """Takes a provider's status of one of our messages or calls, by its reference."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        directory_now: Callable[[], Awaitable[Directory]],
        nudge: Nudge,
    ) -> None:
        self._database = database
        self._clock = clock
        self._directory_now = directory_now
        self._nudge = nudge

    async def __call__(
        self, provider_ref: str, status: str, error_code: str | None = None, delivery_id: int | None = None
    ) -> bool:
        """True if it changed something; an unknown message or word changes nothing.

        `delivery_id` finds a message of which the provider speaks before its answer to us is recorded.
        """
        known = await self._directory_now()

        async def unit(tx: Tx) -> Taken:
            ids = await _find(tx, provider_ref, delivery_id)
            about = {*(await deliveries.incidents_of(tx, ids)).values()}
            held = {one.id: one for one in await incidents.lock(tx, sorted(about))}
            found = (await deliveries.read(tx, ids)).values()
            meant = [
                (one, said)
                for one in found
                if _is_about(one, provider_ref) and (said := _meaning(one, status, error_code)) is not None
            ]
            return await _apply(tx, meant, held, known, self._clock.now())

        taken = await self._database.write(unit, rank=Writer.OUTCOME)
        count(taken.deaths)
        if taken.changed:
            log.info("provider.said", status=status, code=error_code or "")
            self._nudge()
        return taken.changed


async def _find(tx: Tx, provider_ref: str, delivery_id: int | None) -> list[int]:
    """The deliveries in this message: its own, and those that it carries."""
    own = await deliveries.by_ref(tx, ORG, provider_ref)
    if not own and delivery_id is not None:
        own = [delivery_id]
    carried = await lines.carried_by(tx, ORG, own) if own else {}
    return sorted({*own, *(one for each in carried.values() for one in each)})


def _is_about(delivery: Delivery, provider_ref: str) -> bool:
    """Is it about the present attempt? That one has this reference, or is being sent and has none yet."""
    known = delivery.provider_ref == provider_ref
    # Why unconfirmed too: whoever was silent for two minutes may still say how it ended.
    silent = known and delivery.status is DeliveryStatus.UNCONFIRMED and delivery.method is Method.SMS
    return silent or delivery.status is (DeliveryStatus.SENT if known else DeliveryStatus.SENDING)


async def _apply(
    tx: Tx,
    meant: Sequence[tuple[Delivery, Said]],
    held: Mapping[int, Incident],
    known: Directory,
    now: datetime,
) -> Taken:
    again = [one for one, said in meant if said.again and _may_go_again(one)]
    for one, said in meant:
        status = DeliveryStatus.QUEUED if one in again else said.status
        await deliveries.set_status(tx, one.id, status, said.reason, now)
    await timers.disarm(tx, ORG, [TimerKind.RECEIPT], [one.id for one, _ in meant])
    await timers.arm(tx, ORG, [Arming(TimerKind.DELIVER, one.id, now + DELAYS[0]) for one in again])
    lost = [(one, said) for one, said in meant if said.status is DeliveryStatus.DEAD]
    await pull_next_rules(tx, [one for one, _ in lost], now)
    deaths = tuple(
        Death(one, said.reason, held.get(one.incident_id or 0)) for one, said in lost if one not in again
    )
    await died(tx, deaths, (), known, now)
    shown = sorted({one.incident_id for one, _ in meant if one.incident_id is not None})
    await timers.arm(tx, ORG, await card_armings(tx, ORG, shown, now))
    return Taken(bool(meant), deaths)


def _may_go_again(delivery: Delivery) -> bool:
    return delivery.status is DeliveryStatus.SENT and delivery.attempts < TRIES


def _meaning(delivery: Delivery, status: str, error_code: str | None) -> Said | None:
    said = (CALL if delivery.method is Method.VOICE else SMS).get(status.lower())
    if said is None or not error_code:
        return said
    passes = error_code.isdecimal() and int(error_code) in TRANSIENT
    return replace(said, reason=f"{said.reason} ({error_code})", again=said.again or passes)
