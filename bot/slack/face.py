"""The whole Slack face, wired by hand from the settings and the engine's objects.

Starts and runs without Slack; everything that needs it waits in `connection`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from aiohttp import web
from pydantic import SecretStr

from bot.settings import Settings
from bot.slack.actions import Actions
from bot.slack.answering import Answering
from bot.slack.cards import Cards
from bot.slack.client import SlackClient
from bot.slack.commands import Commands, Engine
from bot.slack.connection import Connection, Rhythm
from bot.slack.door import Door
from bot.slack.health import SlackHealth
from bot.slack.home import Home
from bot.slack.identity import Identity
from bot.slack.listeners import Button, Listeners, bolt_app
from bot.slack.modals.opening import Form, Modals
from bot.slack.modals.override import OverrideModal
from bot.slack.modals.schedule import ScheduleForm
from bot.slack.modals.schedule_delete import ScheduleDeleteForm
from bot.slack.nouns import Noun, by_word, nothing_else
from bot.slack.rota.calendars import CalendarCommand
from bot.slack.rota.cover import NOUN as COVER
from bot.slack.rota.cover import CoverCommand
from bot.slack.rota.handoffs import NOUN as HANDOFF
from bot.slack.rota.handoffs import HandoffButtons
from bot.slack.rota.override_answers import NOUN as OVERRIDE
from bot.slack.rota.overrides import OverrideCommand
from bot.slack.rota.places import PlaceCommand
from bot.slack.rota.schedules import ScheduleCommand
from bot.slack.rota.showing import Showing
from bot.slack.transport import SlackTransport
from bot.slack.workspace import Workspace
from engine.calendar.fetch import fetcher
from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.intake.receive import Receiver
from engine.models import ORG
from engine.pager.alarm import raise_alarm
from engine.pager.maintenance import Maintenance
from engine.pager.respond import Responder
from engine.pager.setup import Setup
from engine.pager.views import Views
from engine.rota.calendars import Calendars
from engine.rota.cover import Cover
from engine.rota.drafts import Drafts
from engine.rota.handoff import Handoffs
from engine.rota.imports import Imports
from engine.rota.reminders import Choices
from engine.rota.roster import Roster

OF_ME: Final = "`/oncall me`, `/oncall me calendar` or `/oncall me reminders`"


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
        nudge: Callable[[], None],
        silent: Callable[[], timedelta | None],
        rhythm: Rhythm | None = None,
    ) -> None:
        self._clock = clock
        self._database = database
        self._nudge = nudge
        windows = Maintenance(database, clock)
        engine = Engine(clock, database, roster, receiver, responder, views, windows, silent)
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
        overrides = OverrideCommand(roster, identity, clock, modals)
        schedules = setup.schedules
        forms: list[Form] = [  # each modal
            OverrideModal(overrides, roster, identity, clock),
            ScheduleForm(clock, identity, roster, schedules, Drafts(database, clock)),
            ScheduleDeleteForm(identity, roster, schedules),
        ]
        for form in forms:
            modals.add(form)
        buttons: dict[str, Button] = {"modal": modals.reopen}  # by noun, of those that stand on no card
        rota = (database, clock, roster, nudge)
        covers = CoverCommand(Cover(*rota), roster, identity, clock)
        handoffs = HandoffButtons(Handoffs(*rota), Choices(database), identity)
        buttons |= {COVER: covers.click, HANDOFF: handoffs.click, OVERRIDE: overrides.click}
        shown = ScheduleCommand(clock, client, identity, roster, schedules, modals)
        links = Calendars(database, clock, roster, settings.public_url)
        fetch = fetcher(allow_private=settings.calendar_private)
        imports = Imports(database, clock, nudge, roster, setup.vault, fetch)
        calendars = CalendarCommand(links, imports, roster, identity)
        places = PlaceCommand(setup.places, roster, identity)
        of_schedules: dict[str, Noun] = {"calendar": calendars.schedule, "import": calendars.schedule}
        of_schedules |= {"group": places.run, "topic": places.run}
        of_me: dict[str, Noun] = {"calendar": calendars.me, "calendars": calendars.me}
        of_me |= {"reminders": handoffs.me, "reminder": handoffs.me}
        nouns: dict[str, Noun] = {  # verbs of /oncall that read their own words
            COVER: covers.run,
            "schedule": by_word(of_schedules, shown.run),
            "me": by_word(of_me, nothing_else(OF_ME)),
        }
        Listeners(
            self.app,
            client,
            self._answering,
            Commands(engine, identity, self.health, overrides, nouns),
            Actions(engine, identity, self.cards),
            modals,
            buttons,
            Home(engine, identity, client),
            workspace,
            self.health,
            database,
            clock,
        )
        self._connection = Connection(
            self.app,
            client,
            self.health,
            workspace,
            clock,
            app_token=_secret(settings.slack_app_token) or None,
            on_back=self.cards.show_all_open,
            alarm=self._alarm,
            rhythm=rhythm,
        )
        self._door = Door(self.app, clock, _secret(settings.slack_signing_secret))

    @property
    def ticked_at(self) -> float:
        """When the loop that keeps the connection last went round, whether Slack is there or not."""
        return self._connection.ticked_at

    async def handle_http(self, request: web.Request) -> web.Response:
        return await self._door.handle(request)

    async def start(self) -> None:
        """Returns at once; Slack may be unreachable."""
        await self._connection.start()

    async def stop(self) -> None:
        """Hear nothing new, end what was begun. What is sent after this opens a session of its own."""
        await self._connection.stop()
        await self._answering.stop()
        await self._client.close()

    async def _alarm(self, cause: str, text: str) -> None:
        now = self._clock.now()

        async def unit(tx: Tx) -> None:
            await raise_alarm(tx, ORG, cause, text, now)

        await self._database.write(unit, rank=Writer.CARD)
        self._nudge()


def _secret(value: SecretStr | None) -> str:
    return value.get_secret_value() if value else ""
