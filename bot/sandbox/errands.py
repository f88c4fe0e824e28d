"""Background tasks of the sandbox: posts to Midwatch that nothing may block on.

Keeps every task until it is over, so that none is lost and all can be waited for or ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

log = structlog.get_logger(__name__)


class Errands:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, errand: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._watched(errand))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settle(self, within_s: float) -> None:
        """Wait until everything begun has ended, or the time is up."""
        deadline = asyncio.get_running_loop().time() + within_s
        while self._tasks and (left := deadline - asyncio.get_running_loop().time()) > 0:
            await asyncio.wait(self._tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)

    async def close(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @staticmethod
    async def _watched(errand: Coroutine[Any, Any, None]) -> None:
        try:
            await errand
        except Exception:
            log.exception("sandbox.errand_failed")
