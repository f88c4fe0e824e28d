"""Works the timers of schedules: chores touch only SQL, errands leave it.

Never decides anything itself: each kind has its work. One that fails is counted, said, and tried again
later; it keeps no other waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog

from engine import metrics
from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.errors import Unavailable
from engine.models import Timer, TimerKind
from engine.nudge import Nudge
from engine.store import timers

log = structlog.get_logger(__name__)

AGAIN: Final = timedelta(minutes=1)  # doubled with each failure
LONGEST: Final = timedelta(hours=1)
ERRAND: Final = timedelta(seconds=28)  # less than a lease, and than the silence of a stopped lane

Chore = Callable[[Tx, Timer, datetime], Awaitable[None]]  # its timer is finished; it may arm the next
Errand = Callable[[Timer, datetime], Awaitable[datetime | None]]  # when again; None: its timer is finished


class Chores:
    """Each due timer is finished and worked in one transaction of its own."""

    def __init__(
        self, database: Database, clock: Clock, nudge: Nudge, work: Mapping[TimerKind, Chore]
    ) -> None:
        self._database = database
        self._clock = clock
        self._nudge = nudge
        self._work = {kind.value: chore for kind, chore in work.items()}

    async def handle(self, due: Sequence[Timer]) -> int:
        known = [timer for timer in due if timer.kind in self._work]
        worked = sum([await self._one(timer) for timer in known])
        if worked:
            self._nudge()
        return worked

    async def _one(self, timer: Timer) -> int:
        now = self._clock.now()
        try:
            return await self._database.write(partial(self._unit, timer=timer, now=now), rank=Writer.CARD)
        except Unavailable:
            raise
        except Exception:
            log.exception("chore.failed", kind=timer.kind, subject=timer.subject_id)
            metrics.timers_failed.labels(timer.kind).inc()
            later = now + _wait(timer.attempt)
            return await self._database.write(
                lambda tx: timers.defer_failed(tx, timer, later), rank=Writer.CARD
            )

    async def _unit(self, tx: Tx, timer: Timer, now: datetime) -> int:
        taken = await timers.finish_due(tx, [timer.id], now)
        for one in taken:
            await self._work[one.kind](tx, one, now)
        return len(taken)


class Errands:
    """Works timers that are leased to us; what an errand answers says when the next one is due."""

    def __init__(self, database: Database, clock: Clock, work: Mapping[TimerKind, Errand]) -> None:
        self._database = database
        self._clock = clock
        self._work = {kind.value: errand for kind, errand in work.items()}

    async def handle(self, claimed: Sequence[Timer]) -> None:
        """All at once: one that waits for somebody outside outlives no other's lease."""
        ours = [self._one(timer) for timer in claimed if timer.kind in self._work]
        for ended in await asyncio.gather(*ours, return_exceptions=True):
            if isinstance(ended, BaseException):
                raise ended  # the database took no end of it: its lease runs out, and it is worked again

    async def _one(self, timer: Timer) -> None:
        now = self._clock.now()
        try:
            async with asyncio.timeout(ERRAND.total_seconds()):
                again = await self._work[timer.kind](timer, now)
        except Exception:
            log.exception("errand.failed", kind=timer.kind, subject=timer.subject_id)
            metrics.timers_failed.labels(timer.kind).inc()
            again = now + _wait(timer.attempt)
        await self._database.write(partial(_end, timer=timer, again=again), rank=Writer.CARD)


async def _end(tx: Tx, timer: Timer, again: datetime | None) -> bool:
    if again is None:
        return await timers.finish(tx, timer)
    return await timers.postpone(tx, timer, again)


def _wait(attempt: int) -> timedelta:
    return min(LONGEST, AGAIN * 2.0 ** min(attempt, 10))
