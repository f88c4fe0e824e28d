"""Several people answer the same request in the same moment, each by a process of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from engine.models import Via
from engine.parts import Part
from tests.fakes import FakeClock
from tests.scenario.covering import EVENING, FRIDAY, HOUR, Team, covering


@pytest.fixture
async def team(any_database_url: str, clock: FakeClock) -> AsyncIterator[Team]:
    made = await Team.start(any_database_url, clock)
    await made.asks()
    await made.pager.advance(minutes=10)
    made.pager._collect().clear()
    yield made
    await made.pager.close()


async def at_once(team: Team, **parts: Part | None) -> dict[str, bool]:
    """Each on a connection of a process of their own; whose answer changed something."""
    apps = {name: team.pager._build() for name in parts}
    actors = {name: await team.pager.person(name, Via.SLACK_BUTTON) for name in parts}
    for app in apps.values():
        await app.roster.directory()
    answers = await asyncio.gather(
        *(covering(apps[name]).accept(1, part, actors[name]) for name, part in parts.items())
    )
    for app in apps.values():
        await app.database.close()
    for answer in answers:
        if not answer.changed:
            assert "It is taken already" in answer.text or "That is not free" in answer.text
    return {name: answer.changed for name, answer in zip(parts, answers, strict=True)}


@pytest.mark.parametrize("_again", range(5))
async def test_of_two_who_accept_in_the_same_moment_one_has_it(team: Team, _again: int) -> None:
    """One row decides: one override, one is told that it is theirs, the other who has it."""
    first = await at_once(team, bob=None, carol=None)
    assert sorted(first.values()) == [False, True]
    ((who, whom, start, end),) = await team.overrides()
    assert first[who]
    assert (whom, start, end) == ("alice", EVENING.start, EVENING.end)
    assert await team.status() == "filled"


async def test_two_parts_in_the_same_moment_are_both_taken(team: Team) -> None:
    """They do not overlap, so nobody is too late, and nothing is left."""
    middle = FRIDAY + 2 * HOUR
    done = await at_once(team, bob=Part(FRIDAY, middle), carol=Part(middle, EVENING.end))
    assert done == {"bob": True, "carol": True}
    taken = [(who, start) for who, _, start, _ in await team.overrides()]
    assert taken == [("bob", FRIDAY), ("carol", middle)]
    assert await team.status() == "filled"


async def test_two_parts_that_overlap_are_not(team: Team) -> None:
    """Of two who want the same hour one has it; the rest goes on being asked."""
    done = await at_once(
        team, bob=Part(FRIDAY, FRIDAY + 2 * HOUR), carol=Part(FRIDAY + HOUR, FRIDAY + 3 * HOUR)
    )
    assert sorted(done.values()) == [False, True]
    assert len(await team.overrides()) == 1
    assert await team.status() == "open"


async def test_an_accept_and_the_end_in_the_same_moment(team: Team) -> None:
    """Either somebody has it or the asker is warned, never both and never neither."""
    team.pager.clock.move_to(FRIDAY - HOUR)
    other = team.pager._build()
    actor = await team.pager.person("bob", Via.SLACK_BUTTON)
    answer, _ = await asyncio.gather(covering(other).accept(1, None, actor), team.pager.app.worker.run_due())
    await other.database.close()
    await team.pager.app.worker.run_due()
    warned = [page for page in team.pager.pages() if "Nobody accepted in time" in page.text]
    assert bool(warned) is not answer.changed
    assert len(await team.overrides()) == int(answer.changed)
    assert await team.status() == ("filled" if answer.changed else "expired")
