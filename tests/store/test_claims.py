"""Many claimers, one holder: whoever claims, each timer is worked by exactly one at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from functools import partial

from engine.db import Database, Tx
from engine.models import ORG, LaneName, Timer, TimerKind
from engine.store import timers
from engine.store.timers import Arming
from tests.fakes import START
from tests.store import queue

CLAIMERS, TIMERS, AT_ONCE = 8, 500, 25


async def _claim(tx: Tx, due: list[Timer], owner: str) -> list[Timer]:
    return await timers.claim(tx, due, owner, START + timedelta(seconds=30), START)


async def claimer(url: str, owner: str) -> list[int]:
    """Claims until nothing is left; what it got."""
    database, mine = Database(url, pool_size=2), []
    try:
        while True:
            async with database.snapshot() as tx:
                due = await queue.due(tx, LaneName.DELIVER, START, AT_ONCE)
            if not due:
                return mine
            held = await database.write(partial(_claim, due=due, owner=owner))
            mine += [timer.subject_id for timer in held]
    finally:
        await database.close()


async def test_eight_claimers_claim_each_of_five_hundred_timers_once(
    database: Database, any_database_url: str
) -> None:
    """Every timer has exactly one holder, and none is left (F-33)."""
    armings = [Arming(TimerKind.DELIVER, n, START) for n in range(TIMERS)]
    await database.write(lambda tx: timers.arm(tx, ORG, armings))
    got = await asyncio.gather(*(claimer(any_database_url, f"claimer-{n}") for n in range(CLAIMERS)))
    assert Counter(subject for mine in got for subject in mine) == Counter(range(TIMERS))


async def test_arming_in_opposite_orders_ends(database: Database) -> None:
    """Two transactions that arm the same timers in opposite orders both commit: rows are sorted."""
    forward = [Arming(TimerKind.CARD, n, START) for n in range(50)]
    backward = list(reversed(forward))
    async with asyncio.timeout(20):
        await asyncio.gather(
            *(
                database.write(lambda tx, armings=armings: timers.arm(tx, ORG, armings))
                for armings in (forward, backward) * 10
            )
        )
    async with database.snapshot() as tx:
        due = await queue.due(tx, LaneName.CARD, START, 100)
    assert {timer.rev for timer in due} == {20}
