"""The pager is killed at every statement, commit and send of a night, and nobody is forgotten."""

from __future__ import annotations

import pytest

from tests.crash.story import boundaries, tell
from tests.crash.world import Watched

pytestmark = pytest.mark.crash

SHARDS = 2


async def test_the_story_is_told_without_a_crash(watched: Watched) -> None:
    """Without a kill nothing is violated, nothing is sent twice, and the story has its length."""
    world = await tell(watched)
    assert world.violations == []
    assert [(page.person, page.method.value) for page in world.sent] == [
        ("alice", "sms"),
        ("alice", "slack"),
        ("bob", "sms"),
    ]
    assert world.boundaries.seen > 60


@pytest.mark.parametrize("shard", range(SHARDS))
async def test_wherever_it_is_killed_somebody_is_paged_and_nothing_is_left_behind(
    watched: Watched, shard: int
) -> None:
    """A kill at any boundary costs at most one message sent twice: no alert, no page, no timer (I1–I8)."""
    bad = []
    for kill_at in boundaries(shard, SHARDS):
        world = await tell(watched, kill_at)
        if not world.boundaries.at:
            break  # the story ended before it came to that
        bad += [f"killed {kill_at} ({world.boundaries.at}): {violation}" for violation in world.violations]
    assert bad == []
