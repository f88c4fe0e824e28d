"""A lock that lets waiters pass by rank, and starves none.

Never knows what the turn is used for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

CAP = 8  # turns that others may take before a rank that waits


class Turnstile:
    """One holder at a time. Rank 0 goes first, but whichever rank was passed over CAP times has a turn."""

    def __init__(self, ranks: int) -> None:
        self._waiting: list[deque[asyncio.Future[None]]] = [deque() for _ in range(ranks)]
        self._passed_over = [0] * ranks  # since it last had a turn, or began to wait
        self._held = False

    @asynccontextmanager
    async def turn(self, rank: int) -> AsyncIterator[None]:
        await self._enter(rank)
        try:
            yield
        finally:
            self._pass_on()

    async def _enter(self, rank: int) -> None:
        if not self._held:
            self._held = True
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting[rank].append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._pass_on()  # the turn came while we were being cancelled: hand it on
            raise

    def _pass_on(self) -> None:
        while (waiter := self._next()) is not None:
            if not waiter.done():
                waiter.set_result(None)
                return
        self._held = False

    def _next(self) -> asyncio.Future[None] | None:
        waiting = [rank for rank, queue in enumerate(self._waiting) if queue]
        if not waiting:
            return None
        # Why not CAP turns of each rank for one of the next: the fourth would have one turn of five hundred.
        most = max(waiting, key=lambda rank: self._passed_over[rank])
        chosen = most if self._passed_over[most] >= CAP else waiting[0]
        for rank in waiting:
            self._passed_over[rank] += 1
        self._passed_over[chosen] = 0
        return self._waiting[chosen].popleft()
