"""What a command does: find what it names, call the engine, say what came of it.

Never acks and never talks to Slack besides asking who somebody is; `listeners` do that. Every
failure leaves here as an error of the engine's tree, or as whatever it was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from typing import Final
from zoneinfo import ZoneInfo

from bot.slack import about, answers, blocks, escape, maintenance, words
from bot.slack.grammar import oncall as grammar
from bot.slack.grammar import override_text, who_text
from bot.slack.grammar.maintenance_text import EndMaintenance, ListMaintenance, StartMaintenance
from bot.slack.health import SlackHealth
from bot.slack.identity import Asker, Identity, actor_of
from bot.slack.message import Message
from bot.slack.nouns import Noun
from bot.slack.pageable import paged_first, service_and_title
from bot.slack.rota.overrides import OverrideCommand
from bot.slack.rota.who import WhoCommand
from engine.clock import Clock
from engine.db import Database
from engine.errors import BadCommand, MidwatchError, NotFound
from engine.intake.receive import Receiver
from engine.models import ORG, Actor, IncidentStatus
from engine.notify.slack_watch import SlackWatch
from engine.pager.dead_letters import DeadLetters
from engine.pager.maintenance import Maintenance
from engine.pager.respond import Answer, Responder
from engine.pager.story import story
from engine.pager.views import Views
from engine.rota.coverage import standing
from engine.rota.roster import Roster
from engine.store import cards

OPEN: Final = (IncidentStatus.TRIGGERED, IncidentStatus.UNANSWERED, IncidentStatus.ACKNOWLEDGED)
LISTED: Final = 50
TITLE_MAX: Final = 250

Respond = grammar.Deed | grammar.Snooze | grammar.Merge | grammar.Note


@dataclass(frozen=True, slots=True)
class Engine:
    """The objects of the pager that the Slack face talks to."""

    clock: Clock
    database: Database
    roster: Roster
    receiver: Receiver
    responder: Responder
    views: Views
    maintenance: Maintenance
    silent: Callable[[], timedelta | None]  # for how long no worker has ticked, if that is too long
    letters: DeadLetters
    slack_watch: SlackWatch


class Commands:
    def __init__(
        self,
        engine: Engine,
        identity: Identity,
        health: SlackHealth,
        overrides: OverrideCommand,
        nouns: Mapping[str, Noun],
    ) -> None:
        self._engine = engine
        self._overrides = overrides
        self._nouns = nouns
        self._who = WhoCommand(engine.roster, identity, engine.clock)
        self._identity = identity
        self._health = health
        self._maintenance = maintenance.MaintenanceCommand(engine.maintenance, engine.roster, identity)

    async def run(self, name: str, text: str, asker: Asker) -> Message | None:
        """Read and do one command: `name` is the slash command, or "/oncall" for a mention.

        None where a modal was opened.
        """
        zone = await self._zone(asker)
        now = self._engine.clock.now()
        match name:
            case "/override":
                command: grammar.Command = grammar.parse_override(text, now, zone)
            case "/page":
                command = grammar.parse_page(text)
            case "/incident":
                command = grammar.parse_incident(text, now, zone)
            case _:
                command = grammar.parse(text, now, zone)
        return await self._do(command, asker)

    async def _zone(self, asker: Asker) -> ZoneInfo:
        person = await self._identity.reader(asker)
        return words.zone_of(person.timezone if person else "UTC")

    async def _do(self, command: grammar.Command, asker: Asker) -> Message | None:
        match command:
            case who_text.Who():
                return await self._who.who(command)
            case who_text.Shifts():
                return await self._who.shifts(command, asker)
            case grammar.Handed():
                return await self._nouns[command.verb](command.words, asker)
            case grammar.Deed() | grammar.Snooze() | grammar.Merge() | grammar.Note():
                return await self._respond(command, asker)
            case grammar.ListIncidents():
                return answers.incidents(await self._engine.views.list(OPEN, LISTED))
            case grammar.Show():
                return await self._show(command, asker)
            case grammar.Why():
                return await self._why(command, asker)
            case grammar.Open():
                return await self._open(command, asker)
            case (
                override_text.SetOverride()
                | override_text.OverrideForm()
                | override_text.Stranger()
                | override_text.ListOverrides()
                | override_text.CancelOverride()
            ):
                return await self._overrides.do(command, asker)
            case StartMaintenance() | EndMaintenance() | ListMaintenance():
                return await self._maintenance.do(command, asker)
            case grammar.Status():
                return await self._status()
            case grammar.Help():
                return about.help_on(command.topic)
            case grammar.Unknown():
                return await self._unknown(command)

    async def _unknown(self, command: grammar.Unknown) -> Message:
        """A first word that is no verb may still name a schedule, and what is asked of it."""
        directory = await self._engine.roster.directory()
        known = [schedule.name.casefold() for schedule in directory.schedules.values()]
        if command.who is not None and command.who.name in known:
            return await self._who.who(command.who)
        suggestion = command.suggestion
        if suggestion is None:
            near = get_close_matches(command.words, known, n=1)
            suggestion = escape.line(near[0], 60) if near else None
        return about.unknown(command.words, suggestion)

    async def _respond(self, command: Respond, asker: Asker) -> Message:
        person = await self._identity.person(asker)
        actor = actor_of(person, asker)
        act = await self._act(command, actor)
        results: list[Answer | str] = []
        for number in command.numbers:
            found = await self._engine.responder.find(number)
            if found is None:
                results.append(f"❔ There is no incident #{number}.")
                continue
            try:
                results.append(await act(found))
            except MidwatchError as error:  # the others were done, so each says its own
                results.append(f"❌ #{number} was NOT changed: {escape.line(str(error), 300)}")
        if not command.numbers:
            results.append(await act(await self._of_thread(asker)))
        return answers.done(results)

    async def _act(self, command: Respond, actor: Actor) -> Callable[[int], Awaitable[Answer]]:
        responder = self._engine.responder
        if isinstance(command, grammar.Merge):
            into = await responder.find(command.into)
            if into is None:
                raise NotFound(f"There is no incident #{command.into}.")
            return lambda incident_id: responder.merge(incident_id, actor, into)
        if isinstance(command, grammar.Snooze):
            until = command.span.end
            return lambda incident_id: responder.snooze(incident_id, actor, until)
        if isinstance(command, grammar.Note):
            text = command.text
            return lambda incident_id: responder.note(incident_id, actor, text)
        deed = {
            "ack": responder.acknowledge,
            "resolve": responder.resolve,
            "unack": responder.unacknowledge,
            "reopen": responder.reopen,
            "escalate": responder.escalate,
            "unmerge": responder.unmerge,
        }[command.verb]
        return lambda incident_id: deed(incident_id, actor)

    async def _of_thread(self, asker: Asker) -> int:
        """The incident whose card's thread this was said in."""
        if asker.thread_ts:
            async with self._engine.database.snapshot() as tx:
                card = await cards.by_message(tx, ORG, asker.channel_id, asker.thread_ts)
            if card is not None:
                return card.incident_id
        raise BadCommand(
            "Name the incident by its number, for example `/oncall ack 42`; `/oncall list` shows them."
        )

    async def _show(self, command: grammar.Show, asker: Asker) -> Message:
        if len(command.numbers) > 1:
            raise BadCommand("One at a time: `/oncall show 42`.")
        if command.numbers:
            view = await self._engine.views.by_number(command.numbers[0])
        else:
            view = await self._engine.views.incident(await self._of_thread(asker))
        if view is None:
            raise NotFound(f"There is no incident #{command.numbers[0]}." if command.numbers else None)
        return answers.shown(blocks.card(view), await self._engine.views.timeline(view.id))

    async def _why(self, command: grammar.Why, asker: Asker) -> Message:
        if len(command.numbers) > 1:
            raise BadCommand("One at a time: `/oncall why 42`.")
        number = command.numbers[0] if command.numbers else await self._number_of_thread(asker)
        tale = await self._engine.views.tale(number)
        if tale is None:
            raise NotFound(f"There is no incident #{number}.")
        people = (await self._engine.roster.directory()).people
        return answers.story(tale.view, story(tale, {one.id: one.name for one in people.values()}))

    async def _number_of_thread(self, asker: Asker) -> int:
        view = await self._engine.views.incident(await self._of_thread(asker))
        if view is None:
            raise NotFound
        return view.number

    async def _open(self, command: grammar.Open, asker: Asker) -> Message:
        person = await self._identity.person(asker)
        directory = await self._engine.roster.directory()
        service_id, title = service_and_title(command.words, directory)
        incident_id, created = await self._engine.receiver.open_by_hand(
            ORG, service_id, title[:TITLE_MAX], None, actor_of(person, asker)
        )
        view = await self._engine.views.incident(incident_id)
        if view is None:
            raise NotFound
        held_until = await self._engine.maintenance.held_until(service_id)
        pages = paged_first(view, directory, self._engine.clock.now())
        return answers.opened(view, created=created, pages=pages, held_until=held_until)

    async def _status(self) -> Message:
        roster, views = self._engine.roster, self._engine.views
        still_open = await views.list(OPEN, LISTED)
        directory, rows = await roster.directory(), await roster.who()
        now = self._engine.clock.now()
        silent = self._engine.silent()
        windows = len(await self._engine.maintenance.list())
        ahead = await standing(self._engine.database)
        dead = await self._engine.letters.count()
        return about.status(
            self._health,
            directory,
            rows,
            len(still_open),
            silent,
            now,
            windows=windows,
            ahead=ahead,
            dead=dead,
            watch=self._engine.slack_watch,
        )
