"""One request and whoever waits for its commit: what of it is left to store, and its receipts.

Never stores anything itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

from engine import metrics
from engine.clock import monotonic
from engine.intake.fold import Item, Place, Request
from engine.intake.memory import Memory, Seen
from engine.models import Receipt
from engine.store.dedup_keys import Key


@dataclass(slots=True, eq=False)
class Waiting:
    """A request in the queue. What one batch leaves open, the next one looks at again."""

    org_id: int
    request: Request
    answer: asyncio.Future[list[Receipt]]
    arrived: float
    long_way: bool = False  # its repeat met no open alert: it must look for one
    repeats: dict[int, Seen] = field(default_factory=dict)  # by event: what only repeats
    receipts: dict[int, Receipt] = field(default_factory=dict)  # by event: what is committed

    def sort_out(self, memory: Memory, closed: Set[Key]) -> None:
        """Find what only repeats an open alert. What somebody in the batch may close is looked at."""
        self.repeats = {}
        if self.long_way:
            return
        for item in self.request.items:
            seen = memory.repeat_of(self.request.service.id, item.event)
            if seen is not None and not (closed and self.request.meets(item, closed)):
                self.repeats[item.position] = seen

    @property
    def needs_intake(self) -> bool:
        return len(self.repeats) < len(self.request.items) or bool(self.request.body.group_resolves)

    def without_repeats(self) -> Request:
        if not self.repeats:
            return self.request
        return self._only(tuple(item for item in self.request.items if item.position not in self.repeats))

    def _only(self, items: tuple[Item, ...]) -> Request:
        return Request(self.request.service, self.request.body, items)

    def keep_receipts(
        self, number: int, stored: Mapping[Place, Receipt], matched: frozenset[int], memory: Memory
    ) -> None:
        """Note what the batch has stored of it, as its request `number`."""
        for item in self.request.items:
            receipt = stored.get((number, item.position))
            if receipt is not None:
                self.receipts[item.position] = receipt
        for item in self.request.items:
            seen = self.repeats.get(item.position)
            if seen is None:
                continue
            key = (self.request.service.id, item.event.dedup_key)
            if seen.alert_id not in matched:
                memory.forget(key)
                continue
            self.receipts[item.position] = Receipt(
                item.event.dedup_key, "repeat", "", seen.incident_id, seen.number
            )
            if not seen.says_the_same(item.event):
                memory.keep(key, replace(seen, words=hash(item.event.summary)))

    @property
    def stored(self) -> bool:
        return len(self.receipts) == len(self.request.body.events)

    def go_on(self) -> None:
        """What is committed stays so; the rest takes the long way in the next batch."""
        body = replace(self.request.body, group_resolves=())
        left = tuple(item for item in self.request.items if item.position not in self.receipts)
        self.request = Request(self.request.service, body, left)
        self.long_way = True

    def succeed(self) -> None:
        metrics.ingest_seconds.observe(monotonic() - self.arrived)
        if not self.answer.done():
            self.answer.set_result([self.receipts[position] for position in range(len(self.receipts))])

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


def heard(answer: asyncio.Future[list[Receipt]]) -> None:
    """A sender that hung up leaves its answer unread; that is no error of ours."""
    if not answer.cancelled():
        answer.exception()
