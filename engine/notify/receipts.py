"""What became of a message whose provider does not say: asked after a minute, given up on after two.

Whoever calls back is never asked. A page that nobody confirms is `unconfirmed`, and the person's next rule
fires. Never sends, and never takes back what a provider has said.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.models import ORG, Delivery, DeliveryStatus, Method, Rank, Timer, TimerKind
from engine.notify.next_rule import pull_next_rules
from engine.notify.transport import Told, Transports
from engine.notify.verdict import PAGES
from engine.nudge import Nudge
from engine.pager.apply import card_armings
from engine.store import deliveries, incidents, lines, timers
from engine.store.timers import Arming

log = structlog.get_logger(__name__)

ASK_AFTER: Final = timedelta(seconds=60)
GIVEN_UP_AFTER: Final = timedelta(seconds=120)
TALKING: Final = timedelta(seconds=30)  # then a call that is going on is asked about again
LONGEST_CALL: Final = timedelta(minutes=10)
ONGOING: Final = frozenset({"in-progress", "ringing"})
SILENT: Final = "nobody confirmed that it arrived"

Say = Callable[[str, str, str | None], Awaitable[bool]]  # reference, status, code: as a callback says it


def receipt_armings(delivery_ids: Iterable[int], now: datetime) -> list[Arming]:
    """When to ask about these, which were sent just now."""
    return [Arming(TimerKind.RECEIPT, one, now + ASK_AFTER, rank=Rank.NOTICE) for one in sorted(delivery_ids)]


class Receipts:
    def __init__(
        self, database: Database, clock: Clock, nudge: Nudge, transports: Transports, say: Say
    ) -> None:
        self._database = database
        self._clock = clock
        self._nudge = nudge
        self._transports = transports
        self._say = say

    async def look(self, timer: Timer, _now: datetime) -> datetime | None:
        """When to look again at this delivery; None: there is nothing more to learn."""
        delivery = await self._waited_for(timer.subject_id)
        if delivery is None or delivery.sent_at is None:
            return None
        told = await self._transports.told(delivery.provider, delivery.method, delivery.provider_ref)
        if told is not None and await self._say(delivery.provider_ref, told.status, told.code):
            return None
        again = next_look(delivery.method, delivery.sent_at, told, self._clock.now())
        if again is None:
            await self._give_up(delivery.id)
        return again

    async def _waited_for(self, delivery_id: int) -> Delivery | None:
        """The delivery, if its end is unknown. One that went in another's message shares its end."""
        async with self._database.look() as tx:
            found = (await deliveries.read(tx, [delivery_id])).get(delivery_id)
        waits = found is not None and found.status is DeliveryStatus.SENT and found.carried_by is None
        return found if waits else None

    async def _give_up(self, delivery_id: int) -> None:
        async def unit(tx: Tx) -> int:
            now = self._clock.now()
            carried = (await lines.carried_by(tx, ORG, [delivery_id])).get(delivery_id, [])
            ids = [delivery_id, *carried]
            about = {*(await deliveries.incidents_of(tx, ids)).values()}
            await incidents.lock(tx, sorted(about))
            # Why again: under the locks a callback may have said how it ended.
            known = (await deliveries.read(tx, ids)).values()
            silent = [one for one in known if one.status is DeliveryStatus.SENT]
            for one in silent:
                await deliveries.set_status(tx, one.id, DeliveryStatus.UNCONFIRMED, SILENT, now)
            await pull_next_rules(tx, [one for one in silent if one.kind in PAGES], now)
            await timers.arm(tx, ORG, await card_armings(tx, ORG, sorted(about), now))
            return len(silent)

        if await self._database.write(unit, rank=Writer.OUTCOME):
            log.warning("delivery.unconfirmed", delivery=delivery_id)
            self._nudge()


def next_look(method: Method, sent_at: datetime, told: Told | None, now: datetime) -> datetime | None:
    """When to ask again about what has no end yet; None: it is given up on."""
    talking = method is Method.VOICE and told is not None and told.status in ONGOING
    if talking and now < sent_at + LONGEST_CALL:
        return now + TALKING
    return sent_at + GIVEN_UP_AFTER if now < sent_at + GIVEN_UP_AFTER else None
