"""The real Slack face on the real engine (SQLite), against the sandbox Slack on a free port."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import bot
from bot.sandbox.content import visible_text
from bot.sandbox.faults import Fault
from bot.sandbox.hands import Hands, Seen
from bot.sandbox.server import SandboxServer
from bot.sandbox.state import Message
from bot.sandbox.world import Options
from bot.settings import Settings
from bot.slack.connection import Rhythm
from bot.slack.face import Slack
from bot.slack.health import SlackState
from engine.clock import monotonic
from engine.config.parse import parse_config
from engine.contacts.contacts import Contacts
from engine.db import Database
from engine.intake.receive import Receiver
from engine.models import ORG, Actor, IncidentView, Timer, TimerKind, Via
from engine.notify.slack_watch import SlackWatch
from engine.nudge import Nudge
from engine.pager.respond import Responder
from engine.pager.setup import Setup
from engine.pager.views import Views
from engine.rota.roster import Roster
from engine.schema import timers as table
from engine.store import cards, timers
from engine.vault import Vault
from tests.fakes import FakeClock

VAULT = Vault("a key for tests")
SOON = 15.0  # a deadline, not a wait
PATIENT_S = 12.0  # on a busy machine an answer may take longer than the time that Slack gives


async def until(met: Callable[[], bool], within: float = SOON) -> None:
    """Wait until something is so, or fail."""
    ends = monotonic() + within
    while not met():
        assert monotonic() < ends, "it did not come to that in time"
        await asyncio.sleep(0.01)


def slack_settings(sandbox: SandboxServer, **changes: Any) -> Settings:
    wanted = {
        "slack_bot_token": "xoxb-demo",
        "slack_app_token": "xapp-demo",
        "slack_signing_secret": "demo",
        "slack_api_url": sandbox.api_url,
        "ops_channel": "#ops",
    }
    return Settings.model_validate(wanted | changes)


@dataclass
class Desk:
    """A pager with one Slack face, people who use it, and the sandbox they use it in."""

    clock: FakeClock
    database: Database
    sandbox: SandboxServer
    slack: Slack
    setup: Setup
    roster: Roster
    receiver: Receiver
    responder: Responder
    views: Views
    contacts: Contacts
    quiet: list[timedelta | None]  # for how long no worker has ticked, if that is too long
    opened: int = field(default=0)

    async def connect(self) -> None:
        await self.slack.start()
        await until(lambda: self.slack.health.state is SlackState.UP)

    async def open(self, title: str = "db-1 is down") -> IncidentView:
        """An incident on the service checkout, made by hand."""
        directory = await self.roster.directory()
        (service_id,) = directory.services
        self.opened += 1
        incident_id, _ = await self.receiver.open_by_hand(
            ORG, service_id, title, f"key {self.opened}", Actor("cho", Via.CLI)
        )
        return await self.view(incident_id)

    async def view(self, incident_id: int) -> IncidentView:
        view = await self.views.incident(incident_id)
        assert view is not None
        return view

    async def card(self, incident: IncidentView, channel: str) -> int:
        place = [(incident.id, channel)]
        (made,) = await self.database.write(lambda tx: cards.ensure_all(tx, ORG, place, self.clock.now()))
        return made

    async def claim(self) -> list[Timer]:
        """The card timers that are due, leased as a worker would."""
        now = self.clock.now()

        async def unit(tx: Any) -> list[Timer]:
            rows = await tx.execute(card_timers().where(table.c.due_at <= now))
            live = await timers.live(tx, [row.id for row in rows])
            return await timers.claim(tx, list(live.values()), "test", now + timedelta(seconds=30), now)

        return await self.database.write(unit)

    async def run_cards(self) -> int:
        claimed = await self.claim()
        await self.slack.cards.handle(claimed)
        return len(claimed)

    async def card_due(self) -> list[datetime]:
        """When the card timers that there are are due."""
        async with self.database.snapshot() as tx:
            return [row.due_at for row in await tx.execute(card_timers())]

    async def cards_come_due(self) -> None:
        """Wait until a card is due now."""
        ends = monotonic() + SOON
        while not any(due <= self.clock.now() for due in await self.card_due()):
            assert monotonic() < ends, "no card came due"
            await asyncio.sleep(0.01)

    def said(self, channel: str, user: str | None = None) -> list[Message]:
        found = self.sandbox.state.find_channel(channel)
        assert found is not None
        return [message for message in found.seen_by(user) if message.bot]

    def direct(self, user: str) -> list[Message]:
        name = self.sandbox.state.find_user(f"@{user}")
        assert name is not None
        return [message for message in self.sandbox.state.direct(name.id).seen_by(name.id) if message.bot]

    async def types(self, user: str, text: str, channel: str = "#general") -> str:
        """What this person reads after sending this command."""
        seen = await self._hands(user, text, channel)
        assert seen.error is None, seen.error
        return visible_text(seen.message) if seen.message else ""

    async def _hands(self, user: str, text: str, channel: str, thread_ts: str | None = None) -> Seen:
        person, place = self.sandbox.state.find_user(f"@{user}"), self.sandbox.state.find_channel(channel)
        assert person is not None
        assert place is not None
        return await Hands(self.sandbox.world).type_(person, place, text, thread_ts)

    async def says(self, user: str, text: str, channel: str, thread_ts: str | None = None) -> None:
        await self._hands(user, text, channel, thread_ts)

    async def clicks(self, user: str, message: Message, action_id: str, value: str | None = None) -> None:
        person = self.sandbox.state.find_user(f"@{user}")
        assert person is not None
        seen = await Hands(self.sandbox.world).click(person, message, action_id, value)
        assert seen.error is None, seen.error

    def whispers(self, user: str, channel: str) -> list[str]:
        """What only this person sees there."""
        person = self.sandbox.state.find_user(f"@{user}")
        assert person is not None
        return [visible_text(m) for m in self.said(channel, person.id) if m.ephemeral_to == person.id]

    def breaks(self, kind: str, **reach: Any) -> None:
        self.sandbox.world.faults.begin(Fault("slack", kind, **reach))

    def mends(self) -> None:
        self.sandbox.world.faults.clear()


def card_timers() -> sa.Select[Any]:
    return sa.select(table).where(table.c.kind == TimerKind.CARD.value).order_by(table.c.due_at, table.c.id)


@pytest.fixture
async def sandbox(clock: FakeClock) -> AsyncIterator[SandboxServer]:
    async with SandboxServer(options=Options(now=clock.now, ack_timeout_s=PATIENT_S)) as server:
        yield server


@pytest.fixture
def rhythm() -> Rhythm:
    """As in life, but for the ticks; test_connection has its own."""
    return Rhythm(tick=0.05, probe=0.1)


@pytest.fixture(scope="session")
def configured(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the demo's directory, to copy for each test."""
    path = tmp_path_factory.mktemp("template") / "configured.sqlite3"
    shutil.copy(sqlite_template, path)

    async def configure() -> None:
        database = Database(f"sqlite:///{path}")
        demo = (Path(bot.__file__).parent / "demo.yaml").read_text()
        await Setup(database, FakeClock(), VAULT).apply(parse_config(demo))
        await database.close()

    asyncio.run(configure())
    return path


