"""Cover as people type and click it, done: asked for, taken, declined, listed, taken back.

Never acks and never sends; the engine asks people, and decides who has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from bot.slack import names, words
from bot.slack.grammar.cover_text import AskCover, Command, ListCovers, parse
from bot.slack.identity import Asker, Identity, actor_of
from bot.slack.message import Message
from bot.slack.rota.cover_answers import asked, listed, said
from engine.clock import Clock
from engine.errors import BadCommand, Refused
from engine.parts import Part
from engine.rota.cover import Cover
from engine.rota.cover_words import ALL, DECLINE
from engine.rota.roster import Roster

NOUN: Final = "cover"  # the first word of the action ids of its buttons
STALE: Final = "I cannot tell which request this button belongs to. `/oncall cover list` shows what is open."

_VALUE: Final = re.compile(rf"(\d{{1,15}}):(?:{ALL}|(\d{{1,12}}):(\d{{1,12}}))", re.ASCII)


class CoverCommand:
    """Does what was typed or clicked, and says what came of it."""

    def __init__(self, cover: Cover, roster: Roster, identity: Identity, clock: Clock) -> None:
        self._cover = cover
        self._roster = roster
        self._identity = identity
        self._clock = clock

    async def run(self, typed: str, asker: Asker) -> Message:
        """What follows `cover`, read on the asker's own clock."""
        reader = await self._identity.reader(asker)
        zone = words.zone_of(reader.timezone if reader else "UTC")
        return await self.do(parse(typed, self._clock.now(), zone), asker)

    async def do(self, command: Command, asker: Asker) -> Message:
        if isinstance(command, ListCovers):
            return listed(await self._cover.list())
        person = await self._identity.person(asker)
        actor = actor_of(person, asker)
        if isinstance(command, AskCover):
            span = command.span
            schedule_id = await self._schedule_id(command.schedule)
            done = await self._cover.ask(schedule_id, span.start, span.end, actor)
            return asked(done, span.guessed)
        if command.verb == "cancel":
            return said(await self._cover.withdraw(command.number, actor))
        if command.verb == "decline":
            return said(await self._cover.decline(command.number, actor))
        part = None if command.span is None else Part(command.span.start, command.span.end)
        return said(await self._cover.accept(command.number, part, actor))

    async def _schedule_id(self, name: str | None) -> int | None:
        return None if name is None else names.schedule(name, await self._roster.directory()).id

    async def click(self, body: Mapping[str, Any], asker: Asker) -> Message:
        """A button under a question. What it did takes the question's place."""
        action = body["actions"][0]
        value = _VALUE.fullmatch(str(action.get("value") or ""))
        if value is None:
            raise BadCommand(STALE)
        actor = actor_of(await self._identity.person(asker), asker)
        number = int(value[1])
        if action["action_id"] == DECLINE:
            answer = await self._cover.decline(number, actor)
        else:
            part = Part(_instant(value[2]), _instant(value[3])) if value[2] else None
            answer = await self._cover.accept(number, part, actor)
        if not answer.changed:
            raise Refused(answer.text)
        return said(answer)


def _instant(seconds: str) -> datetime:
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        raise BadCommand(STALE) from None
