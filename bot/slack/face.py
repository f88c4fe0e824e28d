"""The whole Slack face, wired by hand from the settings and the engine's objects.

Starts and runs without Slack; everything that needs it waits in `connection`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from aiohttp import web
from pydantic import SecretStr

from bot.settings import Settings
from bot.slack.actions import Actions
from bot.slack.answering import Answering
from bot.slack.cards import Cards
from bot.slack.client import SlackClient
from bot.slack.commands import Commands, Engine
from bot.slack.connection import Connection, Rhythm
from bot.slack.contacts import wiring as contacts_face
from bot.slack.contacts.wiring import Reached
from bot.slack.dead import DeadCommand
from bot.slack.door import Door
from bot.slack.health import SlackHealth
from bot.slack.home import Home
from bot.slack.identity import Identity
from bot.slack.listeners import Button, Listeners, bolt_app
from bot.slack.modals.opening import Modals
from bot.slack.nouns import Noun, by_word
from bot.slack.outage import EVERY_S, OutageLoop
from bot.slack.probe import Probe
from bot.slack.rehearsal import RehearsalCommand
from bot.slack.rota.showing import Showing
from bot.slack.rota.wiring import Needs, Rota, build
from bot.slack.transport import SlackTransport
from bot.slack.workspace import Workspace
from engine.clock import Clock
from engine.contacts.contacts import Contacts
from engine.db import Database
from engine.intake.receive import Receiver
from engine.notify.slack_watch import SlackWatch
from engine.nudge import Nudge
from engine.pager.dead_letters import DeadLetters
from engine.pager.maintenance import Maintenance
from engine.pager.own_test import OwnTests
from engine.pager.rehearsal import Rehearsals
from engine.pager.respond import Responder
from engine.pager.setup import Setup
from engine.pager.views import Views
from engine.rota.roster import Roster


class Slack:
    """`transport` sends pages, `cards` handles card timers, `handle_http` is POST /slack/events."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        database: Database,
        roster: Roster,
        setup: Setup,
        receiver: Receiver,
        responder: Responder,
        views: Views,
        contacts: Contacts,
        nudge: Nudge,
        silent: Callable[[], timedelta | None],
        watch: SlackWatch,
        rhythm: Rhythm | None = None,
    ) -> None:
        self._clock = clock
        self._database = database
        self.watch = watch
        windows = Maintenance(database, clock)
        letters = DeadLetters(database, clock, roster.directory, nudge)
        engine = Engine(clock, database, roster, receiver, responder, views, windows, silent, letters, watch)
        self._rehearsals = Rehearsals(database, clock, roster, receiver, responder, views)
        workspace = Workspace()
        client = self._client = SlackClient(_secret(settings.slack_bot_token), settings.slack_api_url)
        identity = Identity(client, workspace, roster, setup, clock)
        self.health = SlackHealth(clock)
        self.transport = SlackTransport(client, self.health, clock)
        self.cards = Cards(client, self.health, database, views, clock, nudge)
        self.showing = Showing(client, database, clock, roster)
        self.app = bolt_app(settings.slack_api_url, workspace)
        self._answering = Answering(client)
        modals = self.modals = Modals(client, self._answering)
        needs = Needs(
            clock,
            database,
            roster,
            setup,
            nudge,
            client,
            identity,
            modals,
            settings.public_url,
            settings.calendar_private,
        )
        own_tests = OwnTests(database, clock, roster.directory, nudge)
        reached = contacts_face.build(settings, clock, contacts, own_tests, roster, client, identity, modals)
        self._hear(engine, identity, build(needs), reached, workspace)
        self._connection = self._connect(settings, workspace, rhythm)
        probe = Probe(client, self.health, database, clock, settings.ops_channel)
        every_s = min(EVERY_S, self._connection.tick_s)
        self.outage = OutageLoop(watch, self.health, probe, self._rehearsals, every_s=every_s)
        self._door = Door(self.app, clock, _secret(settings.slack_signing_secret), self._connection.heard)

    def _hear(
        self, engine: Engine, identity: Identity, rota: Rota, reached: Reached, workspace: Workspace
    ) -> None:
        """Have everything that Slack sends answered."""
        for form in (*rota.forms, *reached.forms):
            self.modals.add(form)
        home = Home(engine, identity, self._client, reached.overviews)
        self.modals.show_home = home.show
        dead = {verb: DeadCommand(engine.letters, identity, verb) for verb in ("dead", "retry")}
        rehearsal = RehearsalCommand(self._rehearsals, identity)
        me = reached.me
        nouns: dict[str, Noun] = {
            **rota.nouns,
            **dead,
            "me": by_word(rota.of_me, me.run),
            "verify": me.verify,
            "test": by_word({"me": me.test}, rehearsal.ask),
        }
        buttons: dict[str, Button] = {
            "modal": self.modals.reopen,
            "rehearse": rehearsal.start,
            **rota.buttons,
            **reached.buttons,
        }
        Listeners(
            self.app,
            self._client,
            self._answering,
            Commands(engine, identity, self.health, rota.overrides, nouns),
            Actions(engine, identity, self.cards),
            self.modals,
            buttons,
            home,
            workspace,
            self.health,
            self._database,
            self._clock,
        )

    def _connect(self, settings: Settings, workspace: Workspace, rhythm: Rhythm | None) -> Connection:
        return Connection(
            self.app,
            self._client,
            self.health,
            workspace,
            self._clock,
            app_token=_secret(settings.slack_app_token) or None,
            on_back=self.cards.show_all_open,
            standing=lambda: self.watch.standing,
            rhythm=rhythm,
        )

    @property
    def ticked_at(self) -> float:
        """When the loop that keeps the connection last went round, whether Slack is there or not."""
        return self._connection.ticked_at

    async def handle_http(self, request: web.Request) -> web.Response:
        return await self._door.handle(request)

    async def start(self, *, hears: bool = True) -> None:
        """Returns at once; Slack may be unreachable. `hears`: this process holds the connection."""
        self.outage.start()
        if hears:
            await self._connection.start()

    async def stop(self) -> None:
        """Hear nothing new, end what was begun. What is sent after this opens a session of its own."""
        await self.outage.stop()
        await self._connection.stop()
        await self._answering.stop()
        await self._client.close()


def _secret(value: SecretStr | None) -> str:
    return value.get_secret_value() if value else ""
