"""What the sandbox itself must do later, in its own time: retries of events, calls nobody answers.

Never reads the machine's time; an action that talks to Midwatch runs as an errand, not in here.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from bot.sandbox.clock import SandboxClock

# A clock that is moved from outside wakes nobody, so no sleep is longer than this.
LONGEST_SLEEP_S = 0.5


@dataclass(order=True, slots=True)
class Appointment:
    due_at: datetime
    number: int
    action: Callable[[], object] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        self.cancelled = True


class Agenda:
    def __init__(self, clock: SandboxClock) -> None:
        self._clock = clock
        self._heap: list[Appointment] = []
        self._numbers = count()
        self._nudge = asyncio.Event()

    def at(self, when: datetime, action: Callable[[], object]) -> Appointment:
        appointment = Appointment(when, next(self._numbers), action)
        heapq.heappush(self._heap, appointment)
        self._nudge.set()
        return appointment

    def next_due(self) -> datetime | None:
        while self._heap and self._heap[0].cancelled:
            heapq.heappop(self._heap)
        return self._heap[0].due_at if self._heap else None

    def run_due(self) -> int:
        """Do everything that is due by now, in order; say how much it was."""
        done = 0
        while (due := self.next_due()) is not None and due <= self._clock.now():
            heapq.heappop(self._heap).action()
            done += 1
        return done

    async def run(self) -> None:
        while True:
            self.run_due()
            self._nudge.clear()
            due = self.next_due()
            wait = LONGEST_SLEEP_S
            if due is not None:
                wait = min(wait, max(0.001, (due - self._clock.now()).total_seconds()))
            try:
                async with asyncio.timeout(wait):
                    await self._nudge.wait()
            except TimeoutError:
                continue
