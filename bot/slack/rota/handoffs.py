"""The Accept button of a handoff, and which reminders a person wants.

Never acks and never sends; the engine says who may accept.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bot.slack import escape
from bot.slack.grammar.typed import folded
from bot.slack.identity import Asker, Identity, actor_of
from bot.slack.message import Message, note
from engine.errors import BadCommand, Refused
from engine.rota.handoff import Handoffs
from engine.rota.reminders import Choices
from engine.rota.shift_plan import Reminder

NOUN: Final = "handoff"  # the first word of the action ids of its buttons
FORM: Final = "`/oncall me reminders off [24h|1h|start|end]`, or `on`"
STALE: Final = "I cannot tell which handoff this button belongs to. `/oncall who` shows who is on call."
KINDS: Final[Mapping[str, Reminder]] = {
    "24h": Reminder.DAY, "day": Reminder.DAY, "1h": Reminder.HOUR, "hour": Reminder.HOUR,
    "start": Reminder.START, "starts": Reminder.START, "end": Reminder.END, "ends": Reminder.END,
}  # fmt: skip
WORDS: Final[Mapping[Reminder, str]] = {
    Reminder.DAY: "24 h before a shift", Reminder.HOUR: "1 h before", Reminder.START: "when it starts",
    Reminder.END: "when it ends",
}  # fmt: skip
_NUMBER: Final = re.compile(r"\d{1,15}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reminders:
    """Turn kinds of reminders on or off; without kinds they are only shown."""

    kinds: tuple[Reminder, ...] = ()
    on: bool = False


def parse_reminders(raw: str) -> Reminders:
    """ "reminders off 24h": what follows `me`."""
    _, *typed = folded(raw).split()
    if not typed:
        return Reminders()
    if typed[0] not in {"on", "off"}:
        raise BadCommand(f"Say on or off: {FORM}.")
    named = [word for word in typed[1:] if word not in {"all", "and"}]
    strange = next((word for word in named if word not in KINDS), None)
    if strange is not None:
        raise BadCommand(f"There are no reminders {escape.code(strange, 40)}: {FORM}.")
    kinds = tuple(dict.fromkeys(KINDS[word] for word in named)) or tuple(Reminder)
    return Reminders(kinds, typed[0] == "on")


class HandoffButtons:
    """Clicks on Accept, and `/oncall me reminders`."""

    def __init__(self, handoffs: Handoffs, choices: Choices, identity: Identity) -> None:
        self._handoffs = handoffs
        self._choices = choices
        self._identity = identity

    async def click(self, body: Mapping[str, Any], asker: Asker) -> Message | None:
        """None: the post itself will show it."""
        value = _NUMBER.fullmatch(str(body["actions"][0].get("value") or ""))
        if value is None:
            raise BadCommand(STALE)
        actor = actor_of(await self._identity.person(asker), asker)
        answer = await self._handoffs.accept(int(value[0]), actor)
        if not answer.changed:
            raise Refused(answer.text)
        return None

    async def me(self, typed: str, asker: Asker) -> Message:
        """What follows `me`: which reminders the person asking wants."""
        command = parse_reminders(typed)
        person = await self._identity.person(asker)
        if not command.kinds:
            return shown(await self._choices.of(person.id))
        return shown(await self._choices.turn(person.id, command.kinds, on=command.on))


def shown(on: Collection[Reminder]) -> Message:
    if not on:
        return note(f"🔕 You get no reminders of your shifts. Pages come all the same. {FORM}")
    return note(f"🔔 You are reminded of your shifts {', '.join(WORDS[kind] for kind in on)}. {FORM}")
