"""Processes that can die at any step, and the providers that outlive them.

A dead process does nothing more: no statement, no commit, no send, and no clean end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from sqlalchemy import event

from bot.app import App
from engine.db import Tx
from engine.models import Method, Outcome, Page, Rejected, Retry, Sent, Throttled
from tests.fakes import FakeClock
from tests.scenario.harness import Pager

T = TypeVar("T")


class Killed(BaseException):
    """The process ends here."""


class Mood(StrEnum):
    """How a provider takes a message."""

    WELL = "well"
    DOWN = "down"
    REJECTS = "rejects"
    THROTTLES = "throttles"
    UNCLEAR = "takes it, and the answer is lost"


@dataclass
class Provider:
    """Takes messages by its mood, and keeps what it took; `stalled` holds the next until it is set."""

    methods: frozenset[Method]
    provider: str
    clock: FakeClock
    mood: Mood = Mood.WELL
    took: list[Page] = field(default_factory=list)
    unclear: list[int] = field(default_factory=list)  # taken, and the sender could not know
    stalled: asyncio.Event | None = None
    entered: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, page: Page) -> Outcome:
        if (stalled := self.stalled) is not None:
            self.stalled = None
            self.entered.set()
            await stalled.wait()
        match self.mood:
            case Mood.DOWN:
                return Retry("it is down")
            case Mood.REJECTS:
                return Rejected("gone")
            case Mood.THROTTLES:
                return Throttled(self.clock.now() + timedelta(seconds=20))
        self.took.append(page)
        if self.mood is Mood.UNCLEAR:
            self.unclear.append(page.id)
            return Retry("no answer in time: it may have been sent")
        detail = {"channel_id": f"D{page.address}", "ts": f"{page.id}.{page.attempt}"}
        return Sent(f"{self.provider}-{page.id}-{page.attempt}", self.provider, detail if self.slack else {})

    @property
    def slack(self) -> bool:
        return Method.SLACK in self.methods

    async def close(self) -> None:
        return None


@dataclass(frozen=True)
class Skewed:
    """The clock of another host: it goes with the first, a little off."""

    of: FakeClock
    off: timedelta

    def now(self) -> datetime:
        return self.of.now() + self.off

    async def sleep_until(self, when: datetime) -> None:
        await self.of.sleep_until(when - self.off)


class Mortal(Pager):
    """A process that dies when `dies_in` more steps are taken; 0: it lives."""

    def __init__(self, url: str, clock: FakeClock, providers: dict[Method, Any], off: timedelta) -> None:
        self.dies_in = 0
        self.died = asyncio.Event()
        self.off = off
        super().__init__(url, clock)
        self.transports = providers
        self.app = self._build()

    def _build(self) -> App:
        self.dies_in, self.died = 0, asyncio.Event()
        here, self.clock = self.clock, Skewed(self.clock, self.off)  # type: ignore[assignment]  # a clock like it
        app = super()._build()
        self.clock = here
        died = self.died  # of this process: the next one has another
        transact = app.database._transact

        async def watched(unit: Callable[[Tx], Awaitable[Any]]) -> Any:
            self._step(died)
            result = await transact(unit)
            self._step(died)
            return result

        app.database._transact = watched  # type: ignore[method-assign]  # steps around each transaction

        @event.listens_for(app.database.writer_engine.sync_engine, "before_cursor_execute")
        def statement(*_: Any) -> None:
            self._step(died)

        @event.listens_for(app.database.writer_engine.sync_engine, "commit")
        def commit(*_: Any) -> None:
            self._step(died)

        for transport in app.transports._all:
            send = transport.send

            async def sends(page: Page, send: Callable[[Page], Awaitable[Outcome]] = send) -> Outcome:
                self._step(died)
                outcome = await send(page)
                self._step(died)
                return outcome

            transport.send = sends  # type: ignore[method-assign]  # likewise
        return app

    def _step(self, died: asyncio.Event) -> None:
        if died is self.died and self.dies_in:
            self.dies_in -= 1
            if not self.dies_in:
                died.set()
        if died.is_set():
            raise Killed

    async def lives_through(self, doing: Coroutine[Any, Any, T]) -> tuple[T | None, bool]:
        """The result, and whether the process is still alive; one that died leaves its work as it is."""
        task = asyncio.ensure_future(doing)
        died = asyncio.ensure_future(self.died.wait())
        await asyncio.wait({task, died}, return_when=asyncio.FIRST_COMPLETED)
        died.cancel()
        if not self.died.is_set():
            return task.result(), True
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # it is why, or it came of it
        return None, False

    async def begin_anew(self) -> None:
        """Another process in the place of the dead one."""
        left = [*self.app.pipeline._flying, *([self.app.receiver._task] if self.app.receiver._task else [])]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self.app.database.close()  # the system does that for a process
        self.app = self._build()
