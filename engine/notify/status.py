"""What a provider says later about a message or a call: delivered, failed, nobody answered.

Monotone: a state never goes back, and a message that died or was delivered stays so, in whatever
order the provider's answers come.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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
from engine.store import deliveries, incidents, timers
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
    "busy": Said(DeliveryStatus.DEAD, "the line was busy"),
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
            delivery = await _find(tx, provider_ref, delivery_id)
            if delivery is None:
                return Taken()
            held = await incidents.lock(tx, [delivery.incident_id]) if delivery.incident_id else []
            delivery = (await deliveries.read(tx, [delivery.id]))[delivery.id]
            said = _meaning(delivery, status, error_code)
            if said is None or not _is_about(delivery, provider_ref):
                return Taken()
            return await _apply(tx, delivery, said, held[0] if held else None, known, self._clock.now())

        taken = await self._database.write(unit, rank=Writer.OUTCOME)
        count(taken.deaths)
        if taken.changed:
            log.info("provider.said", status=status, code=error_code or "")
            self._nudge()
        return taken.changed


async def _find(tx: Tx, provider_ref: str, delivery_id: int | None) -> Delivery | None:
    found = await deliveries.by_ref(tx, ORG, provider_ref)
    if found is not None or delivery_id is None:
        return found
    return (await deliveries.read(tx, [delivery_id])).get(delivery_id)


def _is_about(delivery: Delivery, provider_ref: str) -> bool:
    """Is it about the present attempt? That one has this reference, or is being sent and has none yet."""
    known = delivery.provider_ref == provider_ref
    return delivery.status is (DeliveryStatus.SENT if known else DeliveryStatus.SENDING)


async def _apply(
    tx: Tx, delivery: Delivery, said: Said, incident: Incident | None, known: Directory, now: datetime
) -> Taken:
    again = said.again and delivery.status is DeliveryStatus.SENT and delivery.attempts < TRIES
    status = DeliveryStatus.QUEUED if again else said.status
    await deliveries.set_status(tx, delivery.id, status, said.reason, now)
    if again:
        await timers.arm(tx, ORG, [Arming(TimerKind.DELIVER, delivery.id, now + DELAYS[0])])
    if said.status is DeliveryStatus.DEAD:
        await pull_next_rules(tx, [delivery], now)
    deaths = (Death(delivery, said.reason, incident),) if status is DeliveryStatus.DEAD else ()
    await died(tx, deaths, known, now)
    if incident is not None:
        await timers.arm(tx, ORG, await card_armings(tx, ORG, [incident.id], now))
    return Taken(True, deaths)


def _meaning(delivery: Delivery, status: str, error_code: str | None) -> Said | None:
    said = (CALL if delivery.method is Method.VOICE else SMS).get(status.lower())
    if said is None or not error_code:
        return said
    again = error_code.isdecimal() and int(error_code) in TRANSIENT
    return replace(said, reason=f"{said.reason} ({error_code})", again=again)
