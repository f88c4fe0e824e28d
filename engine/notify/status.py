"""What a provider says later about a message or a call: delivered, failed, nobody answered.

Monotone: a state never goes back, and a message that died or was delivered stays so, in whatever
order the provider's answers come.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import structlog

from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Directory
from engine.models import ORG, Delivery, DeliveryStatus, Method
from engine.notify.record import died, pull_next_rule
from engine.nudge import Nudge
from engine.pager.apply import card_armings
from engine.store import deliveries, incidents, timers

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Said:
    """What a provider's word means for the delivery."""

    status: DeliveryStatus
    reason: str


# Why `completed` is unconfirmed: a machine may have taken the call; only a key pressed is an answer.
SMS: Final = {
    "delivered": Said(DeliveryStatus.DELIVERED, ""),
    "read": Said(DeliveryStatus.DELIVERED, ""),
    "undelivered": Said(DeliveryStatus.DEAD, "the carrier did not deliver it"),
    "failed": Said(DeliveryStatus.DEAD, "the provider could not send it"),
}
CALL: Final = {
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

    async def __call__(self, provider_ref: str, status: str, error_code: str | None = None) -> bool:
        """True if it changed something; an unknown reference or word changes nothing."""
        known = await self._directory_now()

        async def unit(tx: Tx) -> bool:
            delivery = await deliveries.by_ref(tx, ORG, provider_ref)
            if delivery is None:
                return False
            held = await incidents.lock(tx, [delivery.incident_id]) if delivery.incident_id else []
            delivery = (await deliveries.read(tx, [delivery.id]))[delivery.id]
            said = _meaning(delivery, status, error_code)
            if said is None or delivery.status is not DeliveryStatus.SENT:
                return False
            now = self._clock.now()
            await deliveries.set_status(tx, delivery.id, said.status, said.reason, now)
            if said.status is DeliveryStatus.DEAD:
                await pull_next_rule(tx, delivery, now)
                await died(tx, delivery, said.reason, held[0] if held else None, known, now)
            ids = [incident.id for incident in held]
            await timers.arm(tx, ORG, await card_armings(tx, ORG, ids, now))
            return True

        changed = await self._database.write(unit, rank=Writer.OUTCOME)
        if changed:
            log.info("provider.said", status=status, code=error_code or "")
            self._nudge()
        return changed


def _meaning(delivery: Delivery, status: str, error_code: str | None) -> Said | None:
    said = (CALL if delivery.method is Method.VOICE else SMS).get(status.lower())
    if said is None or not error_code:
        return said
    return Said(said.status, f"{said.reason} ({error_code})")
