"""The one place that reads the time.

Everything else is given `now`. Wall-clock instants are UTC; watchdogs and HTTP timeouts use
`monotonic()`, which nothing can move.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

import structlog

log = structlog.get_logger(__name__)

STEPPED_BACK: Final = timedelta(seconds=1)  # less is the jitter of a clock that is being disciplined


class Clock(Protocol):
    def now(self) -> datetime:
        """The instant it is, aware, in UTC."""

    async def sleep_until(self, when: datetime) -> None:
        """Return at or after `when`, or earlier when the clock is moved."""


def monotonic() -> float:
    """Seconds on a clock that never jumps; only differences mean anything."""
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class Reading:
    """The machine's clocks at one moment; the seconds count from anywhere."""

    wall: datetime
    monotonic: float  # stands still while the host sleeps, where the system says so
    up: float  # goes on while the host sleeps


def read() -> Reading:
    """Every clock there is, for whoever compares them."""
    boot: int | None = getattr(time, "CLOCK_BOOTTIME", None)  # Linux has it
    up = time.monotonic() if boot is None else time.clock_gettime(boot)
    return Reading(datetime.now(UTC), time.monotonic(), up)


class SystemClock:
    """The machine's clock, which never goes back: set back an hour, an hour of pages would wait.

    Set back, it goes on from the last instant that anybody saw, at the pace of the monotonic clock,
    until the machine's has caught up: what is due in a minute fires in a minute, not in an hour.
    """

    def __init__(self) -> None:
        self._last = datetime.now(UTC)
        self._last_monotonic = monotonic()
        self._behind = False  # the wall clock was set back, and has not caught up

    def now(self) -> datetime:
        wall, mono = datetime.now(UTC), monotonic()
        # Until the wall clock has caught up, time goes on by the one that nothing can move.
        floor = self._last + timedelta(seconds=mono - self._last_monotonic)
        now = wall if wall >= self._last else floor
        behind = floor - wall > STEPPED_BACK
        if behind and not self._behind:
            log.error("clock.moved_back", by_s=round((floor - wall).total_seconds()))
        self._behind = behind
        self._last, self._last_monotonic = now, mono
        return now

    def go_on_from(self, seen: datetime) -> None:
        """Somebody saw `seen` on this clock, before a restart perhaps: it does not go back behind it."""
        self._last, self._last_monotonic = max(self.now(), seen), monotonic()

    async def sleep_until(self, when: datetime) -> None:
        await asyncio.sleep(max(0.0, (when - self.now()).total_seconds()))


class MovableClock(SystemClock):
    """The machine's clock plus an offset: what the demo moves forward, and only forward."""

    def __init__(self) -> None:
        super().__init__()
        self._offset = timedelta()

    def now(self) -> datetime:
        return super().now() + self._offset

    def move_to(self, when: datetime) -> None:
        """Make it `when`; an instant in the past changes nothing."""
        self._offset = max(self._offset, self._offset + (when - self.now()))
