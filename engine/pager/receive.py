"""Takes what the sources send: a group commit, and a receipt for each event only after it.

Whatever arrives while one commit runs shares the next; there is no waiting window. Unchanged
repeats cost one UPDATE. Sends nothing and touches no policy or schedule.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final

import structlog

from engine import metrics
from engine.clock import Clock, monotonic
from engine.db import Database, Tx, Writer
from engine.directory import Directory, Service
from engine.errors import NotFound, Overloaded, Unavailable
from engine.grouping import bounded_key
from engine.models import Action, Actor, Body, Event, Receipt, Severity
from engine.nudge import Nudge
from engine.pager.apply import Moved
from engine.pager.fold import Item, Plan, Request, fold, prepare, take_together
from engine.pager.intake import Intake, Taken, group_resolves
from engine.pager.memory import Memory, Seen
from engine.pager.recent import Recent
from engine.store import alerts

log = structlog.get_logger(__name__)

BODIES_AT_MOST: Final = 500  # in one commit
EVENTS_AT_MOST: Final = 4_000
WAITING_AT_MOST: Final = 20_000  # then senders are told to come back
RESTARTS: Final = 5


@dataclass(slots=True, eq=False)
class Waiting:
    """One request and whoever waits for its commit."""

    org_id: int
    request: Request
    opened_by: str
    arrived: float
    answer: asyncio.Future[list[Receipt]]
    long_way: bool = False  # its repeat met no open alert: it must look for one
    repeats: dict[int, Seen] = field(default_factory=dict)  # by event
    receipts: dict[int, Receipt] = field(default_factory=dict)  # by event: what is committed


class Receiver:
    """Accepts bodies; one commit runs at a time, and takes what has arrived."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        directory_now: Callable[[], Awaitable[Directory]],
        nudge: Nudge,
    ) -> None:
        self._database = database
        self._clock = clock
        self.known = Recent(directory_now)
        self._nudge = nudge
        self._queue: deque[Waiting] = deque()
        self._memory = Memory()
        self._task: asyncio.Task[None] | None = None

    async def accept(self, org_id: int, service_id: int, body: Body, *, opened_by: str = "") -> list[Receipt]:
        """Store what the body says; one receipt for each event, in order, after the commit.

        Raises Unavailable when it could not be stored: nothing of it was, and the sender should
        come back.
        """
        if len(self._queue) >= WAITING_AT_MOST:
            raise Overloaded
        service = await self._service(service_id)
        if service is None:
            raise NotFound("This service was deleted.")
        if not body.events and not body.group_resolves:
            return []
        answer: asyncio.Future[list[Receipt]] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_heard)
        waiting = Waiting(org_id, prepare(service, body), opened_by, monotonic(), answer)
        self._queue.append(waiting)
        self._wake()
        return await asyncio.shield(answer)

    async def open_by_hand(
        self, org_id: int, service_id: int, title: str, dedup_key: str | None, actor: Actor
    ) -> tuple[int, bool]:
        """An incident that a person opens: its id, and whether it is new or was open for that key."""
        key = dedup_key or f"by-hand-{secrets.token_hex(8)}"
        event = Event(Action.TRIGGER, key, title, severity=Severity.CRITICAL, raw_severity="critical")
        body = Body(actor.via.value, (event,))
        (receipt,) = await self.accept(org_id, service_id, body, opened_by=actor.name)
        if receipt.incident_id is None:
            raise Unavailable
        return receipt.incident_id, receipt.status == "opened"

    async def stop(self) -> None:
        """Wait for what has arrived to be committed."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    async def _service(self, service_id: int) -> Service | None:
        service = (await self.known()).services.get(service_id)
        if service is None:
            self.known.forget()  # it may be new
            service = (await self.known()).services.get(service_id)
        return service

    # --- the commit loop ---------------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain(), name="receive")

    async def _drain(self) -> None:
        while self._queue:
            batch = self._take()
            metrics.ingest_batch.observe(len(batch))
            metrics.ingest_waiting.set(len(self._queue))
            await self._commit(batch)

    def _take(self) -> list[Waiting]:
        org_id = self._queue[0].org_id
        head = list(itertools.islice(self._queue, BODIES_AT_MOST))
        first = [waiting for waiting in head if waiting.org_id == org_id]
        count = take_together(
            [waiting.request for waiting in first],
            lambda bodies, events: bodies < BODIES_AT_MOST and events <= EVENTS_AT_MOST,
        )
        batch = first[:count]
        taken = set(map(id, batch))
        for _ in head:
            self._queue.popleft()
        self._queue.extendleft(waiting for waiting in reversed(head) if id(waiting) not in taken)
        return batch

    async def _commit(self, batch: Sequence[Waiting]) -> None:
        """Commit the batch; if it fails for a reason of its own, halve it, so that one poisoned
        request fails alone, in a transaction of its own."""
        try:
            await self._store(batch)
        except Unavailable as error:
            _fail(batch, error)
        except Exception:
            if len(batch) == 1:
                log.exception("receive.poisoned", source=batch[0].request.body.source)
                _fail(batch, Unavailable("This could not be stored; it was logged."))
                return
            log.warning("receive.bisected", bodies=len(batch))
            middle = len(batch) // 2
            await self._commit(batch[:middle])
            await self._commit(batch[middle:])

    async def _store(self, batch: Sequence[Waiting]) -> None:
        for _ in range(RESTARTS):
            known = await self.known()
            unit = partial(self._unit, batch=batch, known=known, now=self._clock.now())
            try:
                taken, matched = await self._database.write(unit, rank=Writer.INGEST)
            except Moved:
                continue
            self._answer(batch, taken, matched)
            return
        raise Unavailable

    async def _unit(
        self, tx: Tx, batch: Sequence[Waiting], known: Directory, now: datetime
    ) -> tuple[Taken | None, set[int]]:
        """The long way for what is new, then one UPDATE for what only repeats."""
        self._sort_out(batch)
        taken = None
        rest = [(n, waiting) for n, waiting in enumerate(batch) if _needs_intake(waiting)]
        if rest:
            plans = fold((n, _without_repeats(waiting)) for n, waiting in rest)
            await self._add_group_resolves(tx, rest, plans)
            opened_by = next((waiting.opened_by for _, waiting in rest if waiting.opened_by), "")
            taken = await Intake(tx, batch[0].org_id, plans, known, now, opened_by).run()
        times = Counter(seen.alert_id for waiting in batch for seen in waiting.repeats.values())
        matched: set[int] = set()
        for count in sorted(set(times.values())):
            ids = [alert_id for alert_id, n in times.items() if n == count]
            matched |= await alerts.repeat(tx, batch[0].org_id, ids, count, now)
        return taken, matched

    def _sort_out(self, batch: Sequence[Waiting]) -> None:
        for waiting in batch:
            waiting.repeats.clear()
            if waiting.long_way:
                continue
            for item in waiting.request.items:
                seen = self._memory.repeat_of(waiting.request.service.id, item.event)
                if seen is not None and item.place is not None:
                    waiting.repeats[item.place[1]] = seen

    async def _add_group_resolves(
        self, tx: Tx, rest: Sequence[tuple[int, Waiting]], plans: dict[tuple[int, str], Plan]
    ) -> None:
        for _, waiting in rest:
            service, body = waiting.request.service, waiting.request.body
            if not body.group_resolves:
                continue
            ends = {one.group_key: one.before for one in body.group_resolves}
            found = await alerts.of_source_groups(tx, waiting.org_id, service.id, sorted(ends))
            mentioned = {item.event.dedup_key for item in waiting.request.items}
            for event in group_resolves(found, ends, mentioned):
                key = (service.id, event.dedup_key)
                plan = plans.setdefault(key, Plan(service, event.dedup_key))
                plan.add(_implied(service, body, event))

    # --- answers -----------------------------------------------------------------------------------------

    def _answer(self, batch: Sequence[Waiting], taken: Taken | None, matched: set[int]) -> None:
        if taken is not None:
            for key in taken.closed:
                self._memory.forget(*key)
            for service_id, dedup_key, seen in taken.seen:
                self._memory.keep(service_id, dedup_key, seen)
            if taken.armed:
                self._nudge()
        again = []
        for number, waiting in enumerate(batch):
            self._keep_receipts(number, waiting, taken, matched)
            if len(waiting.receipts) == len(waiting.request.body.events):
                _answered(waiting)
            else:
                again.append(_take_the_long_way(waiting))
        self._queue.extendleft(reversed(again))

    def _keep_receipts(self, number: int, waiting: Waiting, taken: Taken | None, matched: set[int]) -> None:
        service_id, events = waiting.request.service.id, waiting.request.body.events
        for position, seen in waiting.repeats.items():
            dedup_key = events[position].dedup_key
            if seen.alert_id in matched:
                waiting.receipts[position] = Receipt(dedup_key, "repeat", "", seen.incident_id, seen.number)
            else:
                self._memory.forget(service_id, bounded_key(dedup_key))
        if taken is not None:
            for position in range(len(events)):
                receipt = taken.receipts.get((number, position))
                if receipt is not None:
                    waiting.receipts[position] = receipt


def _take_the_long_way(waiting: Waiting) -> Waiting:
    """What met no open alert is looked for by the next batch; what is committed stays so."""
    body = replace(waiting.request.body, group_resolves=())
    left = tuple(item for item in waiting.request.items if _position(item) not in waiting.receipts)
    waiting.request = Request(waiting.request.service, body, left)
    waiting.long_way = True
    return waiting


def _position(item: Item) -> int:
    return item.place[1] if item.place is not None else -1


def _needs_intake(waiting: Waiting) -> bool:
    return len(waiting.repeats) < len(waiting.request.items) or bool(waiting.request.body.group_resolves)


def _without_repeats(waiting: Waiting) -> Request:
    if not waiting.repeats:
        return waiting.request
    items = tuple(item for item in waiting.request.items if _position(item) not in waiting.repeats)
    return Request(waiting.request.service, waiting.request.body, items)


def _implied(service: Service, body: Body, event: Event) -> Item:
    (item,) = prepare(service, Body(body.source, (event,))).items
    return replace(item, place=None)


def _answered(waiting: Waiting) -> None:
    metrics.ingest_seconds.observe(monotonic() - waiting.arrived)
    receipts = [waiting.receipts[position] for position in range(len(waiting.receipts))]
    for receipt in receipts:
        metrics.events.labels(receipt.status).inc()
    if not waiting.answer.done():
        waiting.answer.set_result(receipts)


def _fail(batch: Sequence[Waiting], error: Exception) -> None:
    for waiting in batch:
        if not waiting.answer.done():
            waiting.answer.set_exception(error)


def _heard(answer: asyncio.Future[list[Receipt]]) -> None:
    """A sender that hung up leaves its answer unread; that is no error of ours."""
    if not answer.cancelled():
        answer.exception()
