"""A pager that a fault befalls, and the people around it, whom none does.

The world moves the clock from one due timer to the next, asks again whoever had no answer, starts a
process in the place of one that died, and in the end lets the history be judged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final, Protocol

import sqlalchemy as sa

from engine import schema
from engine.db import Database
from engine.errors import Unavailable
from engine.invariants import find
from engine.models import ORG
from engine.schema import EPOCH, MICROSECOND
from tests.crash import history, invariants
from tests.crash.faults import RESTART, Fault, Killed, Kind
from tests.crash.history import Outside, Told
from tests.crash.ledger import Ledger
from tests.fakes import FakeClock

ENOUGH: Final = 500  # steps of one wait; more, and something is due that nobody can work
TRIES: Final = 10
MOMENT: Final = timedelta(milliseconds=10)


class Process(Protocol):
    """A pager; `inside` and `child` have one each."""

    async def do(self, order: str) -> int:
        """Raises Killed when it died of it, Unavailable when it said so."""

    async def restart(self) -> None: ...


class World:
    """One run. `database` is a way of our own into the pager's tables."""

    def __init__(self, database: Database, clock: FakeClock, fault: Fault, plan: Sequence[Told] = ()) -> None:
        self.database = database
        self.clock = clock
        self.ledger = Ledger(clock.now)
        self.outside = Outside(fault, clock.now(), tuple(plan))
        self.process: Process | None = None
        self.afterwards: Callable[[], Awaitable[None]] | None = None  # when an order is done

    # --- what the people around it do --------------------------------------------------------------------

    async def alert(self) -> None:
        await self._do("post")
        self.outside.accepted += 1

    async def answer(self, command: str) -> None:
        await self._do(command)

    async def wait(self, **delta: float) -> None:
        end = self.clock.now() + timedelta(**delta)
        for _ in range(ENOUGH):
            await self._do("work")
            due = await self._do("next_due")
            at = EPOCH + due * MICROSECOND
            if not due or at > end:
                break
            # What is due and was not worked (somebody holds its incident) is worked a moment later.
            self.clock.move_to(max(at, self.clock.now() + MOMENT))
        else:
            self.outside.findings.append("something is due all the time, and nobody works it")
        self.clock.move_to(max(end, self.clock.now()))
        await self._do("work")

    async def _do(self, order: str) -> int:
        """Whoever hears an error asks again a second later, of another process if this one died."""
        for _ in range(TRIES):
            self.outside.posted += order == "post"
            try:
                return await self._done(order)
            except Unavailable:
                self.clock.move(seconds=1)
            except Killed:
                self.outside.kills += 1
                await self.excuse(taken_only=True)
                self.clock.move_to(self.clock.now() + RESTART)
                assert self.process is not None
                await self.process.restart()
        raise AssertionError(f"{order} failed {TRIES} times")

    async def _done(self, order: str) -> int:
        assert self.process is not None
        try:
            return await self.process.do(order)
        finally:
            if self.afterwards is not None:
                await self.afterwards()

    # --- what is seen ------------------------------------------------------------------------------------

    async def excuse(self, *, taken_only: bool) -> None:
        """What is being sent now may be sent once more: nobody knows how it ended."""
        table = schema.deliveries
        async with self.database.snapshot() as tx:
            sending = set(await tx.scalars(sa.select(table.c.id).where(table.c.status == "sending")))
        taken = {one.message.delivery for one in self.ledger.taken}
        self.outside.excused.update(sending & taken if taken_only else sending)

    async def look(self) -> None:
        """Of an incident that nobody has taken somebody hears, now or at a time that is known."""
        async with self.database.snapshot() as tx:
            later = self.clock.now() + timedelta(minutes=1)
            self.outside.findings += [f"audit: {one}" for one in await find(tx, ORG, later)]

    async def violations(self) -> list[str]:
        await self.look()
        if self.outside.fault.kind is Kind.NO_ANSWER:
            again = [row for row in self.ledger.twice().items() if row[1] == 1]
            self.outside.excused.update(dict(again[:1]))  # one fault excuses one message
        async with self.database.snapshot() as tx:
            return invariants.check(await history.read(tx, self.outside, self.ledger.taken))
