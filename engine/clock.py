"""The one place that reads the time.

Everything else is given `now`. Wall-clock instants are UTC; watchdogs and HTTP timeouts use
`monotonic()`, which nothing can move.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The instant it is, aware, in UTC."""

    async def sleep_until(self, when: datetime) -> None:
        """Return at or after `when`, or earlier when the clock is moved."""


def monotonic() -> float:
    """Seconds on a clock that never jumps; only differences mean anything."""
    return time.monotonic()


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep_until(self, when: datetime) -> None:
        await asyncio.sleep(max(0.0, (when - self.now()).total_seconds()))


class MovableClock(SystemClock):
    """The machine's clock plus an offset: what the demo moves forward, and only forward."""

    def __init__(self) -> None:
        self._offset = timedelta()

    def now(self) -> datetime:
        return super().now() + self._offset

    def move_to(self, when: datetime) -> None:
        """Make it `when`; an instant in the past changes nothing."""
        self._offset = max(self._offset, self._offset + (when - self.now()))
