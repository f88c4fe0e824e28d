"""Overrides as messages: the echo before one is saved, what was saved, the list, what was taken back.

Never looks anything up and never sends. Times are absolute, on the wall clocks of both people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from bot.slack import escape, words
from bot.slack.answers import names, paragraphs
from bot.slack.message import Block, Message, actions, button, note, option, plain_text
from engine.clockwords import between
from engine.directory import NamedSchedule, Override, Person
from engine.errors import BadCommand
from engine.rota.overrides import OverrideSet
from engine.schedule import OverrideKind

NOUN: Final = "override"
SAVE: Final = "override_save"
PICK: Final = "override_pick"  # the schedule, from a list
DROP: Final = "override_drop"
UNDO: Final = "override_undo"
AS_BUTTONS: Final = 4  # schedules; with more they are a list
AS_LIST: Final = 100  # what a select of Slack holds
STALE: Final = "I cannot tell what this button is about. `/override list` shows what is set."


@dataclass(frozen=True, slots=True)
class Proposal:
    """An override that is not saved yet. It travels in its buttons, in whole seconds."""

    person_id: int
    start: datetime
    end: datetime
    asker_id: int
    kind: str = OverrideKind.REPLACE_ALL.value
    covers_id: int | None = None
    schedule_id: int | None = None

    def value(self) -> str:
        parts = (self.person_id, int(self.start.timestamp()), int(self.end.timestamp()), self.asker_id)
        return ".".join(map(str, (*parts, self.kind, self.covers_id or 0, self.schedule_id or 0)))


def proposal_of(value: str) -> Proposal:
    """The proposal that a button carries."""
    try:
        person, start, end, asker, kind, covers, schedule = value.split(".")
        return Proposal(
            int(person),
            datetime.fromtimestamp(int(start), UTC),
            datetime.fromtimestamp(int(end), UTC),
            int(asker),
            OverrideKind(kind).value,
            int(covers) or None,
            int(schedule) or None,
        )
    except (ValueError, OverflowError, OSError):
        raise BadCommand(STALE) from None


@dataclass(frozen=True, slots=True)
class Echo:
    """What is shown before it is saved. Several `schedules`: a question which of them."""

    proposal: Proposal
    person: Person
    asker: Person
    schedules: Sequence[NamedSchedule]
    guessed: Sequence[str] = ()
    covers: Person | None = None
    replaced: Sequence[Person] = ()


def echo(about: Echo) -> Message:
    lines = echo_lines(about)
    text = paragraphs(lines, footer="Nothing is saved yet.")
    return Message(text.text, (*text.blocks, _choices(about)))


def echo_lines(about: Echo) -> list[str]:
    """Exactly what would be done, and what was guessed."""
    proposal, person = about.proposal, about.person
    several = len(about.schedules) > 1
    where = "" if several else f" on *{escape.line(about.schedules[0].name, 80)}*"
    length = words.duration(proposal.end - proposal.start)
    asked = "❓ On which schedule? " if several else "❓ Is this meant? "
    span = between(proposal.start, proposal.end, about.asker.timezone)
    lines = [f"{asked}{_who(person)}{_how(proposal, about.covers)}{where} for {length}: {span}."]
    lines += _for_the_other(proposal.start, proposal.end, person, about.asker)
    if about.replaced:
        lines.append(f"In place of {names(about.replaced)}.")
    lines += [f"• {escape.line(one[:1].upper() + one[1:], 200)}." for one in about.guessed]
    return lines


def _how(proposal: Proposal, covers: Person | None) -> str:
    if proposal.kind == OverrideKind.ADD.value:
        return " is on call in addition"
    if covers is not None:
        return f" covers {_who(covers)}"
    return " is on call"


def _who(person: Person) -> str:
    return f"*{escape.line(person.name, 60)}*"


def _for_the_other(start: datetime, end: datetime, person: Person, asker: Person) -> list[str]:
    if person.id == asker.id or person.timezone == asker.timezone:
        return []
    return [f"For {escape.line(person.name, 60)} that is {between(start, end, person.timezone)}."]


def _choices(about: Echo) -> Block:
    """Buttons, or a list with a button. The block carries the proposal, each button its schedule."""
    drop = button(DROP, "Cancel", "drop")
    block_id = f"{NOUN}.{about.proposal.value()}"
    if len(about.schedules) == 1:
        save = button(SAVE, "Confirm", str(about.schedules[0].id), "primary")
        return actions(block_id, [save, drop])
    if len(about.schedules) <= AS_BUTTONS:
        picks = [button(f"{SAVE}_{one.id}", escape.cut(one.name, 70), str(one.id)) for one in about.schedules]
        return actions(block_id, [*picks, drop])
    options = [option(escape.cut(one.name, 70), str(one.id)) for one in about.schedules[:AS_LIST]]
    pick: Block = {
        "type": "static_select",
        "action_id": PICK,
        "placeholder": plain_text("Schedule"),
        "options": options,
    }
    return actions(block_id, [pick, drop])


def chosen(block_id: str, schedule_id: str) -> Proposal:
    """What was pressed under an echo."""
    noun, _, value = block_id.partition(".")
    if noun != NOUN or not schedule_id.isdecimal():
        raise BadCommand(STALE)
    return replace(proposal_of(value), schedule_id=int(schedule_id))


def override_set(done: OverrideSet, person: Person, asker: Person) -> Message:
    """Exactly what was done, on the wall clocks of both, and how to take it back."""
    override = done.override
    length = words.duration(override.end_at - override.start_at)
    how = " in addition" if override.kind == OverrideKind.ADD.value else ""
    lead = "✅" if done.new else "ℹ️ Already set:"
    lines = [
        f"{lead} {_who(person)} is on call on *{escape.line(done.schedule, 80)}*{how} for {length}: "
        f"{between(override.start_at, override.end_at, asker.timezone)}.",
        *_for_the_other(override.start_at, override.end_at, person, asker),
    ]
    replaced = [one for one in done.replaced if one.id != person.id]
    if done.new and not how:
        lines.append(f"In place of {names(replaced)}." if replaced else _no_place(override))
    lines.append(f"Take it back with `/override cancel {override.id}`.")
    text = paragraphs(lines)
    undo = actions(f"{NOUN}.done", [button(UNDO, "Undo", str(override.id))])
    return Message(text.text, (*text.blocks, undo))


def _no_place(override: Override) -> str:
    if override.kind == OverrideKind.COVER.value:
        return "⚠️ Whoever is covered is not on call then, so it changes nothing."
    return "It takes nobody else's place."


def overrides(found: Sequence[tuple[Override, str, str]]) -> Message:
    """Overrides with the name of their person and schedule."""
    if not found:
        return note("There is no override. Set one with `/override @user 2h [schedule]`.")
    lines = (
        f"`{override.id}` *{escape.line(person, 60)}* on *{escape.line(schedule, 80)}* "
        f"{escape.date(override.start_at)} to {escape.date(override.end_at)}"
        + (" · in addition" if override.kind == OverrideKind.ADD.value else "")
        + (f" · by {escape.line(override.created_by, 60)}" if override.created_by else "")
        for override, person, schedule in found
    )
    return paragraphs(lines, footer="`/override cancel NUMBER` takes one back")


def override_cancelled(override: Override, person: str, schedule: str) -> Message:
    return note(
        f"✅ The override of *{escape.line(person, 60)}* on *{escape.line(schedule, 80)}* is cancelled "
        f"(number {override.id})."
    )


def dropped() -> Message:
    return note("Nothing was changed.")
