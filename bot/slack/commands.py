"""What a command does: find what it names, call the engine, say what came of it.

Never acks and never talks to Slack besides asking who somebody is; `listeners` do that. Every
failure leaves here as an error of the engine's tree, or as whatever it was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from typing import Final
from zoneinfo import ZoneInfo

from bot.slack import about, answers, blocks, escape, grammar, maintenance, names, words
from bot.slack.health import SlackHealth
from bot.slack.identity import Asker, Identity, actor_of
from bot.slack.message import Message
from bot.slack.names import no_such
from engine.clock import Clock
from engine.db import Database
from engine.directory import Directory, Override
from engine.errors import BadCommand, MidwatchError, NotFound
from engine.models import ORG, Actor, IncidentStatus
from engine.pager.maintenance import Maintenance
from engine.pager.receive import Receiver
from engine.pager.respond import Answer, Responder
from engine.pager.roster import Roster
from engine.pager.views import Views
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


class Commands:
    def __init__(self, engine: Engine, identity: Identity, health: SlackHealth) -> None:
        self._engine = engine
        self._identity = identity
        self._health = health
        self._maintenance = maintenance.MaintenanceCommand(engine.maintenance, engine.roster, identity)

    async def run(self, name: str, text: str, asker: Asker) -> Message:
        """Read and do one command: `name` is the slash command, or "/oncall" for a mention."""
        zone = await self._zone(asker)
        now = self._engine.clock.now()
        match name:
            case "/override":
                command = grammar.parse_override(text, now, zone)
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

    async def _do(self, command: grammar.Command, asker: Asker) -> Message:
        match command:
            case grammar.Who():
                return await self._who(command)
            case grammar.Deed() | grammar.Snooze() | grammar.Merge() | grammar.Note():
                return await self._respond(command, asker)
            case grammar.ListIncidents():
                return answers.incidents(await self._engine.views.list(OPEN, LISTED))
            case grammar.Show():
                return await self._show(command, asker)
            case grammar.Open():
                return await self._open(command, asker)
            case grammar.SetOverride():
                return await self._override(command, asker)
            case grammar.Stranger():
                raise await self._nobody(command.name)
            case grammar.ListOverrides():
                return await self._overrides(command)
            case grammar.CancelOverride():
                return await self._cancel_override(command, asker)
            case (
                maintenance.StartMaintenance() | maintenance.EndMaintenance() | maintenance.ListMaintenance()
            ):
                return await self._maintenance.do(command, asker)
            case grammar.Me():
                return about.me(await self._identity.enrol(asker))
            case grammar.Status():
                return await self._status()
            case grammar.Help():
                return about.help_on(command.topic)
            case grammar.Unknown():
                return await self._unknown(command)

    async def _who(self, command: grammar.Who) -> Message:
        rows = await self._engine.roster.who()
        if command.slack_user_id is not None:
            return answers.on_call_of(await self._identity.mentioned(command.slack_user_id), rows)
        if command.name is None or not rows:
            return answers.on_call(rows)
        if command.name.startswith("@"):
            raise await self._nobody(command.name.removeprefix("@"))
        wanted = command.name.casefold()
        named = [row for row in rows if row.schedule.casefold() == wanted]
        if not named:
            raise no_such("schedule", command.name, [row.schedule for row in rows])
        return answers.on_call(named)

    async def _unknown(self, command: grammar.Unknown) -> Message:
        """A first word that is no verb may still name a schedule."""
        rows = await self._engine.roster.who()
        if any(row.schedule.casefold() == command.words.casefold() for row in rows):
            return await self._who(grammar.Who(command.words))
        suggestion = command.suggestion
        if suggestion is None:
            near = get_close_matches(command.words, [row.schedule.casefold() for row in rows], n=1)
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

    async def _open(self, command: grammar.Open, asker: Asker) -> Message:
        person = await self._identity.person(asker)
        directory = await self._engine.roster.directory()
        service_id, title = _service_and_title(command.words, directory)
        incident_id, created = await self._engine.receiver.open_by_hand(
            ORG, service_id, title[:TITLE_MAX], None, actor_of(person, asker)
        )
        view = await self._engine.views.incident(incident_id)
        if view is None:
            raise NotFound
        held_until = await self._engine.maintenance.held_until(service_id)
        return answers.opened(view, created=created, held_until=held_until)

    async def _override(self, command: grammar.SetOverride, asker: Asker) -> Message:
        asking = await self._identity.person(asker)
        person = asking
        if command.slack_user_id is not None:
            person = await self._identity.mentioned(command.slack_user_id)
        directory = await self._engine.roster.directory()
        done = await self._engine.roster.override(
            schedule_id=_schedule_id(command.schedule, directory),
            person_id=person.id,
            start_at=command.span.start,
            end_at=command.span.end,
            actor=actor_of(asking, asker),
        )
        return answers.override_set(done, person, asking)

    async def _nobody(self, name: str) -> BadCommand:
        """Of @name that Slack did not make a mention of."""
        people = (await self._engine.roster.directory()).people.values()
        return names.nobody(name, [person.name for person in people if person.active])

    async def _overrides(self, command: grammar.ListOverrides) -> Message:
        directory = await self._engine.roster.directory()
        found = await self._engine.roster.overrides(_schedule_id(command.schedule, directory))
        return answers.overrides([(override, *_names(override, directory)) for override in found])

    async def _cancel_override(self, command: grammar.CancelOverride, asker: Asker) -> Message:
        person = await self._identity.person(asker)
        cancelled = await self._engine.roster.cancel_override(command.override_id, actor_of(person, asker))
        who = _names(cancelled, await self._engine.roster.directory())
        return answers.override_cancelled(cancelled, *who)

    async def _status(self) -> Message:
        roster, views = self._engine.roster, self._engine.views
        still_open = await views.list(OPEN, LISTED)
        directory, rows = await roster.directory(), await roster.who()
        now = self._engine.clock.now()
        silent = self._engine.silent()
        windows = len(await self._engine.maintenance.list())
        return about.status(self._health, directory, rows, len(still_open), silent, now, windows=windows)


def _names(override: Override, directory: Directory) -> tuple[str, str]:
    person = directory.people.get(override.person_id)
    schedule = directory.schedules.get(override.schedule_id)
    return person.name if person else "somebody", schedule.name if schedule else "a schedule"


def _schedule_id(name: str | None, directory: Directory) -> int | None:
    if name is None:
        return None
    for schedule in directory.schedules.values():
        if schedule.name.casefold() == name.casefold():
            return schedule.id
    raise no_such("schedule", name, [schedule.name for schedule in directory.schedules.values()])


def _service_and_title(said: str, directory: Directory) -> tuple[int, str]:
    """The longest name of a service that the words begin with, and the rest."""
    folded = said.casefold().replace('"', "")
    by_length = sorted(directory.services.values(), key=lambda service: -len(service.name))
    for service in by_length:
        name = service.name.casefold()
        if folded == name or folded.startswith(f"{name} "):
            title = said.replace('"', "")[len(name) :].strip()
            if not title:
                raise BadCommand(
                    f"Say what is wrong: `/page {escape.line(service.name, 60)} Disk full on db1`."
                )
            return service.id, title
    raise no_such("service", said.split()[0], [service.name for service in by_length])
