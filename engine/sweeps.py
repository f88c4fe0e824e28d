"""Idempotent work on an interval: the audit, cards whose counts moved, old inbound ids, the heartbeat.

Nothing here has a due time that matters: whatever has one is a timer row.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta
from functools import partial
from typing import Any, Final

import aiohttp
import structlog
from apscheduler.events import EVENT_JOB_ERROR, JobExecutionEvent
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from engine.audit import Audit
from engine.clock import Clock, monotonic
from engine.db import Database, Tx, Writer
from engine.models import ORG, Rank, TimerKind
from engine.nudge import Nudge
from engine.pager.alarm import raise_alarm
from engine.store import cards, counts, journal
from engine.store.timers import Arming, arm
from engine.worker import Worker

log = structlog.get_logger(__name__)

CARD_AGE: Final = timedelta(seconds=10)  # a storm updates a card this often
CARDS_AT_ONCE: Final = 100
INBOUND_KEPT: Final = timedelta(hours=24)  # Slack repeats an event for up to a day
SILENT: Final = timedelta(seconds=30)  # a loop that has not ticked for so long has stopped
PING_TIMEOUT: Final = timedelta(seconds=5)


class Sweeps:
    """`start` begins them; each can also be called by itself."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        nudge: Nudge,
        worker: Worker,
        *,
        heartbeat_url: str | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._nudge = nudge
        self._worker = worker
        self._heartbeat_url = heartbeat_url
        self.audit = Audit(database, clock, nudge)
        self._scheduler: Any = None

    def start(self) -> None:
        self._scheduler = AsyncIOScheduler(
            timezone=UTC, job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": 30}
        )
        self._scheduler.add_listener(_failed, EVENT_JOB_ERROR)
        jobs: list[tuple[Callable[[], Any], timedelta]] = [
            (self.audit.run, timedelta(minutes=1)),
            (self.watch_loops, SILENT),
            (self.refresh_cards, CARD_AGE / 2),
            (self.forget, timedelta(hours=1)),
        ]
        if self._heartbeat_url:
            jobs.append((self.ping, timedelta(minutes=1)))
        for job, every in jobs:
            self._scheduler.add_job(job, "interval", seconds=every.total_seconds())
        self._scheduler.start()

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

    def silent_loops(self) -> list[str]:
        """Loops that have not ticked for too long: stopped, or without a database."""
        limit = SILENT.total_seconds()
        return [lane.name.value for lane in self._worker.lanes if monotonic() - lane.ticked_at > limit]

    async def watch_loops(self) -> list[str]:
        """Alarm about loops that have stopped."""
        silent = self.silent_loops()
        now = self._clock.now()
        for name in silent:
            text = f"The loop for {name} timers has not ticked for {SILENT.total_seconds():.0f} s."
            await self._database.write(
                partial(raise_alarm, org_id=ORG, cause=f"loop:{name}", text=text, now=now)
            )
        if silent:
            self._nudge()
        return silent

    async def ping(self) -> bool:
        """Tell the dead man's switch that every loop ticks and commits work; silence is its alarm."""
        silent = self.silent_loops()
        if silent or not self._heartbeat_url:
            log.error("heartbeat.withheld", silent=silent)
            return False
        await self._database.write(lambda tx: counts.touch(tx, ORG, "heartbeat"), rank=Writer.CARD)
        timeout = aiohttp.ClientTimeout(total=PING_TIMEOUT.total_seconds())
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(self._heartbeat_url, allow_redirects=False) as answer,
            ):
                return answer.status < 400
        except (aiohttp.ClientError, TimeoutError) as error:
            log.warning("heartbeat.failed", error=type(error).__name__)
            return False


def _failed(event: JobExecutionEvent) -> None:
    log.error("sweep.failed", job=event.job_id, error=type(event.exception).__name__)
