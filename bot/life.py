"""A Midwatch that was wired: it starts, works, retires and stops, each in phases.

Never makes its own parts: `bot.app.build` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import structlog
from aiohttp.web import Application, AppRunner, TCPSite

from bot.collector import calm_the_collector
from bot.lookout import Lookout
from bot.outcry import Outcry
from bot.reach import unreachable
from bot.release import release
from bot.settings import Settings
from bot.slack.face import Slack
from bot.sms_poll import SmsPoll
from bot.web.server import runner
from engine.clock import Clock, MovableClock
from engine.contacts.contacts import Contacts
from engine.db import Database, Writer
from engine.intake.receive import Receiver
from engine.notify.pipeline import Pipeline
from engine.notify.slack_watch import SlackWatch
from engine.notify.transport import Transports
from engine.nudge import Nudge
from engine.pager.respond import Responder
from engine.pager.setup import Setup
from engine.pager.views import Views
from engine.rota.roster import Roster
from engine.store.due import next_due
from engine.sweeps import Sweeps
from engine.vault import Vault
from engine.watch import Watch
from engine.worker import Worker

log = structlog.get_logger(__name__)

AWAY: Final = timedelta(minutes=2)  # connections have pauses of their own between their tries


class Role(StrEnum):
    """What one process does when the work is split; without a role it does everything."""

    WEB = "web"
    WORKER = "worker"
    SLACK = "slack"


@dataclass(slots=True)
class App:
    """A Midwatch that `start` brings to life; its parts can be used without that."""

    clock: Clock
    database: Database
    vault: Vault
    nudge: Nudge
    roster: Roster
    setup: Setup
    views: Views
    receiver: Receiver
    responder: Responder
    contacts: Contacts
    settings: Settings
    transports: Transports
    pipeline: Pipeline
    worker: Worker
    watch: Watch
    sweeps: Sweeps
    slack: Slack | None
    slack_watch: SlackWatch
    sms_poll: SmsPoll | None
    outcry: Outcry
    web: Application
    only: Role | None = None
    lookout: Lookout = field(init=False)
    _runner: AppRunner | None = None
    _started: bool = False
    _ending: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        working = self._all_loops_tick if self.only in {None, Role.WORKER} else None
        self.lookout = Lookout(self.database, self.clock, self.outcry, self.retire, working)

    async def start(self) -> None:
        self._started = True
        pulse = self.watch.pulse
        self.watch.start()
        await self.nudge.start()
        if not self.database.is_sqlite:
            pulse.expect("nudge", self.nudge.heard_at, within=AWAY)
        if self.only in {None, Role.WORKER}:
            await self.worker.start()
            self.sweeps.start()
            if (poll := self.sms_poll) is not None:
                poll.start()
                pulse.expect("sms_replies", lambda: poll.ticked_at)
        if self.only in {None, Role.WEB}:
            self._runner = runner(self.web)
            await self._runner.setup()
            await TCPSite(self._runner, self.settings.host, self.settings.port).start()
        if (slack := self.slack) is not None:
            await slack.start(hears=self.hears_slack)
            pulse.expect("slack_standing", lambda: slack.outage.ticked_at)
            if self.hears_slack:
                pulse.expect("slack", lambda: slack.ticked_at, within=AWAY)
        if unreachable(self.settings):
            log.error("twilio.no_callbacks", hint="MIDWATCH_PUBLIC_URL is no public address: see doctor")
        self.lookout.start()
        pulse.expect("lookout", lambda: self.lookout.ticked_at)
        calm_the_collector()
        log.info(
            "midwatch.started", only=self.only, database="sqlite" if self.database.is_sqlite else "postgresql"
        )

    async def stop(self) -> None:
        """In phases: hear nothing new, finish what is held, close."""
        await _each(
            self.lookout.stop,
            self._close_web,
            self._stop_working,
            self.receiver.stop,
            self.transports.close,
            self.nudge.stop,
            self.database.close,
        )
        log.info("midwatch.stopped")

    async def _close_web(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def retire(self, _why: str) -> None:
        """Work no more, and take nothing more; the web stays up, unready, and says why."""
        # Why not all at once: what was sent is recorded, or it would be sent again.
        self.database.bar(but=Writer.OUTCOME)
        await self._stop_working()
        self.database.bar()

    async def _stop_working(self) -> None:
        """Once, and to its end, though whoever retires may be told to stop in the middle of that."""
        if self._started and self._ending is None:
            self._ending = asyncio.create_task(self._end(), name="end")
        if self._ending is not None:
            await asyncio.shield(self._ending)

    async def _end(self) -> None:
        async def stop_sweeps() -> None:
            self.sweeps.stop()

        slack = [self.slack.stop] if self.slack is not None else []
        poll = [self.sms_poll.stop] if self.sms_poll is not None else []
        await _each(*slack, *poll, stop_sweeps, self.worker.stop, self.watch.stop)

    @property
    def hears_slack(self) -> bool:
        """By a socket that is a role; by HTTP it is whoever has the port, who must know our workspace."""
        by_http = self.settings.slack_signing_secret is not None
        return self.only in {None, Role.SLACK, *([Role.WEB] if by_http else [])}

    def _all_loops_tick(self) -> bool:
        lanes = {"horizon", *(lane.name.value for lane in self.worker.lanes)}
        return lanes.isdisjoint(self.watch.pulse.silent())

    async def advance(self, to: datetime) -> int:
        """Move the demo's clock while nothing is in flight, then work what that makes due."""
        if not isinstance(self.clock, MovableClock):
            raise TypeError("only a demo's clock can be moved")
        async with self.worker.paused():
            self.clock.move_to(to)
        worked = await self.worker.run_due()
        await self.lookout.tick()  # by the new time, or the last one would look an age ago
        return worked

    async def next_due(self) -> datetime | None:
        async with self.database.snapshot() as tx:
            return await next_due(tx)

    def _slack_health(self) -> Mapping[str, Any]:
        """By all processes together; before the first look by this one alone."""
        assert self.slack is not None  # noqa: S101  # whoever calls has looked
        own, shared, figures = self.slack.health, self.slack_watch.standing, self.slack_watch.figures
        known = {"state": own.state.value, "since": own.since.isoformat(), "reason": own.reason}
        if shared is None:
            return known
        return {
            "state": shared.state.value,
            "since": shared.since.isoformat(),
            "reason": shared.reason,
            "last_heard": _iso(shared.heard_at),
            "last_answered": _iso(shared.ok_at),
            "missed_echoes": shared.probe.missed,
            "calls": figures.calls,
            "failures": figures.failures,
            "connections": figures.connections,
            "unexpected_connections": figures.unexpected,
            "clock_skew_seconds": figures.skew.total_seconds(),
        }

    async def health(self) -> Mapping[str, Any]:
        """Details for people; nothing in it is secret."""
        now = self.clock.now()
        return {
            "version": release(),
            "now": now.isoformat(),
            "database": "sqlite" if self.database.is_sqlite else "postgresql",
            "slack": self._slack_health() if self.slack is not None else None,
            "workers": _at_work(self.lookout),
            "retired": self.lookout.retired or None,
            "seconds_since_tick": self.watch.pulse.ages(),
            "silent": self.watch.pulse.silent(),
            "unready": self.watch.unready(),
            "providers_down": sorted(self.pipeline.breakers.opened(now)),
        }


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _at_work(lookout: Lookout) -> str:
    if lookout.blind:
        return "unknown: the database does not answer"
    silent = lookout.silent
    return "working" if silent is None else f"none has ticked for {silent.total_seconds():.0f} s"


async def _each(*steps: Callable[[], Awaitable[None]]) -> None:
    """One after the other; a step that fails keeps none from its turn."""
    for step in steps:
        try:
            await step()
        except Exception:
            log.exception("stop.failed", step=step.__qualname__)
