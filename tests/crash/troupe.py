"""Runs of a story with pagers that are processes: one is killed, or stopped while another goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from engine.db import Database
from engine.models import Outcome
from tests.crash import history, witness
from tests.crash.faults import STALL, Fault
from tests.crash.ledger import Message
from tests.crash.orders import built, configure
from tests.crash.process import Child, Family, SharedClock, family
from tests.crash.stage import Run
from tests.crash.story import Story, night
from tests.crash.world import World
from tests.fakes import FakeClock

# What PostgreSQL does by itself ten seconds after a process has come to a stand in its transaction, and as
# soon as it reads that one is dead: on a busy machine that is later than the next one begins.
END_WHAT_STANDS: str = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND state LIKE 'idle in transaction%' AND pid <> pg_backend_pid()
"""


async def end_what_stands(other: Database) -> None:
    if not other.is_sqlite:
        async with other.writer_engine.begin() as tx:
            await tx.execute(sa.text(END_WHAT_STANDS))


@dataclass(slots=True)
class Mortal:
    """The world's pager: a child, and after its death another one, whom nothing befalls."""

    family: Family
    child: Child
    other: Database

    async def do(self, order: str) -> int:
        return await self.child.do(order)

    async def restart(self) -> None:
        at = self.child.at
        await end_what_stands(self.other)
        self.child = await self.family.new()
        await self.child.begin(Fault())
        self.child.at = at


class Troupe:
    """`other` is the test's own way into the database."""

    def __init__(self, made: Family, other: Database) -> None:
        self.family = made
        self.other = other
        self._one: Child | None = None  # lives on from run to run, if nobody kills it
        self._two: Child | None = None

    async def killed(self, fault: Fault, story: Story = night) -> Run:
        """The pager dies at this boundary; a new one is started a second later."""
        world = await self._world(fault)
        one = self._one or await self.family.new()
        await one.begin(fault)
        mortal = Mortal(self.family, one, self.other)
        world.process = mortal
        await story(world)
        self._one = mortal.child
        return Run(one.at, await world.violations(), [], world)

    async def stopped(self, fault: Fault, story: Story = night) -> Run:
        """The pager stands still at this boundary for two leases, and another one goes on."""
        world = await self._world(fault)
        self._one = self._one or await self.family.new()
        self._two = self._two or await self.family.new()
        two = self._two
        await self._one.begin(fault)
        await two.begin(Fault())

        async def stopped(one: Child) -> None:
            await one.is_stopped()
            await end_what_stands(self.other)
            await world.excuse(taken_only=False)
            world.clock.move_to(world.clock.now() + STALL)
            await two.do("work")
            one.go_on()

        self._one.stopped = stopped
        mortal = Mortal(self.family, self._one, self.other)
        world.process = mortal
        await story(world)
        return Run(self._one.at, await world.violations(), [], world)

    async def _world(self, fault: Fault) -> World:
        await self.other.write(history.forget)
        world = World(self.other, SharedClock(self.family.clock_path), fault)
        self.family.ledger = world.ledger
        return world


@asynccontextmanager
async def troupe(url: str) -> AsyncIterator[Troupe]:
    async def nowhere(_: Message) -> Outcome:
        raise AssertionError("nothing is sent yet")

    other = Database(url, pool_size=4)
    await other.write(witness.set_up)
    await configure(built(other, FakeClock(), nowhere))
    async with family(url) as made:
        yield Troupe(made, other)
    await other.close()
