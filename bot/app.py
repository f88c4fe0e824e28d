"""The wiring, by hand: settings and a clock in, a whole Midwatch out.

Never decides anything, and starts nothing. Tests call the same `build` with fake transports and a clock
of their own.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from aiohttp.web import Application
from pydantic import SecretStr

from bot.inbox import Inbox
from bot.life import App, Role
from bot.outcry import Outcry
from bot.reach import called_back_at, sends_by
from bot.release import release
from bot.settings import Settings
from bot.slack.face import Slack
from bot.sms_poll import SmsPoll
from bot.web.parts import Demo, Phones, WebParts
from bot.web.server import build_web
from engine.calendar.fetch import fetcher
from engine.clock import Clock
from engine.contacts.contacts import Contacts
from engine.crew import Crew
from engine.db import Database
from engine.horizon import Horizon
from engine.intake.receive import Receiver
from engine.links import Links
from engine.models import LaneName, Method, Timer, TimerKind
from engine.notify.apprise_url import AppriseTransport
from engine.notify.email import EmailTransport
from engine.notify.paces import Paces
from engine.notify.pipeline import Pipeline
from engine.notify.receipts import Receipts
from engine.notify.render import LinkOf, answer_link, no_link
from engine.notify.second_phone import SecondPhone
from engine.notify.slack_watch import SlackWatch
from engine.notify.status import ProviderStatus
from engine.notify.transport import Transport, Transports
from engine.notify.twilio import TwilioTransport
from engine.nudge import Nudge
from engine.pager.escalate import Escalator
from engine.pager.own_test import OwnTests
from engine.pager.respond import Calls, Responder
from engine.pager.setup import Setup
from engine.pager.views import Views
from engine.pulse import Pulse
from engine.rota.abreast import Abreast
from engine.rota.calendars import Calendars
from engine.rota.chores import Chore, Chores, Errand, Errands
from engine.rota.cover import Cover
from engine.rota.coverage import Coverage, nobody_asked
from engine.rota.handoff import Handoffs
from engine.rota.imports import Imports
from engine.rota.reminders import Shifts
from engine.rota.roster import Roster
from engine.store import timers
from engine.sweeps import Sweeps
from engine.vault import Vault
from engine.watch import Watch
from engine.worker import Claiming, Lane, Worker

__all__ = ["App", "Role", "build"]


class Core(NamedTuple):
    """The use cases, and what they stand on: what an App begins with, in its order."""

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


class Later:
    """What is made after those who call it, once all is wired."""

    pipeline: Pipeline
    app: App

    def hang_up(self, calls: Calls) -> None:
        self.pipeline.hang_up(calls)

    def silent(self) -> timedelta | None:
        return self.app.lookout.silent


def build(
    settings: Settings,
    clock: Clock,
    transports: Sequence[Transport] | None = None,
    *,
    only: Role | None = None,
) -> App:
    """`transports` replace those of the settings, the Slack one too."""
    later = Later()
    core = _core(settings, clock, later.hang_up, sends_by(settings) if transports is None else None)
    owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    slack_watch = SlackWatch(core.database, clock, core.roster.directory, core.nudge, owner)
    slack = _slack(settings, core, later.silent, slack_watch)
    made = _transports(settings, core, slack) if transports is None else transports
    used = Transports(made)
    pipeline = later.pipeline = _pipeline(settings, core, used, owner, slack_watch)
    status = ProviderStatus(core.database, clock, core.roster.directory, core.nudge)
    receipts = Receipts(core.database, clock, core.nudge, used, status)
    errands = {**_errands(settings, core, slack), TimerKind.RECEIPT: receipts.look}
    worker = _worker(core, pipeline, slack, owner, errands)
    core.nudge.subscribe(worker.wake)
    outcry = Outcry(used, settings.ops_channel, settings.fallback_urls)
    watch = Watch(core.database, clock, core.nudge, Pulse(), outcry.say)
    app = later.app = App(
        *core,
        settings=settings,
        transports=used,
        pipeline=pipeline,
        worker=worker,
        watch=watch,
        sweeps=_sweeps(settings, core, worker, watch),
        slack=slack,
        slack_watch=slack_watch,
        sms_poll=None if called_back_at(settings) else _sms_poll(core, made),
        outcry=outcry,
        web=Application(),
        only=only,
    )
    app.web = build_web(_web_parts(app))
    return app


def _core(
    settings: Settings, clock: Clock, hang_up: Callable[[Calls], None], ways: frozenset[Method] | None
) -> Core:
    assert settings.secret_key is not None, "with_secret_key gives every install one"  # noqa: S101  # wiring
    database = Database(settings.database_url)
    vault = Vault(settings.secret_key.get_secret_value())
    nudge = Nudge(database)
    roster = Roster(database, clock, vault, fallback_urls=settings.fallback_urls)
    return Core(
        clock,
        database,
        vault,
        nudge,
        roster,
        Setup(database, clock, vault, admins=settings.admins),
        Views(database),
        Receiver(database, clock, roster.directory, nudge),
        Responder(database, clock, roster.directory, nudge, hang_up),
        Contacts(database, clock, vault, nudge, countries=settings.sms_countries, ways=ways),
    )


def _slack(
    settings: Settings, core: Core, silent: Callable[[], timedelta | None], watch: SlackWatch
) -> Slack | None:
    if settings.slack_bot_token is None:
        return None
    return Slack(
        settings,
        core.clock,
        core.database,
        core.roster,
        core.setup,
        core.receiver,
        core.responder,
        core.views,
        core.contacts,
        core.nudge,
        silent,
        watch,
    )


def _transports(settings: Settings, core: Core, slack: Slack | None) -> list[Transport]:
    clock, link_of = core.clock, _link_of(settings, core)
    made: list[Transport] = [] if slack is None else [slack.transport]
    if settings.twilio_account_sid and settings.twilio_auth_token and settings.twilio_from:
        made.append(
            TwilioTransport(
                clock,
                account_sid=settings.twilio_account_sid,
                auth_token=settings.twilio_auth_token.get_secret_value(),
                from_number=settings.twilio_from,
                api_url=settings.twilio_api_url,
                public_url=called_back_at(settings),
            )
        )
    # After Twilio: they are asked when it is down.
    for method, url in (
        (Method.SMS, settings.sms_fallback_url),
        (Method.VOICE, settings.voice_fallback_url),
    ):
        if url is not None:
            made.append(SecondPhone(method, url.get_secret_value(), answer_to=settings.twilio_from))
    if settings.smtp_url is not None:
        made.append(EmailTransport(clock, settings.smtp_url.get_secret_value(), link_of=link_of))
    made.append(AppriseTransport(link_of=link_of))
    return made


def _link_of(settings: Settings, core: Core) -> LinkOf:
    """Where a page is answered by a click, if people's browsers reach us."""
    if settings.public_url is None:
        return no_link
    links = Links(core.vault.link_key, settings.public_url)
    return lambda page: answer_link(page, links, core.clock.now())


