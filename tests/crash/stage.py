"""Where the runs of a test take place, one after the other: both sides' databases, and the clock.

Why one for all runs: what a run costs is mostly the compiling of its statements.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass, field

from engine.db import Database
from engine.models import Outcome
from tests.crash import history, witness
from tests.crash.faults import STALL, Fault, Kind
from tests.crash.inside import Inside
from tests.crash.ledger import Message
from tests.crash.orders import ORDERS, built, configure
from tests.crash.story import Story, night
from tests.crash.watched import Watched
from tests.crash.world import World
from tests.fakes import START, FakeClock


@dataclass(slots=True)
class Run:
    """What came of a run: where the fault was, and what it broke."""

    at: str
    broken: list[str]
    log: list[str]
    world: World

    @property
    def names(self) -> set[str]:
        """The invariants that it broke."""
        return {words.split(":")[0] for words in self.broken}


@dataclass(slots=True)
class Other:
    """Another pager on the same database, that no fault befalls."""

    database: Database
    clock: FakeClock
    world: World
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    working: asyncio.Task[int] | None = None

    async def meet(self, kind: Kind, blocked: bool) -> None:
        """The process hangs, and this one goes on; or this one goes first, and is just sending."""
        if kind is Kind.HANG:
            self.opened.set()
            await self.world.excuse(taken_only=False)
            self.clock.move_to(self.clock.now() + STALL)
        if blocked:
            return
        app = built(self.database, self.clock, self._give)
        # Why a context of its own: another process knows nothing of our open transaction.
        self.working = asyncio.create_task(app.worker.run_due(), context=Context())
        entered = asyncio.create_task(self.entered.wait())
        await asyncio.wait({self.working, entered}, return_when=asyncio.FIRST_COMPLETED)
        entered.cancel()
        if kind is Kind.HANG:
            await self.working

    async def do(self, order: str) -> int:
        """Something else than its work."""
        self.opened.set()
        task = ORDERS[order](built(self.database, self.clock, self._give))
        return await asyncio.create_task(_awaited(task), context=Context())

    async def end(self) -> None:
        if self.working is not None:
            self.opened.set()
            await self.working
            self.working = None

    async def _give(self, message: Message) -> Outcome:
        outcome = self.world.ledger.receive(message)
        self.entered.set()
        await self.opened.wait()
        return outcome


Meanwhile = Callable[[Other], Awaitable[None]]


async def _awaited(order: Awaitable[int]) -> int:
    return await order


class Stage:
    """`watched` is the database of the pager that the fault befalls; `other` that of everybody else."""

    def __init__(self, url: str) -> None:
        self.watched = Watched(url)
        self.other = Database(url, pool_size=4)
        self.clock = FakeClock()

    def monotonic(self) -> float:
        """The clock of the watchdogs: it goes on while a process hangs."""
        return self.clock.now().timestamp()

    async def set_up(self) -> None:
        async def nowhere(_: Message) -> Outcome:
            raise AssertionError("nothing is sent yet")

        await self.other.write(witness.set_up)
        await configure(built(self.other, self.clock, nowhere))

    async def tell(
        self, fault: Fault | None = None, story: Story = night, meet: Meanwhile | None = None
    ) -> Run:
        """One run from the beginning, with this fault; `meet`: what happens while the process hangs."""
        fault = fault or Fault()
        await self.other.write(history.forget)
        self.clock = FakeClock(START)
        world = World(self.other, self.clock, fault)
        other = Other(self.other, self.clock, world)

        async def give(message: Message) -> Outcome:
            return world.ledger.receive(message)

        before, dead = history.counters(), history.dead_counted()

        async def met(kind: Kind, blocked: bool) -> None:
            await (other.meet(kind, blocked) if meet is None else meet(other))

        process = Inside(self.watched, self.clock, give, fault, met)
        world.process = process
        world.afterwards = other.end
        await story(world)
        await process.close()
        after = history.counters()
        world.outside.counted = {name: after[name] - before[name] for name in after}
        world.outside.dead_counted = history.dead_counted() - dead
        boundaries = process.trap.boundaries
        return Run(boundaries.at, await world.violations(), boundaries.log, world)

    async def close(self) -> None:
        await self.watched.close()
        await self.other.close()
