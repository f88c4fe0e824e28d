"""Moving time forward as it would have passed: from one due instant to the next, Midwatch with it.

Midwatch is asked what it has to do and when, and told to come along; it is never skipped past work.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from bot.sandbox.world import World

MOST_STEPS = 10_000
SETTLE_S = 5.0
CONTROL_TIMEOUT_S = 60.0
# What stays due although it was worked (a throttled send) must not stop time.
STALLED = timedelta(seconds=1)


class ControlFailed(Exception):
    """Midwatch's demo control does not answer; time stands where it is."""


class Advance:
    """One advance at a time: a second one begins where the first has ended."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lock = asyncio.Lock()

    async def by(self, seconds: float) -> datetime:
        async with self._lock:
            target = self._world.clock.now() + timedelta(seconds=seconds)
            for _ in range(MOST_STEPS):
                await self._step(await self._next(target))
                if self._world.clock.now() >= target:
                    break
            return self._world.clock.now()

    async def _next(self, target: datetime) -> datetime:
        now = self._world.clock.now()
        due = [when for when in (self._world.agenda.next_due(), await self._midwatch_due()) if when]
        later = [when if when > now else now + STALLED for when in due]
        return min([target, *later])

    async def _step(self, when: datetime) -> None:
        self._world.clock.move_to(when)
        self._world.agenda.run_due()
        await self._world.errands.settle(SETTLE_S)
        if self._world.options.control_url is not None:
            await self._control("POST", "advance", {"to": self._world.clock.now().isoformat()})
        self._world.space.state_changed()

    async def _midwatch_due(self) -> datetime | None:
        if self._world.options.control_url is None:
            return None
        due_at = (await self._control("GET", "next")).get("due_at")
        return datetime.fromisoformat(due_at).astimezone(UTC) if due_at else None

    async def _control(self, method: str, verb: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        url = f"{str(self._world.options.control_url).rstrip('/')}/demo/{verb}"
        timeout = aiohttp.ClientTimeout(total=CONTROL_TIMEOUT_S)
        try:
            async with self._world.http.request(method, url, json=body, timeout=timeout) as answer:
                answer.raise_for_status()
                said = await answer.json()
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise ControlFailed(f"Midwatch's control does not answer: {type(error).__name__}") from error
        return said if isinstance(said, dict) else {}
