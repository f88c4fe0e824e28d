"""The sandbox's own clock: the machine's time, or one that is given, plus an offset.

Never goes back, and knows nothing of what is due (that is the agenda's).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


def system_now() -> datetime:
    return datetime.now(UTC)


def monotonic() -> float:
    """Seconds on a clock that nobody moves: latencies and faults are measured on it."""
    return time.monotonic()


class SandboxClock:
    def __init__(self, source: Callable[[], datetime] = system_now) -> None:
        self._source = source
        self._offset = timedelta()

    def now(self) -> datetime:
        return self._source() + self._offset

    @property
    def offset(self) -> timedelta:
        return self._offset

    def move_to(self, when: datetime) -> None:
        """Make it `when`; an instant in the past changes nothing."""
        self._offset = max(self._offset, self._offset + (when - self.now()))
