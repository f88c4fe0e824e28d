"""One night: an alert, a Slack that fails, an SMS, the second level, an ack, a resolve."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count

from engine.models import Method, Retry
from tests.crash.world import Provider, Watched, World

EVERY = 6  # in `make test` every sixth boundary, others each day


async def tell(database: Watched, kill_at: int = 0) -> World:
    """The story with a kill at this boundary; its world says what was violated."""
    world = World(database, kill_at)
    await world.begin()
    slack = world.pager.transports[Method.SLACK]
    assert isinstance(slack, Provider)
    slack.fails.append(Retry("Slack answered 503"))
    await world.alert()
    await world.wait(minutes=7)
    await world.check_nobody_is_forgotten()
    await world.check_ladder()
    await world.answer("acknowledge")
    await world.wait(minutes=2)
    await world.answer("resolve")
    await world.wait(minutes=2)
    await world.check_the_end()
    await world.pager.close()
    return world


def boundaries(shard: int, shards: int) -> Iterator[int]:
    """The boundaries of this shard: all of them with MIDWATCH_SWEEP=full (`make sweep`)."""
    if os.environ.get("MIDWATCH_SWEEP") == "full":
        yield from count(1 + shard, shards)
    offset = datetime.now(UTC).timetuple().tm_yday % EVERY
    yield from count(1 + offset + EVERY * shard, EVERY * shards)
