"""The wiring, by hand, in one function: settings and a clock in, a whole Midwatch out.

Never decides anything. Tests call the same `build` with fake transports and a clock of their own.
"""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import structlog
from aiohttp.web import Application, AppRunner, TCPSite

from bot.collector import calm_the_collector
from bot.inbox import Inbox
from bot.lookout import Lookout
from bot.outcry import Outcry
from bot.settings import Settings
from bot.slack.face import Slack
from bot.sms_poll import SmsPoll
from bot.web.parts import Demo, Phones, WebParts
from bot.web.server import build_web, runner
from engine import metrics
from engine.clock import Clock, MovableClock
from engine.crew import Crew
from engine.db import Database, Writer
from engine.horizon import Horizon
from engine.models import LaneName, Timer
from engine.notify.apprise_url import AppriseTransport
from engine.notify.email import EmailTransport
from engine.notify.pipeline import Pipeline
from engine.notify.status import ProviderStatus
from engine.notify.transport import Transport, Transports
from engine.notify.twilio import TwilioTransport
from engine.nudge import Nudge
from engine.pager.escalate import Escalator
from engine.pager.receive import Receiver
from engine.pager.respond import Responder
from engine.pager.roster import Roster
from engine.pager.setup import Setup
from engine.pager.views import Views
from engine.pulse import Pulse
from engine.store import timers
from engine.sweeps import Sweeps
from engine.vault import Vault
from engine.watch import Watch
from engine.worker import Claiming, Lane, Worker

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

    settings: Settings
    clock: Clock
    database: Database
    vault: Vault
    nudge: Nudge
    roster: Roster
    setup: Setup
    views: Views
    receiver: Receiver
    responder: Responder
    transports: Transports
    pipeline: Pipeline
    worker: Worker
    watch: Watch
    sweeps: Sweeps
    slack: Slack | None
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
        if (slack := self.slack) is not None and self.hears_slack:
            await slack.start()
            pulse.expect("slack", lambda: slack.ticked_at, within=AWAY)
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
            return await timers.next_due(tx)

    async def health(self) -> Mapping[str, Any]:
        """Details for people; nothing in it is secret."""
        now = self.clock.now()
        slack = self.slack.health if self.slack is not None else None
        metrics.slack_up.set(1 if slack is not None and slack.state == "up" else 0)
        return {
            "version": release(),
            "now": now.isoformat(),
            "database": "sqlite" if self.database.is_sqlite else "postgresql",
            "slack": {"state": slack.state.value, "since": slack.since.isoformat()} if slack else None,
            "workers": _at_work(self.lookout),
            "retired": self.lookout.retired or None,
            "seconds_since_tick": self.watch.pulse.ages(),
            "silent": self.watch.pulse.silent(),
            "unready": self.watch.unready(),
            "providers_down": sorted(self.pipeline.breakers.opened(now)),
        }


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


def build(
    settings: Settings,
    clock: Clock,
    transports: Sequence[Transport] | None = None,
    *,
    only: Role | None = None,
) -> App:
    """`transports` replace those of the settings, the Slack one too."""
    assert settings.secret_key is not None, "with_secret_key gives every install one"  # noqa: S101  # wiring
    database = Database(settings.database_url)
    vault = Vault(settings.secret_key.get_secret_value())
    nudge = Nudge(database)
    roster = Roster(database, clock, vault, fallback_urls=settings.fallback_urls)
    setup = Setup(database, clock, vault, admins=settings.admins)
    views = Views(database)
    receiver = Receiver(database, clock, roster.directory, nudge)
    calls: list[Pipeline] = []
    responder = Responder(database, clock, roster.directory, nudge, lambda ringing: calls[0].hang_up(ringing))
    apps: list[App] = []
    slack = None
    if settings.slack_bot_token is not None:
        engine = (clock, database, roster, setup, receiver, responder, views, nudge)
        slack = Slack(settings, *engine, lambda: apps[0].lookout.silent)
    made = _transports(settings, clock, slack) if transports is None else transports
    used = Transports(made)
    inbox = Inbox(database, vault, roster, responder, views)
    owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    pipeline = Pipeline(
        database, clock, roster.directory, nudge, used, owner=owner, ops_channel=settings.ops_channel
    )
    calls.append(pipeline)
    worker = _worker(database, clock, roster, nudge, pipeline, slack, owner)
    nudge.subscribe(worker.wake)
    outcry = Outcry(used, settings.ops_channel, settings.fallback_urls)
    pulse = Pulse()
    watch = Watch(database, clock, nudge, pulse, outcry.say)
    app = App(
        settings=settings,
        clock=clock,
        database=database,
        vault=vault,
        nudge=nudge,
        roster=roster,
        setup=setup,
        views=views,
        receiver=receiver,
        responder=responder,
        transports=used,
        pipeline=pipeline,
        worker=worker,
        watch=watch,
        sweeps=Sweeps(
            database, clock, nudge, worker, pulse=pulse, watch=watch, heartbeat_url=settings.heartbeat_url
        ),
        slack=slack,
        sms_poll=None if settings.public_url else _sms_poll(database, clock, made, inbox),
        outcry=outcry,
        web=Application(),
        only=only,
    )
    apps.append(app)
    app.web = build_web(_web_parts(app))
    return app


