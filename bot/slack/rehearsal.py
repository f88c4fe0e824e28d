"""`/oncall test outage`: rehearses an outage of Slack for one schedule, after a second look.

Decides nothing: who may, and what becomes of it, `engine.pager.rehearsal` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bot.slack import escape
from bot.slack.grammar.typed import plainly, tidy
from bot.slack.identity import Asker, Identity, actor_of
from bot.slack.message import Message, actions, button, note, section
from engine.errors import BadCommand
from engine.pager.rehearsal import Rehearsals

START: Final = "rehearse_start"
FORM: Final = "`/oncall test outage` or `/oncall test outage payments`"


class RehearsalCommand:
    def __init__(self, rehearsals: Rehearsals, identity: Identity) -> None:
        self._rehearsals = rehearsals
        self._identity = identity

    async def ask(self, typed: str, asker: Asker) -> Message:
        what, _, name = plainly(tidy(typed)).partition(" ")
        if what.casefold() != "outage":
            raise BadCommand(
                f"What shall be tested? {FORM} rehearses that Slack is down, `/oncall me test` tries "
                "how you are reached."
            )
        schedule = await self._rehearsals.plan(name.strip() or None, await self._identity.person(asker))
        shown = escape.line(schedule.name, 60)
        text = (
            f"This pages whoever is on call on *{shown}* by SMS and call, as if Slack were down. Other "
            "incidents are not touched. It ends when somebody answers, and before the next level is paged."
        )
        start = button(START, "Rehearse now", schedule.name[:2000], "danger")
        return Message(text, (section(text), actions("rehearse", [start])))

    async def start(self, body: Mapping[str, Any], asker: Asker) -> Message:
        person = await self._identity.person(asker)
        name = str(body["actions"][0]["value"])
        view = await self._rehearsals.start(name, person, actor_of(person, asker))
        return note(f"🎭 #{view.number} rehearses an outage; its thread says what arrived.")
