"""What happens in a run: an alert, a Slack that fails, an SMS, the second level, an ack, a resolve.

Told by a world, whatever fault befalls the pager in it.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final

from engine.models import Rejected, Retry
from tests.crash.faults import Kind
from tests.crash.history import Told
from tests.crash.world import World

# CI asks some boundaries of each kind, others each day.
EVERY: Final = {
    Kind.REFUSED: 40,
    Kind.HANG: 40,
    Kind.RIVAL: 40,
    Kind.LOST: 20,
    Kind.KILL_BEFORE: 20,
    Kind.KILL_AFTER: 4,
}
ELSE: Final = 4

Story = Callable[[World], Awaitable[None]]


async def night(world: World) -> None:
    """Slack fails once, the SMS is pulled forward, nobody answers, bob is paged and acknowledges."""
    world.outside.plan = (
        Told("alice", "slack", timedelta(minutes=1)),
        Told("alice", "sms", timedelta(minutes=1)),
        Told("bob", "sms", timedelta(minutes=5)),
    )
    world.ledger.script["slack"] = [Retry("Slack answered 503")]
    await world.alert()
    await world.wait(minutes=7)
    await world.look()
    await world.answer("acknowledge")
    await world.wait(minutes=2)
    await world.answer("resolve")
    await world.wait(minutes=2)


async def early_ack(world: World) -> None:
    """Somebody acknowledges the first message; what was to follow it is not sent."""
    world.outside.plan = (Told("alice", "slack", timedelta()),)
    await world.alert()
    await world.wait(seconds=30)
    await world.answer("acknowledge")
    await world.wait(minutes=2)
    await world.answer("resolve")
    await world.wait(minutes=2)


async def dead_end(world: World) -> None:
    """Nobody of the first level can be reached at all: the second is paged at once."""
    world.outside.plan = (Told("bob", "sms", timedelta(seconds=5)),)
    world.ledger.always |= {"U0ALICE": Rejected("no such user"), "+12025550101": Rejected("no such number")}
    await world.alert()
    await world.wait(minutes=3)
    await world.look()
    await world.answer("acknowledge")
    await world.wait(minutes=2)
    await world.answer("resolve")
    await world.wait(minutes=2)


async def taken_back(world: World) -> None:
    """The ladder is at its end; somebody acknowledges and takes it back: it begins anew."""
    world.outside.plan = (Told("bob", "sms", timedelta(minutes=5)),)
    await world.alert()
    await world.wait(minutes=16)
    await world.answer("acknowledge")
    await world.answer("unacknowledge")
    await world.wait(minutes=4)
    await world.answer("acknowledge")
    await world.wait(minutes=16)
    await world.answer("resolve")
    await world.wait(minutes=2)


def boundaries(kind: Kind, times: int = 1) -> Iterator[int]:
    """Which boundaries this run of the tests asks: all with MIDWATCH_SWEEP=full (`make sweep`)."""
    if os.environ.get("MIDWATCH_SWEEP") == "full":
        yield from count(1)
    every = EVERY.get(kind, ELSE) * times
    offset = datetime.now(UTC).timetuple().tm_yday % every
    yield from count(1 + offset, every)