def _transports(settings: Settings, clock: Clock, slack: Slack | None) -> list[Transport]:
    made: list[Transport] = [] if slack is None else [slack.transport]
    if settings.twilio_account_sid and settings.twilio_auth_token and settings.twilio_from:
        made.append(
            TwilioTransport(
                clock,
                account_sid=settings.twilio_account_sid,
                auth_token=settings.twilio_auth_token.get_secret_value(),
                from_number=settings.twilio_from,
                api_url=settings.twilio_api_url,
                public_url=settings.public_url,
            )
        )
    if settings.smtp_url is not None:
        made.append(EmailTransport(clock, settings.smtp_url.get_secret_value()))
    made.append(AppriseTransport())
    return made


def _sms_poll(
    database: Database, clock: Clock, transports: Sequence[Transport], inbox: Inbox
) -> SmsPoll | None:
    """How replies come in when Twilio cannot reach us; None without Twilio."""
    twilio = next((each for each in transports if isinstance(each, TwilioTransport)), None)
    return None if twilio is None else SmsPoll(database, clock, twilio, inbox)


def _worker(
    database: Database,
    clock: Clock,
    roster: Roster,
    nudge: Nudge,
    pipeline: Pipeline,
    slack: Slack | None,
    owner: str,
) -> Worker:
    escalator = Escalator(database, clock, roster.directory, nudge)
    cards = Claiming(database, clock, owner, slack.cards) if slack is not None else NoCards(database)
    # Why none on SQLite: there one process does everything.
    horizon = Horizon(database, clock, None if database.is_sqlite else Crew(database, clock, owner))
    lanes = (
        Lane(LaneName.FATE, escalator, horizon, database, clock),
        Lane(LaneName.DELIVER, pipeline, horizon, database, clock, capacity=lambda: pipeline.capacity),
        Lane(LaneName.CARD, cards, horizon, database, clock),
    )
    return Worker(lanes, horizon, pipeline.drain)


class NoCards:
    """Without Slack there is no card to show."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def handle(self, due: Sequence[Timer]) -> int:
        ids = [timer.id for timer in due]
        await self._database.write(lambda tx: timers.finish_all(tx, ids))
        return len(ids)


def _web_parts(app: App) -> WebParts:
    settings = app.settings
    phones = None
    if settings.twilio_auth_token is not None and settings.public_url:
        status = ProviderStatus(app.database, app.clock, app.roster.directory, app.nudge)
        phones = Phones(settings.twilio_auth_token.get_secret_value(), settings.public_url, status)
    return WebParts(
        clock=app.clock,
        database=app.database,
        vault=app.vault,
        roster=app.roster,
        receiver=app.receiver,
        responder=app.responder,
        views=app.views,
        health=app.health,
        unready=lambda: app.lookout.retired or app.watch.unready(),
        version=release(),
        public_url=settings.public_url,
        phones=phones,
        slack_http=app.slack.handle_http if app.slack and settings.slack_signing_secret else None,
        demo=Demo(app.next_due, app.advance) if settings.demo else None,
    )


def release() -> str:
    """The installed version of Midwatch."""
    try:
        return version("midwatch")
    except PackageNotFoundError:  # run from a checkout that was not installed
        return "unknown"
