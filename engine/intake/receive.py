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
from datetime import datetime
from functools import partial
from typing import Final

import structlog
from sqlalchemy.exc import IntegrityError

from engine import metrics
from engine.clock import Clock, monotonic
from engine.db import Database, Tx, Writer
from engine.directory import Directory, Service
from engine.errors import NotFound, Overloaded, Unavailable
from engine.intake.fold import fold, take_together
from engine.intake.intake import Intake, Taken
from engine.intake.memory import Memory
from engine.intake.prepared import Prepared
from engine.intake.recent import Recent
from engine.intake.repeats import Repeats
from engine.intake.sweep import add_group_resolves
from engine.intake.waiting import Waiting, heard
from engine.models import Action, Actor, Body, Event, Receipt, Severity
from engine.nudge import Nudge
from engine.pager.apply import Moved

log = structlog.get_logger(__name__)

BODIES_AT_MOST: Final = 500  # in one commit
EVENTS_AT_MOST: Final = 4_000
WAITING_AT_MOST: Final = 20_000  # then senders are told to come back
RESTARTS: Final = 5


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
        self._prepared = Prepared()
        self._task: asyncio.Task[None] | None = None

    async def accept(
        self, org_id: int, service_id: int, body: Body, *, by: Actor | None = None
    ) -> list[Receipt]:
        """Store what the body says; one receipt for each event, in order, after the commit.

        `by` is the person who says it, if it is no source. Raises Unavailable when it could not be
        stored: the sender should come back, and what was stored of it is then a repeat.
        """
        if len(self._queue) >= WAITING_AT_MOST:
            raise Overloaded
        service = await self._service(service_id)
        if service is None:
            raise NotFound("This service was deleted.")
        if not body.events and not body.group_resolves:
            return []
        answer: asyncio.Future[list[Receipt]] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(heard)
        request = self._prepared.request(service, body, by)
        self._queue.append(Waiting(org_id, request, answer, monotonic()))
        self._wake()
        # A sender that hangs up cancels its answer, and nothing else: the batch goes on.
        return await answer

    async def open_by_hand(
        self, org_id: int, service_id: int, title: str, dedup_key: str | None, actor: Actor
    ) -> tuple[int, bool]:
        """An incident that a person opens: its id, and whether it is new or was open for that key."""
        key = dedup_key or f"by-hand-{secrets.token_hex(8)}"
        event = Event(Action.TRIGGER, key, title, severity=Severity.CRITICAL, raw_severity="critical")
        body = Body(actor.via.value, (event,))
        (receipt,) = await self.accept(org_id, service_id, body, by=actor)
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
            taken = await self._store(batch)
        except Unavailable as error:
            for waiting in batch:
                waiting.fail(error)
        except Exception:
            if len(batch) == 1:
                log.exception("receive.poisoned", source=batch[0].request.body.source)
                batch[0].fail(Unavailable("This could not be stored; it was logged."))
                return
            log.warning("receive.bisected", bodies=len(batch))
            middle = len(batch) // 2
            await self._commit(batch[:middle])
            await self._commit(batch[middle:])
        else:
            self._answer(batch, taken)

    async def _store(self, batch: Sequence[Waiting]) -> Taken:
        """One transaction, started again while others move what it has read."""
        moved: Moved | IntegrityError | None = None
        for _ in range(RESTARTS):
            known = await self.known()
            unit = partial(self._unit, batch=batch, known=known, now=self._clock.now())
            try:
                return await self._database.write(unit, rank=Writer.INGEST)
            except (Moved, IntegrityError) as error:
                # IntegrityError: a re-fire met an incident that opened for its group in this instant.
                moved = error
        if isinstance(moved, IntegrityError):
            raise moved
        raise Unavailable

    async def _unit(self, tx: Tx, batch: Sequence[Waiting], known: Directory, now: datetime) -> Taken:
        """The long way for what is new, and one UPDATE for what only repeats."""
        org_id = batch[0].org_id
        closed = frozenset().union(*(waiting.request.closes for waiting in batch))
        for waiting in batch:
            waiting.sort_out(self._memory, closed)
        repeats = Repeats.of(batch)
        rest = [(n, waiting) for n, waiting in enumerate(batch) if waiting.needs_intake]
        if not rest:
            return Taken(matched=await repeats.store(tx, org_id, now))
        plans = fold((n, waiting.without_repeats()) for n, waiting in rest)
        await add_group_resolves(tx, org_id, [waiting.request for _, waiting in rest], plans)
        return await Intake(tx, org_id, known, now).run(plans, repeats)

    def _answer(self, batch: Sequence[Waiting], taken: Taken) -> None:
        for key in taken.closed:
            self._memory.forget(key)
        for key, seen in taken.seen:
            self._memory.keep(key, seen)
        if taken.armed:
            self._nudge()
        again: list[Waiting] = []
        outcomes: Counter[str] = Counter()
        for number, waiting in enumerate(batch):
            waiting.keep_receipts(number, taken.receipts, taken.matched, self._memory)
            if waiting.stored:
                outcomes.update(receipt.status for receipt in waiting.receipts.values())
                waiting.succeed()
            else:
                waiting.go_on()
                again.append(waiting)
        for status, count in outcomes.items():
            metrics.events.labels(status).inc(count)
        self._queue.extendleft(reversed(again))