def _pipeline(
    settings: Settings, core: Core, transports: Transports, owner: str, slack_watch: SlackWatch
) -> Pipeline:
    return Pipeline(
        core.database,
        core.clock,
        core.roster.directory,
        core.nudge,
        transports,
        owner=owner,
        ops_channel=settings.ops_channel,
        slack=slack_watch,
        paces=Paces.per_second(settings.sms_per_second, settings.calls_per_second, settings.phone_per_day),
        vault=core.vault,
    )


def _worker(
    core: Core,
    pipeline: Pipeline,
    slack: Slack | None,
    owner: str,
    errands: Mapping[TimerKind, Errand],
) -> Worker:
    clock, database = core.clock, core.database
    escalator = Escalator(database, clock, core.roster.directory, core.nudge)
    cards = Claiming(database, clock, owner, slack.cards) if slack is not None else NoCards(database)
    # Why none on SQLite: there one process does everything.
    horizon = Horizon(database, clock, None if database.is_sqlite else Crew(database, clock, owner))
    lanes = (
        Lane(LaneName.FATE, escalator, horizon, database, clock),
        Lane(LaneName.DELIVER, pipeline, horizon, database, clock, capacity=lambda: pipeline.capacity),
        Lane(LaneName.CARD, cards, horizon, database, clock),
        Lane(LaneName.ROTA, Chores(database, clock, core.nudge, _chores(core)), horizon, database, clock),
        Lane(
            LaneName.OUTSIDE,
            Claiming(database, clock, owner, Errands(database, clock, errands)),
            horizon,
            database,
            clock,
        ),
    )
    return Worker(lanes, horizon, pipeline.drain)


