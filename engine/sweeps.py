"""Idempotent work on an interval: the audit, schedules that changed, cards whose counts moved, old inbound
ids, the heartbeat.

Nothing here has a due time that matters: whatever has one is a timer row. Each sweep is a loop that
ticks when it succeeded, so that one which stopped, or always fails, is noticed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, timedelta
from functools import partial
from typing import Any, Final

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from engine.audit import Audit
from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.errors import Unavailable
from engine.heartbeat import Heartbeat
from engine.models import ORG, Rank, TimerKind
from engine.nudge import Nudge
from engine.pager.own_test import OwnTests
from engine.pulse import SILENT, Pulse
from engine.rota.abreast import Abreast
from engine.store import cards, journal
from engine.store.timers import Arming, arm
from engine.watch import Watch
from engine.worker import Lane, Worker

log = structlog.get_logger(__name__)

ROUND: Final = timedelta(seconds=2)  # so soon it is noticed that somebody else is on call
CARD_AGE: Final = timedelta(seconds=10)  # a storm updates a card this often
CARDS_AT_ONCE: Final = 100
INBOUND_KEPT: Final = timedelta(hours=24)  # Slack repeats an event for up to a day
MISSED: Final = 3  # rounds that a sweep may miss before it counts as stopped


@dataclass(frozen=True, slots=True)
class Sweep:
    name: str
    every: timedelta
    once: Callable[[], Awaitable[object]]


class Sweeps:
    """`start` begins them; each can also be called by itself."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        nudge: Nudge,
        worker: Worker,
        *,
        pulse: Pulse,
        watch: Watch,
        abreast: Abreast,
        own_tests: OwnTests,
        heartbeat_url: str | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._nudge = nudge
        self._worker = worker
        self._pulse = pulse
        self._watch = watch
        self.abreast = abreast
        self._own_tests = own_tests
        self._heartbeat = Heartbeat(database, pulse, heartbeat_url) if heartbeat_url else None
        self.audit = Audit(database, clock, nudge)
        self._scheduler: Any = None
        self._unavailable: set[str] = set()  # sweeps that the database failed, the last time

    def start(self) -> None:
        """Begin, and expect a tick of each sweep and of each lane of the worker."""
        self._scheduler = AsyncIOScheduler(
            timezone=UTC, job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": 30}
        )
        for lane in self._worker.lanes:
            self._pulse.expect(lane.name.value, partial(_ticked_at, lane))
        self._pulse.expect("horizon", lambda: self._worker.horizon.ticked_at)
        if (crew := self._worker.horizon.crew) is not None:
            self._pulse.expect("crew", lambda: crew.ticked_at)
        for sweep in self._sweeps():
            self._pulse.expect(sweep.name, within=max(SILENT, MISSED * sweep.every))
            self._scheduler.add_job(
                self._round, "interval", [sweep], seconds=sweep.every.total_seconds(), id=sweep.name
            )
        self._scheduler.start()

    def _sweeps(self) -> list[Sweep]:
        sweeps = [
            Sweep("audit", timedelta(minutes=1), self.audit.run),
            Sweep("watch_loops", SILENT, self._watch.alarm_silent),  # the watch itself among them
            Sweep("abreast", ROUND, self.abreast.go),
            Sweep("own_tests", ROUND, self._own_tests.finish_due),
            Sweep("refresh_cards", CARD_AGE / 2, self.refresh_cards),
            Sweep("forget", timedelta(hours=1), self.forget),
        ]
        if self._heartbeat is not None:
            sweeps.append(Sweep("heartbeat", timedelta(minutes=1), self._heartbeat.ping))
        return sweeps

    async def _round(self, sweep: Sweep) -> None:
        # Why nothing is raised: the scheduler logs whatever is with its traceback, in each round of an
        # outage, and also that it cancelled us itself.
        try:
            await sweep.once()
        except asyncio.CancelledError:
            return
        except Unavailable:
            if sweep.name not in self._unavailable:
                log.warning("sweep.unavailable", sweep=sweep.name)
            self._unavailable.add(sweep.name)
        except Exception:
            log.exception("sweep.failed", sweep=sweep.name)
        else:
            self._unavailable.discard(sweep.name)
            self._pulse.tick(sweep.name)

    def stop(self) -> None:
        if self._scheduler is not None:
            self._scheduler.shutdown(wait=False)

    async def refresh_cards(self) -> int:
        """Arm the cards whose alerts were counted up since they were shown."""
        now = self._clock.now()

        async def unit(tx: Tx) -> int:
            old = await cards.outdated(tx, ORG, CARD_AGE, now, CARDS_AT_ONCE)
            await arm(tx, ORG, [Arming(TimerKind.CARD, one, now, rank=Rank.CARD) for one in old])
            return len(old)

        armed = await self._database.write(unit, rank=Writer.CARD)
        if armed:
            self._nudge()
        return armed

    async def forget(self) -> int:
        before = self._clock.now() - INBOUND_KEPT
        return await self._database.write(lambda tx: journal.forget_inbound(tx, before), rank=Writer.CARD)


def _ticked_at(lane: Lane) -> float:
    return lane.ticked_at