@pytest.fixture
async def desk(
    clock: FakeClock, configured: Path, tmp_path: Path, sandbox: SandboxServer, rhythm: Rhythm
) -> AsyncIterator[Desk]:
    path = tmp_path / "desk.sqlite3"
    shutil.copy(configured, path)
    database = Database(f"sqlite:///{path}")
    desk = build_desk(clock, database, sandbox, slack_settings(sandbox), rhythm)
    yield desk
    await desk.slack.stop()
    await desk.slack.transport.close()
    await database.close()


def build_desk(
    clock: FakeClock, database: Database, sandbox: SandboxServer, settings: Settings, rhythm: Rhythm
) -> Desk:
    nudge = Nudge(database)
    roster, setup, views = Roster(database, clock, VAULT), Setup(database, clock, VAULT), Views(database)
    receiver = Receiver(database, clock, roster.directory, nudge)
    responder = Responder(database, clock, roster.directory, nudge, lambda calls: None)
    quiet: list[timedelta | None] = [None]
    contacts = Contacts(database, clock, VAULT, nudge)
    engine = (clock, database, roster, setup, receiver, responder, views, contacts, nudge)
    watch = SlackWatch(database, clock, roster.directory, nudge, "here")
    slack = Slack(settings, *engine, lambda: quiet[0], watch, rhythm=rhythm)
    slack._answering._soon = PATIENT_S - 2
    return Desk(clock, database, sandbox, slack, setup, roster, receiver, responder, views, contacts, quiet)
