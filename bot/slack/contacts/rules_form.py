"""The form of one's contact rules: for each urgency up to six steps, a method and its delay each.

Always the own ones of whoever presses. What was chosen and not saved yet travels in the form itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from bot.slack import escape
from bot.slack.contacts import showing
from bot.slack.contacts.me import RULES_FORM, ruled
from bot.slack.contacts.overview import Overviews
from bot.slack.identity import Asker, actor_of
from bot.slack.message import Block, actions, button, context, note, option, plain_text, section
from bot.slack.modals.opening import HOME, About, Done, Json, View, Wrong
from bot.slack.modals.values import Values, text
from engine.contact import steps
from engine.contacts.contacts import OVERRULED, Contacts
from engine.contacts.rules import checked
from engine.contacts.warnings import RuleWarning
from engine.directory import BY_CONFIG, ContactMethod, Person
from engine.models import Urgency

TITLE: Final = "Contact rules"
STEPS_MOST: Final = 6  # what is there already is shown, however much it is
NO_STEP: Final = "none"
SECONDS: Final = (0, 30, 60, 120, 180, 300, 600, 900, 1200, 1800, 2700, 3600)
UNCHANGED: Final = "Nothing was changed: the usual order goes on."
_ABOUT: Final = {
    Urgency.HIGH: "What wakes you. Delays count from the start of the page.",
    Urgency.LOW: "What can wait. Without a step: by the first one of high urgency.",
}

Steps = list[tuple[int, int]]  # a method's id, and the seconds after which it is used


@dataclass(frozen=True, slots=True)
class Draft:
    """`turn` is another one when the steps were put anew, so that Slack forgets what was chosen before."""

    steps: Mapping[Urgency, Steps]
    turn: int = 0

    @classmethod
    def of(cls, person: Person, turn: int = 0) -> Draft:
        return cls({urgency: _given(person, urgency) for urgency in showing.PAGED}, turn)

    @classmethod
    def chosen(cls, about: About, values: Values) -> Draft:
        """What the form shows now; a step without a method is none."""
        turn = int(about["turn"])
        found: dict[Urgency, Steps] = {}
        for urgency in showing.PAGED:
            kept = [(int(method), int(seconds)) for method, seconds in about[urgency.value]]
            rows = [_row(values, f"{urgency.value}:{turn}:{n}", row) for n, row in enumerate(kept)]
            found[urgency] = rows
        return cls(found, turn)

    def wanted(self, urgency: Urgency) -> list[tuple[int, timedelta]]:
        return [(method, timedelta(seconds=after)) for method, after in self.steps[urgency] if method]

    def about(self) -> dict[str, Any]:
        return {"turn": self.turn, **{urgency.value: self.steps[urgency] for urgency in showing.PAGED}}


class RulesForm:
    """`about` is the draft."""

    name = RULES_FORM

    def __init__(self, contacts: Contacts, overviews: Overviews) -> None:
        self._contacts = contacts
        self._overviews = overviews

    async def view(self, asker: Asker, about: About) -> View:
        person = await self._overviews.enrolled(asker)
        return await self._shown(person, Draft.of(person), about)

    async def press(self, action: Json, values: Values, asker: Asker, about: About) -> View | None:
        verb = str(action["action_id"])
        if verb == "add":
            person = await self._overviews.enrolled(asker)
            draft, urgency = Draft.chosen(about, values), Urgency(str(action["value"]))
            return await self._shown(person, _longer(draft, urgency, person), about)
        if verb == "reset":
            person = await self._overviews.enrolled(asker)
            await self._contacts.reset_rules(person.id, actor_of(person, asker))
            now_is = await self._contacts.person(person.id)
            draft = Draft.of(now_is, int(about["turn"]) + 1)
            return await self._shown(now_is, draft, about, "✅ The usual order is in force.")
        return None  # a choice was made, and Slack keeps it

    async def submit(self, values: Values, asker: Asker, about: About) -> View | Wrong | Done:
        person = await self._overviews.enrolled(asker)
        draft, before = Draft.chosen(about, values), Draft.of(person)
        wanted = {urgency: draft.wanted(urgency) for urgency in showing.PAGED}
        if not person.rules and all(wanted[one] == before.wanted(one) for one in showing.PAGED):
            return Done(note(UNCHANGED))  # to write it down would keep what is verified later out of it
        for urgency, each in wanted.items():
            checked(person, urgency, each)  # all of it before any of it
        for urgency, each in wanted.items():
            await self._contacts.set_rules(person.id, urgency, each, actor_of(person, asker))
        return Done(await ruled(self._contacts, person))

    async def _shown(self, person: Person, draft: Draft, about: About, banner: str = "") -> View:
        warnings = list(await self._contacts.warnings(person.id))
        if person.rules_by == BY_CONFIG:
            warnings.append(RuleWarning(OVERRULED))
        home = {HOME: 1} if about.get(HOME) else {}
        return view(person, draft, warnings, home, banner)


def view(
    person: Person, draft: Draft, warnings: Sequence[RuleWarning], about: About, banner: str = ""
) -> View:
    blocks = [section(banner)] if banner else []
    if said := showing.signed(warnings, person):
        blocks.append(section(escape.cut("\n".join(said), 2900)))
    for urgency in showing.PAGED:
        blocks.append({"type": "header", "text": plain_text(f"{urgency.value.capitalize()} urgency")})
        blocks.append(context(_ABOUT[urgency]))
        rows = draft.steps[urgency]
        blocks += [
            _step(f"{urgency.value}:{draft.turn}:{n}", row, person.methods) for n, row in enumerate(rows)
        ]
        if len(rows) < STEPS_MOST and person.methods:
            blocks.append(actions(f"add:{urgency.value}", [button("add", "Add a step", urgency.value)]))
    if person.rules:
        blocks += [
            {"type": "divider"},
            actions("reset", [button("reset", "Back to the usual order", "reset")]),
        ]
    else:
        blocks.append(context("This is the usual order, which follows what you verify. Saved, it is yours."))
    return View(TITLE, blocks, {**about, **draft.about()})


# --- parts -------------------------------------------------------------------------------------------


def _given(person: Person, urgency: Urgency) -> Steps:
    """The person's own steps; where nobody gave any, those of the usual order."""
    theirs = {one.id for one in person.methods}
    if person.rules:
        rules = person.rules.get(urgency, ())
        return [(one.method_id, _seconds(one.delay)) for one in rules if one.method_id in theirs]
    return [(one.method.id, _seconds(one.delay)) for one in steps(person, urgency)]


