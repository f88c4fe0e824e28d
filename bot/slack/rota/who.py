"""Who is on call, and the shifts to come: found for whoever asks.

Never works anything out by itself, and never sends; the roster answers.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from bot.slack import answers, names
from bot.slack.grammar.who_text import Shifts, Who
from bot.slack.identity import Asker, Identity
from bot.slack.message import Message, note
from bot.slack.rota import shift_answers
from engine.clock import Clock
from engine.directory import Directory, Person
from engine.rota.on_call import OnCallNow, ShiftsOf
from engine.rota.roster import Roster
from engine.schedule.skipped import skipped_windows

SOON: Final = timedelta(days=14)
OWN: Final = timedelta(days=28)
_HORIZONS: Final = (timedelta(days=30), timedelta(days=366))


class WhoCommand:
    def __init__(self, roster: Roster, identity: Identity, clock: Clock) -> None:
        self._roster = roster
        self._identity = identity
        self._clock = clock

    async def who(self, command: Who) -> Message:
        directory = await self._roster.directory()
        if command.slack_user_id is not None:
            return await self._of_person(command, await self._identity.mentioned(command.slack_user_id))
        ids = self._ids(command.name, directory)
        if command.following is not None:
            found = await self._following(command, ids, command.following)
            return shift_answers.following(found, command.following) if found else answers.on_call([])
        rows = [row for row in await self._roster.who(command.at) if ids is None or row.schedule_id in ids]
        message = answers.on_call(rows, command.at) if rows or command.at is None else _nothing_then()
        return self._with_skipped(message, rows, directory, command.at or self._clock.now())

    async def shifts(self, command: Shifts, asker: Asker) -> Message:
        now = self._clock.now()
        if command.name is None:
            person = await self._person(command, asker)
            start, end = _window(command, now, OWN)
            return shift_answers.of_person(person, await self._roster.shifts(start, end), start, end)
        ids = self._ids(command.name, await self._roster.directory())
        start, end = _window(command, now, SOON)
        found = [
            one for one in await self._roster.shifts(start, end) if ids is None or one.schedule_id in ids
        ]
        return shift_answers.of_schedules(found, start, end)

    async def _person(self, command: Shifts, asker: Asker) -> Person:
        if command.slack_user_id is not None:
            return await self._identity.mentioned(command.slack_user_id)
        return await self._identity.person(asker)

    async def _of_person(self, command: Who, person: Person) -> Message:
        if command.following is None:
            return answers.on_call_of(person, await self._roster.who(command.at), command.at)
        start = command.at or self._clock.now()
        end = start + _HORIZONS[-1]
        found = await self._roster.shifts(start, end)
        return shift_answers.next_of_person(person, found, command.following)

    async def _following(self, command: Who, ids: set[int] | None, count: int) -> list[ShiftsOf]:
        """Looked for in a month first: most shifts are near."""
        start = command.at or self._clock.now()
        found: list[ShiftsOf] = []
        for horizon in _HORIZONS:
            all_ = await self._roster.shifts(start, start + horizon)
            found = [one for one in all_ if one.shifts and (ids is None or one.schedule_id in ids)]
            if all(len(one.shifts) > count + 1 for one in found):
                break
        return found

    def _ids(self, name: str | None, directory: Directory) -> set[int] | None:
        """Of the schedules that are meant; None for all of them."""
        if name is None or not directory.schedules:
            return None
        if name.startswith("@"):
            people = [person.name for person in directory.people.values() if person.active]
            raise names.nobody(name.removeprefix("@"), people)
        return {one.id for one in names.schedules(name, directory)}

    def _with_skipped(
        self, message: Message, rows: list[OnCallNow], directory: Directory, at: datetime
    ) -> Message:
        """With the hours that the clock will skip, a fortnight ahead."""
        lines = [
            f"{shift_answers.skipped_line(one)} ({row.schedule})"
            for row in rows
            if row.schedule_id in directory.schedules
            for one in skipped_windows(directory.schedules[row.schedule_id].schedule, at, at + SOON)
        ]
        if not lines:
            return message
        shown = answers.paragraphs(lines[:10])
        return Message(f"{message.text}\n{shown.text}"[:3000], (*message.blocks, *shown.blocks))


def _window(command: Shifts, now: datetime, usual: timedelta) -> tuple[datetime, datetime]:
    if command.span is None:
        return now, now + usual
    return command.span.start, command.span.end


def _nothing_then() -> Message:
    return note("There was no schedule at that time.")
