"""Every row of the fate's table against every other that can race with it, the order forced.

Counts are right, no page begins after an ack, somebody hears within two hours, nothing is sent twice,
and nothing deadlocks: whoever was first.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import UTC, datetime

import pytest

from engine.db import Tx
from engine.notify import begin
from engine.pager import apply
from engine.store import deliveries, incidents
from tests.scenario.interleave import PATIENCE, Deadlocks, Point
from tests.scenario.locks import Locks, unwatched
from tests.scenario.moves import WORKERS
from tests.scenario.racing import STATES, Arena, moves_in

EVERY = 830  # in `make test` one race of so many, others each day; `make sweep` runs them all
MORE = 41  # in `make check`

Race = tuple[str, str, str, Point]  # state, who is first, who is second, where the first one stops


@pytest.fixture
async def arena(any_database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Arena]:
    made = Arena(any_database_url, monkeypatch)
    yield made
    await made.close()


@pytest.fixture
def deadlocks(monkeypatch: pytest.MonkeyPatch) -> Deadlocks:
    return Deadlocks(monkeypatch)


def races(states: Iterable[str]) -> Iterator[Race]:
    for state in states:
        names = moves_in(state)
        for first, second in itertools.product(names, names):
            yield state, first, second, Point.COMMIT
            if first in WORKERS:  # only a worker reads what may have grown stale when it begins
                yield state, first, second, Point.BEGIN


def some(states: Iterable[str], every: int) -> Iterator[Race]:
    offset = datetime.now(UTC).timetuple().tm_yday % every
    return itertools.islice(races(states), offset, None, every)


async def run(arena: Arena, deadlocks: Deadlocks, chosen: Iterable[Race]) -> list[str]:
    """What went wrong in which race."""
    wrong = []
    for state, first, second, point in chosen:
        await arena.enter(state)
        ended = await arena.race(first, second, point)
        found = [repr(error) for error in ended.errors] + await arena.wrong() + deadlocks.codes
        deadlocks.codes.clear()
        wrong += [f"{state}: {first} stopped at {point}, then {second}: {what}" for what in found]
    return wrong


async def test_a_few_races_of_each_state(arena: Arena, deadlocks: Deadlocks, locks: Locks) -> None:
    """Others every day; and on PostgreSQL their locks were seen."""
    assert await run(arena, deadlocks, some(STATES, EVERY)) == []
    assert arena.databases[0].is_sqlite or locks.seen > 0


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
async def test_the_races_of_a_state(arena: Arena, deadlocks: Deadlocks, state: str) -> None:
    """A part of them; with MIDWATCH_SWEEP=full each move against each, in both orders."""
    full = os.environ.get("MIDWATCH_SWEEP") == "full"
    chosen = races([state]) if full else some([state], MORE)
    assert await run(arena, deadlocks, chosen) == []


async def test_locks_in_the_wrong_order_deadlock_and_are_counted(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two units across: the database ends one of them, and it is not passed over."""
    deadlocks, arena = Deadlocks(monkeypatch), Arena(postgresql_url, monkeypatch)
    await arena.enter("level_due")
    one, two = arena.databases

    forth, back = asyncio.Event(), asyncio.Event()

    async def take(tx: Tx, first: int, second: int, met: asyncio.Event, other: asyncio.Event) -> None:
        unwatched(tx)
        await incidents.lock(tx, [first])
        met.set()
        await other.wait()
        await incidents.lock(tx, [second])

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(
            one.write(lambda tx: take(tx, 1, 2, forth, back)),
            two.write(lambda tx: take(tx, 2, 1, back, forth)),
        )
    assert deadlocks.codes == ["40P01"]
    await arena.close()


async def nothing(*_: object) -> list[int]:
    return []


async def test_planted_mistakes_are_found(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, deadlocks: Deadlocks
) -> None:
    """A new round that arms nothing, and an ack that neither cancels a page nor is asked for by it."""
    arena = Arena(sqlite_url, monkeypatch)
    race = [("acked", "unack", "note", Point.COMMIT)]
    assert await run(arena, deadlocks, race) == []
    with monkeypatch.context() as patched:
        patched.setattr(apply, "_armings", lambda _changes: [])
        wrong = await run(arena, deadlocks, race)
    assert [what.rpartition(": ")[2] for what in wrong] == ["incident_without_timer 1", "nobody hears of #1"]
    with monkeypatch.context() as patched:
        patched.setattr(deliveries, "cancel", nothing)
        patched.setattr(begin, "_unwanted", lambda *_: None)
        wrong = await run(arena, deadlocks, [("level_due", "ack", "note", Point.COMMIT)])
    assert [what.rpartition(": ")[2] for what in wrong] == ["alice was paged for what had been answered"]
    await arena.close()
