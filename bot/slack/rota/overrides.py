"""Overrides done: typed, or pressed under the echo of one that was guessed.

Never acks and never sends; the engine decides what an override does, and tells the people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from bot.slack import names
from bot.slack.grammar.override_text import (
    CancelOverride,
    Command,
    ListOverrides,
    OverrideForm,
    SetOverride,
    Stranger,
)
from bot.slack.identity import Asker, Identity, actor_of
from bot.slack.message import Message
from bot.slack.modals.opening import Modals
from bot.slack.rota import override_answers
from bot.slack.rota.override_answers import AS_LIST, DROP, UNDO, Echo, Proposal, chosen
from engine.clock import Clock
from engine.directory import Directory, NamedSchedule, Override, Person
from engine.errors import BadCommand, NotFound, Refused
from engine.rota.meant import by_name
from engine.rota.roster import Roster
from engine.schedule import OverrideKind, people_at

FORM: Final = "override"  # the modal


class OverrideCommand:
    def __init__(self, roster: Roster, identity: Identity, clock: Clock, modals: Modals) -> None:
        self._roster = roster
        self._identity = identity
        self._clock = clock
        self._modals = modals

    async def do(self, command: Command, asker: Asker) -> Message | None:
        match command:
            case OverrideForm():
                await self._identity.person(asker)
                return await self._modals.open(asker, FORM)
            case SetOverride():
                return await self._set(command, asker)
            case Stranger():
                people = (await self._roster.directory()).people.values()
                raise names.nobody(command.name, [person.name for person in people if person.active])
            case ListOverrides():
                return await self._list(command)
            case CancelOverride():
                return await self._cancel(command.override_id, asker)

    async def _set(self, command: SetOverride, asker: Asker) -> Message:
        asking = person = await self._identity.person(asker)
        if command.slack_user_id is not None:
            person = await self._identity.mentioned(command.slack_user_id)
        directory = await self._roster.directory()
        candidates = may_be_meant(command.schedule, directory)
        span = command.span
        proposal = Proposal(person.id, span.start, span.end, asking.id)
        if len(candidates) == 1 and not span.guessed:
            return await self.save(replace(proposal, schedule_id=candidates[0].id), asking, asker)
        return override_answers.echo(self.about(proposal, candidates, directory, span.guessed))

    def about(
        self,
        proposal: Proposal,
        candidates: Sequence[NamedSchedule],
        directory: Directory,
        guessed: Sequence[str],
    ) -> Echo:
        """What is shown of it before it is saved."""
        people = directory.people
        covers = people.get(proposal.covers_id or 0)
        replaced: list[Person] = []
        if len(candidates) == 1 and covers is None and proposal.kind == OverrideKind.REPLACE_ALL.value:
            on_call = people_at(candidates[0].schedule, max(proposal.start, self._clock.now()))
            replaced = [people[int(one)] for one in on_call if int(one) in people]
        others = [one for one in replaced if one.id != proposal.person_id]
        person, asking = people[proposal.person_id], people[proposal.asker_id]
        return Echo(proposal, person, asking, candidates, guessed, covers, others)

    async def save(self, proposal: Proposal, asking: Person, asker: Asker) -> Message:
        done = await self._roster.overrides.set(
            schedule_id=proposal.schedule_id,
            person_id=proposal.person_id,
            start_at=proposal.start,
            end_at=proposal.end,
            actor=actor_of(asking, asker),
            kind=proposal.kind,
            covers_id=proposal.covers_id,
        )
        person = (await self._roster.directory()).people[proposal.person_id]
        return override_answers.override_set(done, person, asking)

    async def click(self, body: Mapping[str, Any], asker: Asker) -> Message | None:
        """Confirm, a schedule, Cancel or Undo; what it did takes the place of the message."""
        action = body["actions"][0]
        picked = action.get("selected_option") or {}
        value = str(picked.get("value") or action.get("value") or "")
        if action["action_id"] == UNDO:
            if not value.isdecimal():
                raise BadCommand(override_answers.STALE)
            return await self._cancel(int(value), asker)
        asking = await self._identity.person(asker)
        drop = action["action_id"] == DROP
        proposal = chosen(str(action.get("block_id")), "0" if drop else value)
        if proposal.asker_id != asking.id:
            raise Refused("Only whoever asked for this override can confirm or cancel it.")
        return override_answers.dropped() if drop else await self.save(proposal, asking, asker)

    async def _list(self, command: ListOverrides) -> Message:
        directory = await self._roster.directory()
        wanted = None if command.schedule is None else may_be_meant(command.schedule, directory)
        found = await self._roster.overrides.listed()
        shown = [one for one in found if wanted is None or one.schedule_id in {each.id for each in wanted}]
        return override_answers.overrides([(override, *_names(override, directory)) for override in shown])

    async def _cancel(self, override_id: int, asker: Asker) -> Message:
        person = await self._identity.person(asker)
        cancelled = await self._roster.overrides.cancel(override_id, actor_of(person, asker))
        who = _names(cancelled, await self._roster.directory())
        return override_answers.override_cancelled(cancelled, *who)


def may_be_meant(name: str | None, directory: Directory) -> Sequence[NamedSchedule]:
    """The schedules among which the asker must choose; one is no question."""
    if not directory.schedules:
        raise NotFound("There is no schedule yet: `/oncall schedule new` makes one.")
    found = by_name(directory) if name is None else names.schedules(name, directory)
    if len(found) > AS_LIST:
        raise BadCommand(
            "Name the schedule: `/override payments @user 2h`. There are too many to choose from."
        )
    return found


def _names(override: Override, directory: Directory) -> tuple[str, str]:
    person = directory.people.get(override.person_id)
    schedule = directory.schedules.get(override.schedule_id)
    return person.name if person else "somebody", schedule.name if schedule else "a schedule"