def _chores(core: Core) -> dict[TimerKind, Chore]:
    """What is due of schedules and touches only SQL."""
    rota = (core.database, core.clock, core.roster, core.nudge)
    return {
        TimerKind.SHIFT: Shifts(core.roster).look,
        TimerKind.HANDOFF: Handoffs(*rota).unaccepted,
        TimerKind.COVER: Cover(*rota).expire,
    }


def _errands(settings: Settings, core: Core, slack: Slack | None) -> dict[TimerKind, Errand]:
    """What is due of schedules and asks somebody outside."""
    database, clock, nudge, roster = core.database, core.clock, core.nudge, core.roster
    fetch = fetcher(allow_private=settings.calendar_private)
    asked = nobody_asked if slack is None else slack.showing.who_left
    return {
        TimerKind.COVERAGE: Coverage(database, nudge, roster, asked).look,
        TimerKind.SHOWN: not_shown if slack is None else slack.showing.show,
        TimerKind.CALENDAR: Imports(database, clock, nudge, roster, core.vault, fetch).fetch,
    }


async def not_shown(_timer: Timer, _now: datetime) -> None:
    """Without Slack there is no group and no topic."""


class NoCards:
    """Without Slack there is no card to show."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def handle(self, due: Sequence[Timer]) -> int:
        ids = [timer.id for timer in due]
        await self._database.write(lambda tx: timers.finish_all(tx, ids))
        return len(ids)


def _sweeps(settings: Settings, core: Core, worker: Worker, watch: Watch) -> Sweeps:
    return Sweeps(
        core.database,
        core.clock,
        core.nudge,
        worker,
        pulse=watch.pulse,
        watch=watch,
        abreast=Abreast(core.database, core.clock, core.nudge, core.roster.directory),
        own_tests=OwnTests(core.database, core.clock, core.roster.directory, core.nudge),
        heartbeat_url=settings.heartbeat_url,
    )


def _sms_poll(core: Core, transports: Sequence[Transport]) -> SmsPoll | None:
    """How replies come in when Twilio cannot reach us; None without Twilio."""
    twilio = next((each for each in transports if isinstance(each, TwilioTransport)), None)
    if twilio is None:
        return None
    inbox = Inbox(core.database, core.clock, core.vault, core.roster, core.responder, core.views)
    return SmsPoll(core.database, core.clock, twilio, inbox)


def _phones(settings: Settings, public_url: str, token: SecretStr, status: ProviderStatus) -> Phones:
    old = settings.twilio_auth_token_old
    pairs = [one.get_secret_value().partition(":") for one in settings.twilio_subaccounts]
    return Phones(
        token.get_secret_value(),
        public_url,
        status,
        account_sid=settings.twilio_account_sid or "",
        old_token=old.get_secret_value() if old else None,
        subaccounts={account: its_token for account, _, its_token in pairs},
    )


def _web_parts(app: App) -> WebParts:
    settings = app.settings
    phones = None
    if settings.twilio_auth_token is not None and settings.public_url:
        status = ProviderStatus(app.database, app.clock, app.roster.directory, app.nudge)
        phones = _phones(settings, settings.public_url, settings.twilio_auth_token, status)
    return WebParts(
        clock=app.clock,
        database=app.database,
        vault=app.vault,
        roster=app.roster,
        receiver=app.receiver,
        responder=app.responder,
        views=app.views,
        contacts=app.contacts,
        health=app.health,
        unready=lambda: app.lookout.retired or app.watch.unready(),
        version=release(),
        public_url=settings.public_url,
        phones=phones,
        slack_http=app.slack.handle_http if app.slack and settings.slack_signing_secret else None,
        calendars=Calendars(app.database, app.clock, app.roster, settings.public_url),
        # Why Twilio's URL: in the demo the sandbox is the phone company, and its page is at its root.
        demo=Demo(app.next_due, app.advance, settings.twilio_api_url) if settings.demo else None,
    )
