"""Fakes with state: a clock in the test's hand, and transports that keep what they were given."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from engine.db import in_transaction
from engine.models import Method, Outcome, Page, Sent
from engine.notify.transport import Told

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)  # a Monday


class FakeClock:
    """Stands still until the test moves it."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._moved = asyncio.Event()

    def now(self) -> datetime:
        return self._now

    def move(self, **delta: float) -> datetime:
        return self.move_to(self._now + timedelta(**delta))

    def move_to(self, when: datetime) -> datetime:
        self._now = when
        self._moved.set()
        self._moved = asyncio.Event()
        return self._now

    async def sleep_until(self, when: datetime) -> None:
        while self._now < when:
            await self._moved.wait()


@dataclass
class FakeTransport:
    """Accepts every page, unless an outcome or an error was scripted for the next ones."""

    methods: frozenset[Method]
    provider: str = "fake"
    sent: list[Page] = field(default_factory=list)
    script: deque[Outcome | BaseException] = field(default_factory=deque)
    always: Outcome | BaseException | None = None
    hung_up: list[str] = field(default_factory=list)
    receipts: bool = False  # can be asked what became of what it took
    says: Told | None = None  # whatever it is asked about
    asked: list[str] = field(default_factory=list)
    before: Sent | None = None  # what an earlier attempt sent, as it can tell

    async def send(self, page: Page) -> Outcome:
        assert not in_transaction.get(), "a page must not be sent inside a transaction"
        outcome = self.script.popleft() if self.script else self.always
        if isinstance(outcome, BaseException):
            raise outcome
        if outcome is not None:
            if isinstance(outcome, Sent):
                self.sent.append(page)
            return outcome
        self.sent.append(page)
        ref = f"{self.provider}-{page.id}-{page.attempt}"
        detail = {"channel_id": f"D{page.address}", "ts": f"{page.id}.{page.attempt}"}
        return Sent(ref, self.provider, detail if Method.SLACK in self.methods else {}, self.receipts)

    async def told(self, method: Method, ref: str) -> Told | None:
        self.asked.append(ref)
        return self.says

    async def sent_before(self, page: Page) -> Sent | None:
        return self.before

    def fail_next(self, *outcomes: Outcome | BaseException) -> None:
        self.script.extend(outcomes)

    async def hang_up(self, ref: str) -> None:
        self.hung_up.append(ref)

    async def close(self) -> None:
        return None


def fake_transports(kinds: Iterable[Method] = tuple(Method)) -> dict[Method, FakeTransport]:
    """One fake per method; `slack` and `channel` share one, as in the product."""
    made: dict[Method, FakeTransport] = {}
    slack = FakeTransport(frozenset({Method.SLACK, Method.CHANNEL}), "slack")
    for kind in kinds:
        made[kind] = slack if kind in slack.methods else FakeTransport(frozenset({kind}), kind.value)
    return made
