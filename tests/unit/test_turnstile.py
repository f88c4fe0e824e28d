"""One writer at a time, the most urgent first, nobody for ever last."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

from engine.turnstile import CAP, Turnstile


async def order(turnstile: Turnstile, ranks: Sequence[int]) -> list[int]:
    """In which order waiters of these ranks pass while they all wait."""
    passed: list[int] = []

    async def wait(rank: int) -> None:
        async with turnstile.turn(rank):
            passed.append(rank)

    async with turnstile.turn(0):
        tasks = [asyncio.create_task(wait(rank)) for rank in ranks]
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    return passed


async def test_the_lowest_rank_passes_first_and_equals_in_their_order() -> None:
    """A person's answer passes a storm; within a rank it is first come, first served."""
    assert await order(Turnstile(3), [2, 1, 0, 2, 1, 0]) == [0, 0, 1, 1, 2, 2]


async def test_no_rank_starves() -> None:
    """After a number of turns of the more urgent ranks, the next one has one."""
    passed = await order(Turnstile(2), [0] * (3 * CAP) + [1] * 2)
    assert passed == [0] * CAP + [1] + [0] * CAP + [1] + [0] * CAP


async def test_the_last_of_many_ranks_does_not_wait_for_all_between() -> None:
    """While answers, pages and results always wait, alerts are still stored: one turn of ten or so."""
    passed = await order(Turnstile(4), [0] * 40 + [1] * 40 + [2] * 40 + [3] * 4)
    turns = [at for at, rank in enumerate(passed) if rank == 3]
    assert turns[0] <= CAP + 3
    assert max(later - earlier for earlier, later in pairwise(turns)) <= CAP + 3


async def test_one_holds_it_at_a_time() -> None:
    """Whatever the ranks, no two are inside."""
    turnstile, inside, most = Turnstile(2), 0, 0

    async def enter(rank: int) -> None:
        nonlocal inside, most
        async with turnstile.turn(rank):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(enter(n % 2) for n in range(50)))
    assert most == 1


async def test_who_is_cancelled_takes_no_turn_with_them() -> None:
    """Waiters cancelled before or as their turn comes leave it to the next."""
    turnstile = Turnstile(1)
    passed: list[int] = []

    async def wait(n: int) -> None:
        async with turnstile.turn(0):
            passed.append(n)

    async with turnstile.turn(0):
        tasks = [asyncio.create_task(wait(n)) for n in range(4)]
        await asyncio.sleep(0)
        tasks[1].cancel()
    tasks[0].cancel()  # its turn has come, and it has not run yet
    await asyncio.gather(*tasks, return_exceptions=True)
    assert passed == [2, 3]
    async with asyncio.timeout(1), turnstile.turn(0):
        pass


async def test_a_holder_that_fails_passes_it_on() -> None:
    """An error inside does not keep the others out."""
    turnstile = Turnstile(1)
    try:
        async with turnstile.turn(0):
            raise RuntimeError("no")
    except RuntimeError:
        pass
    async with asyncio.timeout(1), turnstile.turn(0):
        pass
