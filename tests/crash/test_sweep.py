"""Every kind of fault at every boundary of a night: nobody is forgotten, and nothing is left behind."""

from __future__ import annotations

import pytest

from tests.crash.faults import ON_POSTGRESQL, Fault, Kind
from tests.crash.stage import Stage
from tests.crash.story import Story, boundaries, dead_end, early_ack, night, taken_back

pytestmark = pytest.mark.crash

KINDS = [kind for kind in Kind if kind is not Kind.NOTHING]


@pytest.mark.parametrize("story", [night, early_ack, dead_end, taken_back])
async def test_without_a_fault_nothing_is_broken_and_nothing_is_sent_twice(
    stage: Stage, story: Story
) -> None:
    run = await stage.tell(story=story)
    assert run.broken == []
    assert run.world.ledger.twice() == {}


async def test_the_night_has_its_length(stage: Stage) -> None:
    """Who is told by what, and in what order; a sweep of a story in which nothing happens proves nothing."""
    run = await stage.tell()
    told = [(one.message.person, one.message.method) for one in run.world.ledger.taken]
    assert told == [("alice", "sms"), ("alice", "slack"), ("bob", "sms")]
    assert len(run.log) > 100


@pytest.mark.parametrize("kind", [Kind.KILL_BEFORE, Kind.KILL_AFTER, Kind.HANG])
@pytest.mark.parametrize("story", [early_ack, dead_end, taken_back])
async def test_other_nights_end_well_too(stage: Stage, story: Story, kind: Kind) -> None:
    """An early ack, a level that nobody can be reached at, an ack that is taken back (I1 to I12)."""
    bad = []
    for nth in boundaries(kind, times=4):
        run = await stage.tell(Fault(kind, nth), story)
        if not run.at:
            break
        bad += [f"{kind} {nth} ({run.at}): {broken}" for broken in run.broken]
    assert bad == []


@pytest.mark.parametrize("kind", KINDS)
async def test_whatever_happens_wherever_it_happens_the_night_ends_well(stage: Stage, kind: Kind) -> None:
    """One fault costs at most one message sent twice: no alert, no page, no timer (I1 to I12)."""
    if kind in ON_POSTGRESQL and stage.watched.is_sqlite:
        return  # a file has no connection that could be lost
    bad = []
    for nth in boundaries(kind):
        run = await stage.tell(Fault(kind, nth))
        if not run.at:
            break  # the story ended before it came to that
        bad += [f"{kind} {nth} ({run.at}): {broken}" for broken in run.broken]
    assert bad == []
