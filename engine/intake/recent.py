"""The directory as it was within the last second, for whoever asks thousands of times a second.

Never read by what pages people: an override must count at once there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from engine.clock import monotonic
from engine.directory import Directory

AGE: Final = timedelta(seconds=1)


class Recent:
    """One question to the database at a time, shared by all who wait for it."""

    def __init__(self, read: Callable[[], Awaitable[Directory]]) -> None:
        self._read_now = read
        self._kept: tuple[float, Directory] | None = None
        self._reading: asyncio.Task[Directory] | None = None

    async def __call__(self) -> Directory:
        if self._kept is not None and monotonic() - self._kept[0] < AGE.total_seconds():
            return self._kept[1]
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(), name="directory")
        return await asyncio.shield(self._reading)

    def forget(self) -> None:
        """Ask again the next time."""
        self._kept = None

    async def _read(self) -> Directory:
        began = monotonic()
        directory = await self._read_now()
        self._kept = (began, directory)
        return directory
