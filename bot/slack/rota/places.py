"""`/oncall schedule group` and `/oncall schedule topic`: where Slack shows who is on call.

Never sets a group or a topic itself; the engine keeps what is wanted, and `showing` shows it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from bot.slack import escape, names
from bot.slack.grammar.typed import folded, plainly, tidy
from bot.slack.identity import Asker, Identity, actor_of
from bot.slack.message import Message, note
from engine.errors import BadCommand
from engine.rota.places import Places
from engine.rota.roster import Roster

GROUP_FORM: Final = "`/oncall schedule group payments @payments-oncall`, or `off` in place of the group"
TOPIC_FORM: Final = "`/oncall schedule topic payments on`, or `off`"
OFF: Final = frozenset({"off", "none", "no"})

_MENTION: Final = re.compile(r"<!subteam\^(S[A-Z0-9]{2,30})(?:\|@?([^>]+))?>")
_PLAIN: Final = re.compile(r"@([a-z0-9][a-z0-9._-]{0,79})|(S[A-Z0-9]{6,30})")


@dataclass(frozen=True, slots=True)
class InGroup:
    """`group` None: in none."""

    schedule: str
    group: str | None


@dataclass(frozen=True, slots=True)
class InTopic:
    schedule: str
    on: bool


def parse(raw: str) -> InGroup | InTopic:
    """group or topic, the schedule's name, and what about it."""
    noun, *words = tidy(raw).split()
    of_group = folded(noun) == "group"
    form = GROUP_FORM if of_group else TOPIC_FORM
    if len(words) < 2:
        raise BadCommand(f"Name the schedule and what about it: {form}.")
    name, last = plainly(" ".join(words[:-1])).strip("\"'“”` "), words[-1]
    if of_group:
        return InGroup(name, None if folded(last) in OFF else _group(last))
    if folded(last) not in {"on", *OFF}:
        raise BadCommand(f"Say on or off: {form}.")
    return InTopic(name, folded(last) == "on")


def _group(typed: str) -> str:
    """As Slack made a mention of it, or as it is called."""
    mentioned = _MENTION.fullmatch(typed)
    if mentioned:
        return f"@{mentioned[2].lower()}" if mentioned[2] else mentioned[1]
    plain = _PLAIN.fullmatch(plainly(typed))
    if plain is None:
        raise BadCommand(f"{escape.code(plainly(typed), 60)} is no user group: {GROUP_FORM}.")
    return plain[0]


class PlaceCommand:
    def __init__(self, places: Places, roster: Roster, identity: Identity) -> None:
        self._places = places
        self._roster = roster
        self._identity = identity

    async def run(self, typed: str, asker: Asker) -> Message | None:
        command = parse(typed)
        person = await self._identity.person(asker)
        named = names.schedule(command.schedule, await self._roster.directory())
        actor, name = actor_of(person, asker), f"*{escape.line(named.name, 80)}*"
        if isinstance(command, InGroup):
            await self._places.group(named.id, command.group, actor)
            if command.group is None:
                return note(f"✅ No user group follows {name} any more; who is in it now stays in it.")
            group = escape.line(command.group, 80)
            return note(
                f"✅ {group} holds whoever is on call on {name}, from now on: whoever else is in it is taken "
                "out, and it is never emptied. What keeps Slack from it is told in the schedule's channel."
            )
        done = await self._places.topic(named.id, command.on, actor)
        where = escape.line(done.channel or "", 80)
        if command.on:
            return note(f"✅ The topic of {where} says who is on call on {name}; the rest of it is yours.")
        return note(f"✅ {name} is taken out of the topic of {where}." if where else f"✅ {name}: no topic.")
