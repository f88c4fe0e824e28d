"""The same faults befall real processes: SIGKILL at a boundary, and SIGSTOP for longer than a lease."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.crash.faults import Fault, Kind
from tests.crash.story import boundaries
from tests.crash.troupe import Troupe, troupe

pytestmark = pytest.mark.crash


@pytest.fixture
async def actors(any_database_url: str) -> AsyncIterator[Troupe]:
    async with troupe(any_database_url) as made:
        yield made


@pytest.fixture
async def two_actors(postgresql_url: str) -> AsyncIterator[Troupe]:
    async with troupe(postgresql_url) as made:
        yield made


@pytest.mark.parametrize("kind", [Kind.KILL_BEFORE, Kind.KILL_AFTER])
async def test_wherever_the_process_is_killed_the_next_one_goes_on(actors: Troupe, kind: Kind) -> None:
    """Nothing in memory was needed: the rows alone carry the night to its end (F-01 to F-06)."""
    bad = []
    for nth in boundaries(kind, times=3):
        run = await actors.killed(Fault(kind, nth))
        if not run.at:
            break
        assert run.world.outside.kills == 1
        bad += [f"{kind} {nth}: {broken}" for broken in run.broken]
    assert bad == []


async def test_a_worker_that_stood_still_past_its_lease_changes_nothing_any_more(two_actors: Troupe) -> None:
    """Its late writes change no row, what was sent twice is counted, and no page is lost (F-27, F-34)."""
    bad = []
    for nth in boundaries(Kind.HANG, times=2):
        run = await two_actors.stopped(Fault(Kind.HANG, nth))
        if not run.at:
            break
        bad += [f"stopped {nth} ({run.at}): {broken}" for broken in run.broken]
    assert bad == []
