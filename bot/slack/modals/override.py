"""The form of an override: on which schedule, who, when in the words of the grammar, and how.

Never saves what it had to guess before it was shown and confirmed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from bot.slack import words
from bot.slack.escape import cut
from bot.slack.grammar.times import FORMS, Span, read_interval
from bot.slack.identity import Asker, Identity
from bot.slack.message import Block, context, option, plain_text, section
from bot.slack.modals.opening import About, Done, Json, View, Wrong
from bot.slack.modals.values import Values, text
from bot.slack.rota.override_answers import Proposal, echo_lines, proposal_of
from bot.slack.rota.overrides import FORM, OverrideCommand, may_be_meant
from engine.clock import Clock
from engine.directory import NamedSchedule, Person
from engine.errors import BadCommand, BadInput, NotFound, Refused
from engine.rota.roster import Roster
from engine.schedule import OverrideKind

TITLE: Final = "Override"
KINDS: Final = {
    OverrideKind.REPLACE_ALL.value: "Alone, in place of whoever is on call",
    OverrideKind.COVER.value: "In place of one person, in that person's turns",
    OverrideKind.ADD.value: "In addition to whoever is on call",
}
OPTIONS_MOST: Final = 100


class OverrideModal:
    name = FORM

    def __init__(self, command: OverrideCommand, roster: Roster, identity: Identity, clock: Clock) -> None:
        self._command = command
        self._roster = roster
        self._identity = identity
        self._clock = clock

    async def view(self, asker: Asker, about: About) -> View:
        person = await self._identity.person(asker)
        known = may_be_meant(None, await self._roster.directory())
        return View(TITLE, _inputs(known[:OPTIONS_MOST], person), submit="Set")

    async def press(self, action: Json, values: Values, asker: Asker, about: About) -> View | None:
        """Nothing in it is to be pressed."""
        return None

    async def submit(self, values: Values, asker: Asker, about: About) -> View | Wrong | Done:
        asking = await self._identity.person(asker)
        if "value" in about:
            proposal = replace(proposal_of(str(about["value"])), asker_id=asking.id)
            return Done(await self._command.save(proposal, asking, asker))
        return await self._first(values, asking, asker)

    async def _first(self, values: Values, asking: Person, asker: Asker) -> View | Wrong | Done:
        directory = await self._roster.directory()
        named = directory.schedules.get(int(text(values, "schedule") or 0))
        if named is None:
            return Wrong({"schedule": "This schedule was deleted meanwhile; nothing was changed."})
        errors: dict[str, str] = {}
        span = self._span(values, asking, errors)
        person = await self._somebody(values, "person", errors)
        covers = await self._covers(values, errors)
        if covers is not None and covers == person:
            errors["covers"] = "Nobody takes over from themselves."
        if errors or span is None or person is None:
            return Wrong(errors)
        kind = text(values, "kind")
        covers_id = covers.id if covers else None
        proposal = Proposal(person.id, span.start, span.end, asking.id, kind, covers_id, named.id)
        if not span.guessed:
            return Done(await self._command.save(proposal, asking, asker))
        lines = echo_lines(self._command.about(proposal, [named], directory, span.guessed))
        blocks = [*map(section, lines), context("Nothing is saved yet.")]
        return View(TITLE, blocks, {"value": proposal.value()}, submit="Confirm")

    def _span(self, values: Values, asking: Person, errors: dict[str, str]) -> Span | None:
        try:
            zone = words.zone_of(asking.timezone)
            return read_interval(text(values, "when"), self._clock.now(), zone)
        except BadCommand as wrong:
            errors["when"] = str(wrong).replace("`", '"')
            return None

    async def _somebody(self, values: Values, block_id: str, errors: dict[str, str]) -> Person | None:
        try:
            return await self._identity.mentioned(text(values, block_id))
        except (Refused, NotFound, BadInput) as wrong:
            errors[block_id] = str(wrong).replace("`", '"')
            return None

    async def _covers(self, values: Values, errors: dict[str, str]) -> Person | None:
        if text(values, "kind") != OverrideKind.COVER.value:
            return None
        if not text(values, "covers"):
            errors["covers"] = "Say whose turns are taken over."
            return None
        return await self._somebody(values, "covers", errors)


def _inputs(known: Sequence[NamedSchedule], person: Person) -> list[Block]:
    schedules = [option(cut(one.name, 70), str(one.id)) for one in known]
    kinds = [option(label, kind) for kind, label in KINDS.items()]
    which: Block = {"type": "static_select", "action_id": "in", "options": schedules}
    if len(schedules) == 1:
        which["initial_option"] = schedules[0]
    who: Block = {"type": "users_select", "action_id": "in"}
    if person.slack_user_id:
        who["initial_user"] = person.slack_user_id
    when: Block = {
        "type": "plain_text_input",
        "action_id": "in",
        "max_length": 120,
        "placeholder": plain_text("2h, or: tomorrow 9am to 5pm"),
    }
    hint = f"On your own clock, {person.timezone}. {FORMS.replace('`', '')}"
    how: Block = {"type": "static_select", "action_id": "in", "options": kinds, "initial_option": kinds[0]}
    covers: Block = {"type": "users_select", "action_id": "in"}
    return [
        _input("schedule", "Schedule", which),
        _input("person", "Who takes over", who),
        {**_input("when", "When", when), "hint": plain_text(hint)},
        _input("kind", "How", how),
        {**_input("covers", "In place of whom (only for one person's turns)", covers), "optional": True},
    ]


def _input(block_id: str, label: str, element: Block) -> Block:
    return {"type": "input", "block_id": block_id, "label": plain_text(label), "element": element}
