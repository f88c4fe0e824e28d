"""The delivery pipeline: admit, begin, send, record.

Delivery is at least once: a crash between send and record sends again, with the same delivery id.
Nothing is sent inside a transaction, and no attempt begins after an ack has committed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine import metrics
from engine.clock import Clock, monotonic
from engine.db import Database, Tx, Writer
from engine.directory import Directory
from engine.errors import LeaseLost, Unavailable
from engine.escalation import still_wanted
from engine.models import (
    ORG,
    Card,
    Delivery,
    DeliveryKind,
    DeliveryStatus,
    IncidentView,
    Method,
    Outcome,
    Page,
    Rejected,
    Retry,
    Timer,
)
from engine.notify.breaker import Breakers, breaker_key
from engine.notify.pacing import Pace
from engine.notify.record import Ended, put_back, record
from engine.notify.route import NoRoute, Route, route
from engine.notify.transport import Transport, Transports
from engine.nudge import Nudge
from engine.store import cards, deliveries, incidents, timers, views
from engine.store.deliveries import Record

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(seconds=30)
SEND_TIMEOUT: Final = timedelta(seconds=10)  # at most a third of the lease, or a send outlives it
START_WITHIN: Final = timedelta(seconds=1)  # of the commit that began it, else it is put back
IN_FLIGHT: Final = 64
CARD_FIRST: Final = timedelta(seconds=10)  # how long a page waits for the card of its channel
PACE: Final = timedelta(seconds=1)  # Slack: one message per second and channel


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt whose `sending` row has committed."""

    timer: Timer
    delivery: Delivery
    view: IncidentView | None
    cards: tuple[Card, ...]


