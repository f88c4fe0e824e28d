"""The providers of a run: they outlive the pager, and remember every message that they took.

Never decides what a fault does: a trap stands before and behind the taking.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from engine.models import Method, Outcome, Page, Rejected, Retry, Sent
from tests.crash.faults import OTHERS, Kind, Point
from tests.crash.watched import Trap


@dataclass(frozen=True, slots=True)
class Message:
    """A page as a provider sees it."""

    delivery: int
    attempt: int
    kind: str
    method: str
    address: str
    person: str | None
    carried: tuple[tuple[int, int], ...] = ()  # other deliveries that go in it, and of each the attempt

    @classmethod
    def of(cls, page: Page) -> Message:
        carried = tuple((one.id, one.attempt) for one in page.carried)
        return cls(
            page.id, page.attempt, page.kind.value, page.method.value, page.address, page.person, carried
        )

    def each(self) -> list[Message]:
        """One for each delivery, since each of them is told by it."""
        return [self, *(replace(self, delivery=one, attempt=attempt) for one, attempt in self.carried)]


@dataclass(frozen=True, slots=True)
class Taken:
    """A message that a provider accepted, and when."""

    message: Message
    at: datetime


@dataclass(slots=True)
class Ledger:
    """`script` holds what a method answers to its next pages; then it takes everything."""

    now: Callable[[], datetime]
    taken: list[Taken] = field(default_factory=list)
    script: dict[str, list[Outcome]] = field(default_factory=dict)
    always: dict[str, Outcome] = field(default_factory=dict)

    def receive(self, message: Message) -> Outcome:
        scripted = self.script.get(message.method, []) if message.kind == "page" else []
        if scripted:
            return scripted.pop(0)
        if message.kind == "page" and message.address in self.always:
            return self.always[message.address]
        self.taken += [Taken(one, self.now()) for one in message.each()]
        return Sent(f"{message.delivery}-{message.attempt}", message.method)

    def twice(self) -> dict[int, int]:
        """How often more than once each delivery was taken, where it was."""
        counts: dict[int, int] = {}
        for one in self.taken:
            counts[one.message.delivery] = counts.get(one.message.delivery, -1) + 1
        return {delivery: more for delivery, more in counts.items() if more}


Give = Callable[[Message], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Provider:
    """A transport that gives every message to the ledger, past the trap."""

    methods: frozenset[Method]
    provider: str
    give: Give
    trap: Trap | None = None

    async def send(self, page: Page) -> Outcome:
        kind = self.trap.check(Point.SEND, f"of {page.id}") if self.trap else None
        if kind is Kind.UNREACHABLE:
            return Retry("the provider could not be reached")
        if kind in OTHERS and self.trap:
            await self.trap.meet(kind)
        outcome = await self.give(Message.of(page))
        taken = self.trap is not None and isinstance(outcome, Sent)
        kind = self.trap.check(Point.TAKEN, f"of {page.id}") if self.trap and taken else None
        if kind is Kind.NO_ANSWER:
            raise TimeoutError
        if kind in OTHERS and self.trap:
            await self.trap.meet(kind)
        return outcome

    async def close(self) -> None:
        return None


def providers(give: Give, trap: Trap | None = None) -> list[Provider]:
    """One for each way by which the story sends."""
    ways: Iterable[frozenset[Method]] = (
        frozenset({Method.SLACK, Method.CHANNEL}),
        frozenset({Method.SMS}),
        frozenset({Method.URL}),
    )
    return [Provider(methods, min(methods).value, give, trap) for methods in ways]


def as_json(outcome: Outcome) -> dict[str, Any]:
    return {"is": type(outcome).__name__, **asdict(outcome)}


def from_json(said: dict[str, Any]) -> Outcome:
    if said["is"] == "Sent":
        return Sent(said["ref"], said["provider"])
    return Retry(said["reason"]) if said["is"] == "Retry" else Rejected(said["reason"])