def _seconds(delay: timedelta) -> int:
    return int(delay.total_seconds())


def _row(values: Values, block_id: str, kept: tuple[int, int]) -> tuple[int, int]:
    method = text(values, f"{block_id}.method") or str(kept[0] or NO_STEP)
    seconds = text(values, f"{block_id}.delay") or str(kept[1])
    return (0 if method == NO_STEP else int(method)), int(seconds)


def _longer(draft: Draft, urgency: Urgency, person: Person) -> Draft:
    """With one more step: by what is not among them yet, later than what is."""
    rows = draft.steps[urgency]
    used = {method for method, _ in rows}
    unused = [one.id for one in person.methods if one.usable and one.id not in used]
    fallback = [one.id for one in person.methods]
    last = max((seconds for _, seconds in rows), default=-1)
    later = next((one for one in SECONDS if one > last), SECONDS[-1])
    more = ((unused or fallback)[0], later)
    return Draft({**draft.steps, urgency: [*rows, more]}, draft.turn)


def _step(block_id: str, row: tuple[int, int], methods: Sequence[ContactMethod]) -> Block:
    choices = [option(_label(one), str(one.id)) for one in methods]
    choices.append(option("No step", NO_STEP))
    delays = sorted({*SECONDS, row[1]})
    waits = [option(_upper(showing.after(timedelta(seconds=one))), str(one)) for one in delays]
    chosen = str(row[0]) if row[0] else NO_STEP
    return actions(block_id, [_select("method", choices, chosen), _select("delay", waits, str(row[1]))])


def _label(method: ContactMethod) -> str:
    """Plain text, which Slack takes as it is; its person alone sees it."""
    name = showing.kind_name(method.kind)
    shown = name if method.kind.value == "slack" else f"{name} {escape.clean(method.address)}"
    return f"{shown[:56]}{'' if method.usable else ' (not in use)'}"


def _upper(said: str) -> str:
    return f"{said[:1].upper()}{said[1:]}"


def _select(action_id: str, options: list[Block], chosen: str) -> Block:
    initial = next((one for one in options if one["value"] == chosen), options[-1])
    return {
        "type": "static_select",
        "action_id": action_id,
        "options": options,
        "initial_option": initial,
    }
