"""When each loop of this process last ticked: a loop that stopped must not stop in silence.

Never starts or ends a loop, and never asks the database.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from engine import metrics
from engine.clock import monotonic

SILENT: Final = timedelta(seconds=30)  # a loop that has not ticked for so long has stopped


@dataclass(slots=True)
class _Loop:
    ticked_at: Callable[[], float]
    within: timedelta
    since: float  # silence before this is not its fault


class Pulse:
    """Loops announce themselves by `expect`; then they tick, or `ticked_at` says when they did."""

    def __init__(self) -> None:
        self._loops: dict[str, _Loop] = {}
        self._ticks: dict[str, float] = {}
        self._pauses: deque[tuple[float, float]] = deque(maxlen=100)  # when, for how many seconds

    def expect(
        self, name: str, ticked_at: Callable[[], float] | None = None, *, within: timedelta = SILENT
    ) -> None:
        """`ticked_at` is on the monotonic clock; without it the loop calls `tick`."""
        self._ticks[name] = monotonic()
        self._loops[name] = _Loop(ticked_at or (lambda: self._ticks[name]), within, monotonic())

    def tick(self, name: str) -> None:
        self._ticks[name] = monotonic()

    def paused(self, for_: timedelta) -> None:
        """The whole process did not run for a while: no loop can be blamed for that."""
        self._pauses.append((monotonic(), for_.total_seconds()))

    def ages(self) -> dict[str, float]:
        """Seconds since each loop ticked."""
        return {name: round(monotonic() - loop.ticked_at(), 1) for name, loop in self._loops.items()}

    def silent(self) -> list[str]:
        """Loops that have not ticked for longer than they may: stopped, or failing each time."""
        now = monotonic()
        return [
            name
            for name, loop in self._loops.items()
            if self._silence(loop, now) > loop.within.total_seconds()
        ]

    def _silence(self, loop: _Loop, now: float) -> float:
        quiet_since = max(loop.ticked_at(), loop.since)
        return now - quiet_since - sum(seconds for at, seconds in self._pauses if at > quiet_since)

    def export(self, now: datetime) -> None:
        for name, age in self.ages().items():
            metrics.loop_tick.labels(name).set(now.timestamp() - age)
