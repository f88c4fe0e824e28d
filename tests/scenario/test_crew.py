"""Several workers on one database: each takes its share, and what one leaves the others take soon after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from engine.crew import GONE, Crew
from engine.db import Database
from engine.horizon import Horizon
from engine.known import PATIENCE, Share
from engine.models import ORG, LaneName, Timer, TimerKind
from engine.store import hosts, timers
from engine.store.hosts import WORKER
from engine.store.timers import Arming
from engine.worker import Lane, Worker
from tests.bench.timers import take
from tests.fakes import START, FakeClock
from tests.scenario.harness import Pager

WAIT_S = 20  # that a test waits at most
SECOND = timedelta(seconds=1)


@dataclass
class Tally:
    """What became of timers, whoever worked them."""

    awaited: int = 0
    worked: list[int] = field(default_factory=list)
    tried: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, awaited: int) -> None:
        self.awaited = awaited
        self.done.clear()
        self._see()
        async with asyncio.timeout(WAIT_S):
            await self.done.wait()

    def _see(self) -> None:
        if len(self.worked) >= self.awaited:
            self.done.set()

    def note(self, tried: int, worked: Sequence[int]) -> None:
        self.tried += tried
        self.worked += worked
        self._see()


class Effect:
    """Deletes what is still there."""

    def __init__(self, database: Database, tally: Tally) -> None:
        self._database = database
        self._tally = tally

    async def handle(self, due: Sequence[Timer]) -> int:
        gone = await self._database.write(lambda tx: take(tx, due))
        self._tally.note(len(due), sorted(gone))
        return len(gone)


def hand(database: Database, clock: FakeClock, tally: Tally, crew: Crew) -> Worker:
    horizon = Horizon(database, clock, crew)
    lane = Lane(LaneName.FATE, Effect(database, tally), horizon, database, clock)
    return Worker([lane], horizon, nothing_flies)


async def nothing_flies() -> None: ...


async def arm(database: Database, count: int, after: timedelta = SECOND) -> set[int]:
    """All due so long after the start; returns which they are."""
    armings = [Arming(TimerKind.ESCALATE, n, START + after) for n in range(1, count + 1)]
    await database.write(lambda tx: timers.arm(tx, ORG, armings))
    async with database.snapshot() as tx:
        armed = await timers.of_subjects(tx, ORG, [TimerKind.ESCALATE], range(1, count + 1))
    return {timer.id for timer in armed}


@asynccontextmanager
async def at_work(*workers: Worker) -> AsyncIterator[None]:
    for worker in workers:
        await worker.start()
    yield
    for worker in workers:
        await asyncio.wait_for(worker.stop(), WAIT_S)


@pytest.fixture
def crew(database: Database, clock: FakeClock) -> list[Crew]:
    return [Crew(database, clock, name) for name in ("a", "b", "c")]


async def test_each_knows_how_many_there_are_and_which_it_is(crew: list[Crew], clock: FakeClock) -> None:
    """After each has met the others, the shares are all of it; who is not seen any more is forgotten."""
    assert await crew[1].meet() == Share(0, 1)
    for _ in range(2):
        shares = [await one.meet() for one in crew]
    assert shares == [Share(0, 3), Share(1, 3), Share(2, 3)]
    clock.move_to(clock.now() + GONE / 2)
    await crew[0].meet()
    await crew[2].meet()
    clock.move_to(clock.now() + GONE / 2 + SECOND)
    assert (await crew[0].meet(), await crew[2].meet()) == (Share(0, 2), Share(1, 2))
    assert await crew[1].meet() == Share(1, 3)


async def test_who_leaves_their_share_is_gone_until_seen_anew(crew: list[Crew], clock: FakeClock) -> None:
    """The others share what is left of a worker that takes nothing; its next count makes it one of them."""
    for one in crew + crew:
        await one.meet()
    crew[0].miss(1)
    assert crew[0].share == Share(0, 2)
    assert await crew[0].meet() == Share(0, 2)
    clock.move(seconds=1)
    await crew[1].meet()
    assert await crew[0].meet() == Share(0, 3)


async def test_who_leaves_is_missed_at_once_and_who_died_leaves_no_row(
    crew: list[Crew], database: Database, clock: FakeClock
) -> None:
    """One that stops takes its row with it; the row of a killed one goes after an hour."""
    for one in crew:
        await one.meet()
    await crew[2].leave()
    assert await crew[0].meet() == Share(0, 2)
    clock.move(hours=2)
    assert await crew[0].meet() == Share(0, 1)
    async with database.snapshot() as tx:
        assert [*await hosts.seen(tx, ORG, kind=WORKER)] == ["a"]
        assert await hosts.seen(tx, ORG) == {}


async def test_two_workers_share_a_thousand_timers(postgresql_url: str, clock: FakeClock) -> None:
    """Each fires once, and is tried once: none is tried by the worker whose share it is not."""
    databases = [Database(postgresql_url) for _ in range(2)]
    crews = [Crew(one, clock, name) for one, name in zip(databases, "ab", strict=True)]
    for one in (*crews, *crews):
        await one.meet()
    every = await arm(databases[0], 1_000)
    half = [sum(one.share.has(timer) for timer in every) for one in crews]
    tallies = [Tally(), Tally()]
    workers = [hand(*these) for these in zip(databases, (clock, clock), tallies, crews, strict=True)]
    async with at_work(*workers):
        clock.move(seconds=1)
        for worker in workers:
            worker.wake()
        await asyncio.gather(*(tally.until(n) for tally, n in zip(tallies, half, strict=True)))
    assert {*tallies[0].worked, *tallies[1].worked} == every
    assert [tally.tried for tally in tallies] == [len(tally.worked) for tally in tallies] == half
    for database in databases:
        await database.close()


async def test_the_share_of_a_dead_worker_is_late_by_a_moment(database: Database, clock: FakeClock) -> None:
    """It was killed after it had been counted: the first of its timers wait for two moments of patience, not
    for a lease and not until it is forgotten; those that are due later wait for nothing."""
    crews = [Crew(database, clock, name) for name in "ab"]
    for one in crews:
        await one.meet()
    await crews[0].meet()
    every = await arm(database, 100)
    ours = {one for one in every if crews[0].share.has(one)}
    tally = Tally()
    alive = hand(database, clock, tally, crews[0])
    async with at_work(alive):
        clock.move(seconds=1)
        alive.wake()
        await tally.until(len(ours))
        assert {*tally.worked} == ours != every
        clock.move_to(clock.now() + 2 * PATIENCE)
        alive.wake()
        await tally.until(100)
        assert crews[0].share == Share(0, 1)
        later = await arm(database, 100, SECOND + clock.now() - START)
        clock.move(seconds=1)
        alive.wake()
        await tally.until(200)
    assert {*tally.worked} == every | later
    assert tally.tried == 200


async def test_who_is_behind_misses_nobody(database: Database, clock: FakeClock) -> None:
    """In a backlog of everybody's the others are late, and not gone."""
    crews = [Crew(database, clock, name) for name in "ab"]
    for one in crews + crews:
        await one.meet()
    await arm(database, 100)
    clock.move(seconds=3)
    horizon = Horizon(database, clock, crews[0])
    horizon.lane(LaneName.FATE)
    await horizon._look()
    await horizon._read_anew(SECOND)
    assert crews[0].share == Share(0, 2)


async def test_who_works_no_timers_is_not_counted(postgresql_url: str, clock: FakeClock) -> None:
    """A process has a share from when its worker starts until it stops, whatever else it does."""
    pager = await Pager(postgresql_url, clock).start()

    async def counted() -> int:
        async with pager.app.database.snapshot() as tx:
            return len(await hosts.seen(tx, ORG, kind=WORKER))

    assert await counted() == 0
    await pager.app.worker.start()
    async with asyncio.timeout(WAIT_S):
        while await counted() == 0:
            pass
    await pager.app.worker.stop()
    assert await counted() == 0
    await pager.close()
