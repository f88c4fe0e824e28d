"""Which due deliveries may start now; what may not is moved to when it may, before anybody claims it.

Never sends, and never holds a lease: who waits here is free for any other worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from engine.db import Database, Tx
from engine.models import ORG, Card, Delivery, Method, Timer
from engine.notify import lines
from engine.notify.next_rule import pull_next_rules
from engine.notify.pacing import Pace
from engine.notify.verdict import LONG_WAIT, PAGES
from engine.store import cards, deliveries, timers

CARD_FIRST: Final = timedelta(seconds=10)  # how long a page waits for the card of its channel
PACE: Final = timedelta(seconds=1)  # Slack: one message per second and channel
PACED: Final = frozenset({Method.SLACK, Method.CHANNEL})


class Admission:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._pace = Pace(PACE)

    async def admit(self, due: Sequence[Timer], now: datetime) -> tuple[list[Timer], int]:
        """The timers whose deliveries may start, and how many were moved."""
        async with self._database.look() as tx:
            found = await deliveries.read(tx, [timer.subject_id for timer in due])
            placing = await _waiting_for_card(tx, list(found.values()), now)
            waiting = await lines.waiting(tx, found.values(), now)
        admitted: list[Timer] = []
        later: list[tuple[Timer, datetime]] = []
        held_long: list[Delivery] = []
        for timer in due:
            delivery = found.get(timer.subject_id)
            at = now if delivery is None else self._start_at(delivery, delivery.id in placing, now)
            wait = waiting.get(timer.subject_id)
            at = at if wait is None else max(at, wait.until)
            if at <= now:
                admitted.append(timer)
            else:
                later.append((timer, at))
                if delivery is not None and delivery.kind in PAGES and at - now > LONG_WAIT:
                    # Why not of low urgency: nobody is called early because they were texted before.
                    held_long += [delivery] if wait is None or wait.high else []
        if later:
            await self._database.write(lambda tx: _put_off(tx, later, held_long, now))
        return admitted, len(later)

    def hold(self, delivery: Delivery, until: datetime) -> None:
        """The provider wants nothing there before `until`: what waits for it waits with it."""
        if delivery.method in PACED:
            self._pace.hold(_line(delivery), until)

    def _start_at(self, delivery: Delivery, placing: bool, now: datetime) -> datetime:
        if placing:
            return now + PACE
        if delivery.method not in PACED:
            return now
        return self._pace.admit(_line(delivery), now, delivery.id)


async def _put_off(
    tx: Tx, later: Sequence[tuple[Timer, datetime]], held_long: Sequence[Delivery], now: datetime
) -> None:
    """A page that has to wait for long goes by the person's next rule too."""
    await timers.move(tx, later)
    await pull_next_rules(tx, held_long, now)


def _line(delivery: Delivery) -> str:
    return f"{delivery.method}:{delivery.person_id or delivery.address or delivery.incident_id}"


async def _waiting_for_card(tx: Tx, found: Sequence[Delivery], now: datetime) -> set[int]:
    """Messages for a channel in which the incident's card is about to be posted: it goes first, and
    they go into its thread."""
    waiting = [
        one
        for one in found
        if one.method is Method.CHANNEL and one.incident_id and now - one.due_at < CARD_FIRST
    ]
    if not waiting:
        return set()
    shown = await cards.of_incidents(tx, ORG, [one.incident_id or 0 for one in waiting])
    unplaced = {(card.incident_id, card.channel) for card in shown if card.ts is None}
    return {
        one.id
        for one in waiting
        if (one.incident_id, one.address or _service_channel(one, shown)) in unplaced
    }


def _service_channel(delivery: Delivery, shown: Sequence[Card]) -> str | None:
    """A line without an address goes where the card of the incident's service stands."""
    own = [
        card.channel for card in shown if card.incident_id == delivery.incident_id and card.person_id is None
    ]
    return own[0] if own else None