class Pipeline:
    """Handles due `deliver` timers. Sends run by themselves; `drain` waits for those in flight."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        directory_now: Callable[[], Awaitable[Directory]],
        nudge: Nudge,
        transports: Transports,
        *,
        owner: str,
        ops_channel: str | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._directory_now = directory_now
        self._nudge = nudge
        self._transports = transports
        self._owner = owner
        self._ops_channel = ops_channel
        self.breakers = Breakers()
        self._pace = Pace(PACE)
        self._flying: set[asyncio.Task[None]] = set()

    @property
    def capacity(self) -> int:
        """How many more sends may begin: none ever waits under a lease."""
        return max(0, IN_FLIGHT - len(self._flying))

    async def handle(self, due: Sequence[Timer]) -> int:
        """Begin what may begin now; returns how many timers were moved, ended or begun."""
        now = self._clock.now()
        admitted, moved = await self._admit(list(due)[: self.capacity], now)
        if not admitted:
            return moved
        begun, ended = await self._database.write(
            lambda tx: self._begin(tx, admitted, now), rank=Writer.ESCALATE
        )
        committed = monotonic()
        known = await self._directory_now()
        for one in begun:
            task = asyncio.create_task(self._fly(one, known, committed), name=f"deliver-{one.delivery.id}")
            self._flying.add(task)
            task.add_done_callback(self._flying.discard)
        return moved + ended + len(begun)

    async def drain(self) -> None:
        while self._flying:
            await asyncio.wait(set(self._flying))

    # --- admission: what cannot start now is moved to when it may, before anybody claims it -----------

    async def _admit(self, due: Sequence[Timer], now: datetime) -> tuple[list[Timer], int]:
        async with self._database.snapshot() as tx:
            found = await deliveries.read(tx, [timer.subject_id for timer in due])
            placing = await self._waiting_for_card(tx, list(found.values()), now)
        admitted: list[Timer] = []
        later: list[tuple[Timer, datetime]] = []
        for timer in due:
            delivery = found.get(timer.subject_id)
            at = now if delivery is None else self._start_at(delivery, delivery.id in placing, now)
            if at <= now:
                admitted.append(timer)
            else:
                later.append((timer, at))
        if later:
            await self._database.write(lambda tx: timers.move(tx, later))
        return admitted, len(later)

    def _start_at(self, delivery: Delivery, placing: bool, now: datetime) -> datetime:
        if placing:
            return now + PACE
        if delivery.method not in {Method.SLACK, Method.CHANNEL}:
            return now
        line = f"{delivery.method}:{delivery.person_id or delivery.address or delivery.incident_id}"
        return self._pace.admit(line, now, delivery.id)

    async def _waiting_for_card(self, tx: Tx, found: Sequence[Delivery], now: datetime) -> set[int]:
        """Messages for a channel in which the incident's card is about to be posted: it goes first,
        and they go into its thread."""
        waiting = [
            one
            for one in found
            if one.method is Method.CHANNEL and one.incident_id and now - one.due_at < CARD_FIRST
        ]
        shown = (
            await cards.of_incidents(tx, ORG, [one.incident_id or 0 for one in waiting]) if waiting else []
        )
        unplaced = {(card.incident_id, card.channel) for card in shown if card.ts is None}
        return {
            one.id
            for one in waiting
            if (one.incident_id, one.address or _service_channel(one, shown)) in unplaced
        }

    # --- the attempt begins with the commit of its `sending` row --------------------------------------

    async def _begin(self, tx: Tx, due: Sequence[Timer], now: datetime) -> tuple[list[Begun], int]:
        found = await deliveries.read(tx, [timer.subject_id for timer in due])
        held = await incidents.lock_shared(tx, [d.incident_id for d in found.values() if d.incident_id])
        claimed = await timers.claim(tx, due, self._owner, now + LEASE, now)
        # Read again under the locks: an ack may have cancelled one of them while we waited.
        found = await deliveries.read(tx, [timer.subject_id for timer in claimed])
        wanted: list[tuple[Timer, Delivery]] = []
        for timer in claimed:
            delivery = found.get(timer.subject_id)
            reason = _unwanted(delivery, held)
            if delivery is not None and reason is None:
                wanted.append((timer, delivery))
                continue
            await timers.finish(tx, timer)
            if delivery is not None and delivery.status in {DeliveryStatus.QUEUED, DeliveryStatus.SENDING}:
                end = Record(delivery.id, timer.attempt, "cancelled", reason or "", DeliveryStatus.CANCELLED)
                await deliveries.record(tx, delivery.org_id, replace(end, counts=False), now)
        numbers = {delivery.id: timer.attempt for timer, delivery in wanted}
        lost = await deliveries.lost(tx, ORG, list(numbers), numbers, now)
        metrics.attempts_unknown.inc(lost)
        await deliveries.begin(tx, ORG, list(numbers.items()), now)
        return await self._with_views(tx, wanted), len(claimed) - len(wanted)

    async def _with_views(self, tx: Tx, wanted: Sequence[tuple[Timer, Delivery]]) -> list[Begun]:
        ids = sorted({delivery.incident_id for _, delivery in wanted if delivery.incident_id})
        seen = {view.id: view for view in await views.by_ids(tx, ORG, ids)}
        shown = await cards.of_incidents(tx, ORG, ids) if ids else []
        return [
            Begun(
                timer,
                delivery,
                seen.get(delivery.incident_id or 0),
                tuple(card for card in shown if card.incident_id == delivery.incident_id),
            )
            for timer, delivery in wanted
        ]

    # --- the send, outside any transaction, and its record --------------------------------------------

    async def _fly(self, begun: Begun, known: Directory, committed: float) -> None:
        try:
            if monotonic() - committed > START_WITHIN.total_seconds():
                pair = [(begun.timer, begun.delivery)]
                await self._database.write(lambda tx: put_back(tx, pair, self._clock.now()))
                return
            address, outcome, threaded = await self._send(begun, known)
            await self._record(Ended(begun.timer, begun.delivery, address, outcome, threaded), known)
        except Unavailable:
            # The row stays `sending` until its lease ends; then it is taken up again and counted.
            log.warning("deliver.unrecorded", delivery=begun.delivery.id)
        except Exception:
            log.exception("deliver.failed", delivery=begun.delivery.id)

    async def _send(self, begun: Begun, known: Directory) -> tuple[str, Outcome, bool]:
        delivery, view = begun.delivery, begun.view
        where = route(delivery, known, view.channel if view else None, self._ops_channel)
        if isinstance(where, NoRoute):
            return "", Rejected(where.reason, quiet=where.quiet), False
        page = _page(begun, where)
        transport = self._choose(delivery.method, where.address)
        if isinstance(transport, (Rejected, Retry)):
            return where.address, transport, False
        outcome = await self._try(transport, page)
        key = breaker_key(transport.provider, delivery.method, where.address)
        self.breakers.record(key, outcome, self._clock.now())
        metrics.attempts.labels(delivery.method.value, type(outcome).__name__.lower()).inc()
        log.info(
            "delivery.attempted",
            delivery=delivery.id,
            attempt=begun.timer.attempt,
            method=delivery.method.value,
            outcome=type(outcome).__name__.lower(),
            reason=getattr(outcome, "reason", ""),
        )
        return where.address, outcome, "thread_ts" in page.body

    def _choose(self, method: Method, address: str) -> Transport | Rejected | Retry:
        """The first provider that is not known to be down; an open breaker means the next one, at once."""
        candidates = self._transports.for_method(method)
        if not candidates:
            return Rejected(f"no provider for {method} is set up")
        now = self._clock.now()
        for transport in candidates:
            if self.breakers.allows(breaker_key(transport.provider, method, address), now):
                return transport
        return Retry(f"every provider for {method} is down")

    async def _try(self, transport: Transport, page: Page) -> Outcome:
        try:
            async with asyncio.timeout(SEND_TIMEOUT.total_seconds()):
                return await transport.send(page)
        except TimeoutError:
            return Retry("no answer in time: it may have been sent")
        except Exception as error:
            log.exception("transport.raised", provider=transport.provider, delivery=page.id)
            return Retry(f"unexpected {type(error).__name__}")

    async def _record(self, ended: Ended, known: Directory) -> None:
        jitter = random.uniform(-1, 1)  # noqa: S311  # spreads retries, no secret
        try:
            await self._database.write(
                lambda tx: record(tx, ended, known, self._clock.now(), jitter), rank=Writer.OUTCOME
            )
        except LeaseLost:
            metrics.leases_lost.inc()
            log.warning("deliver.lease_lost", delivery=ended.delivery.id, attempt=ended.timer.attempt)
        self._nudge()

    # --- calls that ring for nothing ------------------------------------------------------------------

    def hang_up(self, calls: Sequence[tuple[str, str, int | None]]) -> None:
        """End these calls, by themselves: (provider, reference, person)."""
        for provider, ref, _ in calls:
            task = asyncio.create_task(self._end_call(provider, ref), name="hang-up")
            self._flying.add(task)
            task.add_done_callback(self._flying.discard)

    async def _end_call(self, provider: str, ref: str) -> None:
        try:
            async with asyncio.timeout(SEND_TIMEOUT.total_seconds()):
                await self._transports.hang_up(provider, ref)
        except Exception:
            log.exception("call.not_hung_up", provider=provider)


def _service_channel(delivery: Delivery, shown: Sequence[Card]) -> str | None:
    """A line without an address goes where the card of the incident's service stands."""
    own = [
        card.channel for card in shown if card.incident_id == delivery.incident_id and card.person_id is None
    ]
    return own[0] if own else None


def _unwanted(delivery: Delivery | None, held: dict[int, incidents.Incident]) -> str | None:
    if delivery is None:
        return "it is gone"
    if delivery.status not in {DeliveryStatus.QUEUED, DeliveryStatus.SENDING}:
        return f"it is {delivery.status}"
    incident = held.get(delivery.incident_id or 0)
    return None if incident is None else still_wanted(delivery.kind, delivery.round, incident.fate)


def _page(begun: Begun, where: Route) -> Page:
    delivery = begun.delivery
    body = dict(delivery.body)
    in_thread = bool(body.pop("thread", False)) or delivery.kind is DeliveryKind.PAGE
    if delivery.method is Method.CHANNEL and in_thread:
        card = next((one for one in begun.cards if one.channel == where.address and one.ts), None)
        if card is not None:
            body |= {"thread_ts": card.ts, "channel_id": card.channel_id}
    return Page(
        id=delivery.id,
        attempt=begun.timer.attempt,
        kind=delivery.kind,
        method=delivery.method,
        address=where.address,
        person=where.person,
        incident=begun.view,
        text=str(body.get("text", "")),
        body=body,
    )
