"""`/oncall schedule`: make, edit, show, delete, list. What opens a form is in modals/schedule*.

Never saves; showing puts the picture into the channel, and the same in words for whoever asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import structlog

from bot.picture.draw import draw
from bot.picture.png import rendered
from bot.slack import escape, names
from bot.slack.client import SlackClient
from bot.slack.errors import Kind, trouble_of
from bot.slack.grammar.typed import folded, plainly, tidy
from bot.slack.identity import Asker, Identity, actor_of
from bot.slack.message import Message
from bot.slack.modals.opening import Modals
from bot.slack.modals.schedule import ScheduleForm
from bot.slack.modals.schedule_delete import ScheduleDeleteForm
from bot.slack.rota import schedule_text
from bot.slack.uploads import NotTaken, upload
from engine.clock import Clock
from engine.directory import Directory, NamedSchedule
from engine.errors import BadCommand, NotFound
from engine.rota.roster import Roster
from engine.rota.schedules import Schedules, check_unused

log = structlog.get_logger(__name__)

FORM: Final = "`/oncall schedule new`, or `edit`, `show`, `delete` and the schedule's name, or `list`"


class Verb(StrEnum):
    NEW = "new"
    EDIT = "edit"
    SHOW = "show"
    DELETE = "delete"
    LIST = "list"


SYNONYMS: Final[Mapping[str, Verb]] = {
    **{verb.value: verb for verb in Verb},
    "create": Verb.NEW, "add": Verb.NEW, "make": Verb.NEW, "change": Verb.EDIT, "picture": Verb.SHOW,
    "view": Verb.SHOW, "remove": Verb.DELETE, "rm": Verb.DELETE, "ls": Verb.LIST, "": Verb.LIST,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ScheduleDeed:
    """`name` is the schedule's, as typed; empty where it goes without saying."""

    verb: Verb
    name: str


def parse(raw: str) -> ScheduleDeed:
    """The verb, then the name; a name alone shows that schedule."""
    said = plainly(tidy(raw))
    first, _, rest = said.partition(" ")
    verb = SYNONYMS.get(folded(first))
    name = said if verb is None else rest
    return ScheduleDeed(verb or Verb.SHOW, name.strip().strip("\"'“”`"))


class ScheduleCommand:
    """Does what was typed, and says what came of it."""

    def __init__(
        self,
        clock: Clock,
        client: SlackClient,
        identity: Identity,
        roster: Roster,
        schedules: Schedules,
        modals: Modals,
    ) -> None:
        self._clock = clock
        self._client = client
        self._identity = identity
        self._roster = roster
        self._schedules = schedules
        self._modals = modals

    async def run(self, typed: str, asker: Asker) -> Message | None:
        """Read and do what stands behind the verb; None where a form stands open now."""
        return await self.do(parse(typed), asker)

    async def do(self, command: ScheduleDeed, asker: Asker) -> Message | None:
        directory = await self._roster.directory()
        if command.verb is Verb.LIST:
            return await self._list(asker, directory)
        if command.verb is Verb.NEW:
            return await self._new(command, asker, directory)
        named = _meant(command, directory)
        if command.verb is Verb.SHOW:
            await self._identity.reader(asker)
            return await self._show(named, asker, directory)
        actor = actor_of(await self._identity.person(asker), asker)
        current = await self._schedules.open(named.id, actor)  # refuses before a form is opened
        if command.verb is Verb.EDIT:
            return await self._modals.open(asker, ScheduleForm.name, {"id": named.id})
        check_unused(directory, current.named)
        return await self._modals.open(asker, ScheduleDeleteForm.name, {"id": named.id})

    async def _list(self, asker: Asker, directory: Directory) -> Message:
        await self._identity.reader(asker)
        rows = [
            (row, directory.schedules[row.schedule_id].schedule)
            for row in await self._roster.who()
            if row.schedule_id in directory.schedules
        ]
        return schedule_text.listed(rows)

    async def _new(self, command: ScheduleDeed, asker: Asker, directory: Directory) -> Message | None:
        await self._identity.person(asker)
        for named in directory.schedules.values():
            if command.name and named.name.casefold() == command.name.casefold():
                shown = escape.line(named.name, 80)
                raise BadCommand(f"There is a schedule *{shown}* already: `/oncall schedule edit {shown}`.")
        return await self._modals.open(asker, ScheduleForm.name, {"new": command.name[:80]})

    async def _show(self, named: NamedSchedule, asker: Asker, directory: Directory) -> Message:
        now = self._clock.now()
        called = {str(person.id): person.name for person in directory.people.values()}
        words = schedule_text.alternative(named, directory.people, now)
        paged = bool(directory.policies_paging(named.id))
        try:
            # Why a copy: what the resolver works out about a schedule is kept in it, and this is a thread.
            of = replace(named.schedule)
            picture = await asyncio.to_thread(lambda: rendered(draw(named.name, of, called, now)))
            await self._put(named.name, picture, words, asker)
        except Exception as error:
            why = _why(error)
            log.warning("schedule.not_pictured", code=trouble_of(error).code)
            return schedule_text.shown(named, directory.people, now, why, paged=paged)
        return schedule_text.shown(named, directory.people, now, "", paged=paged)

    async def _put(self, name: str, picture: bytes, words: str, asker: Asker) -> None:
        """Where it was asked; where the bot may not write, to whoever asked."""
        file = {"filename": "schedule.png", "title": name, "alt": words}
        try:
            await upload(self._client, asker.channel_id, picture, thread_ts=asker.thread_ts, **file)
        except Exception as error:
            trouble = trouble_of(error)
            if trouble.kind is not Kind.DEAD:
                raise
            direct = await self._client.direct(asker.user_id)
            await upload(self._client, direct, picture, **file)


def _meant(command: ScheduleDeed, directory: Directory) -> NamedSchedule:
    found = list(directory.schedules.values())
    if not found:
        raise NotFound("There is no schedule yet. Make one with `/oncall schedule new`.")
    if not command.name:
        if len(found) == 1:
            return found[0]
        listed = ", ".join(escape.code(one.name, 60) for one in found[:20])
        raise BadCommand(f"Say which schedule: `/oncall schedule {command.verb} NAME`. There are: {listed}.")
    return names.schedule(command.name, directory)


def _why(error: Exception) -> str:
    trouble = trouble_of(error)
    if isinstance(error, NotTaken):
        return "No picture: Slack did not take the upload. Try again in a minute."
    if trouble.kind is Kind.SCOPE:
        needed = escape.code(trouble.needed or "files:write")
        return (
            f"No picture: Slack wants the scope {needed}. An admin reinstalls the app from `manifest.yaml`."
        )
    return f"No picture: it could not be uploaded ({escape.line(trouble.code, 60)})."
