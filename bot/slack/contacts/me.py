"""`/oncall me`: who somebody is and how they are reached; the words behind it, and its buttons.

Decides nothing: `engine.contacts` does. Whoever was nobody yet becomes a person who can be paged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bot.contact_words import method_named, steps_typed
from bot.slack import escape
from bot.slack.answers import names, paragraphs
from bot.slack.contacts import showing
from bot.slack.contacts.numbers import NumbersCard
from bot.slack.contacts.overview import Overviews, alone
from bot.slack.grammar import contact_text as words
from bot.slack.identity import Asker, actor_of
from bot.slack.message import Message, actions, button, note
from bot.slack.modals.opening import HOME, Modals
from engine.contacts.contacts import OVERRULED, Contacts
from engine.contacts.rules import checked
from engine.contacts.warnings import RuleWarning
from engine.directory import BY_CONFIG, ContactMethod, Person
from engine.errors import Refused, TooMany
from engine.pager.own_test import OwnTests, report

METHODS_FORM: Final = "contact_methods"
RULES_FORM: Final = "contact_rules"
IN_PUBLIC: Final = (
    "Others read here, and an address is nobody's business: type it as a command with `/`, or tell me by "
    "direct message. Nothing was changed."
)


class MeCommand:
    def __init__(
        self,
        contacts: Contacts,
        own_tests: OwnTests,
        overviews: Overviews,
        modals: Modals,
        numbers: NumbersCard,
    ) -> None:
        self._contacts = contacts
        self._own_tests = own_tests
        self._overviews = overviews
        self._modals = modals
        self._numbers = numbers

    async def run(self, typed: str, asker: Asker) -> Message | None:
        """What stands behind `me`."""
        return await self._do(words.parse(typed), asker)

    async def verify(self, typed: str, asker: Asker) -> Message | None:
        """What stands behind `verify`, which is short for `me verify`."""
        return await self._do(words.verify(typed), asker)

    async def test(self, _typed: str, asker: Asker) -> Message | None:
        return await self._do(words.RunTest(), asker)

    async def click(self, body: Mapping[str, Any], asker: Asker) -> Message | None:
        pressed = body["actions"][0]
        about = {HOME: 1} if (body.get("view") or {}).get("type") == "home" else {}
        match pressed["action_id"]:
            case showing.METHODS:
                return await self._modals.open(asker, METHODS_FORM, about)
            case showing.CODE:
                return await self._modals.open(asker, METHODS_FORM, {"s": "code", "m": int(pressed["value"])})
            case showing.RULES:
                return await self._modals.open(asker, RULES_FORM, about)
            case showing.TEST:
                said = await self._test(await self._overviews.enrolled(asker), asker)
            case _:
                said = await self._numbers.send(asker)
        return showing.with_buttons(said, numbers=bool(self._numbers.numbers))  # it takes their place

    async def _do(self, command: words.Command, asker: Asker) -> Message | None:
        match command:
            case words.ShowMethods():
                return await self._modals.open(asker, METHODS_FORM, {"s": "add"} if command.add else {})
            case words.ShowRules():
                return await self._modals.open(asker, RULES_FORM)
            case words.ShowNumbers():
                return await self._numbers.send(asker)
        person = await self._overviews.enrolled(asker)
        match command:
            case words.Add() | words.SendCode() | words.Change():
                return await self._unverified(command, person, asker)
            case words.Verify():
                return await self._verify(command, person, asker)
            case words.Remove():
                return await self._remove(command, person, asker)
            case words.SetRules():
                return await self._rules(command, person, asker)
            case words.ResetRules():
                await self._contacts.reset_rules(person.id, actor_of(person, asker))
                return await ruled(self._contacts, person)
            case words.RunTest():
                return await self._test(person, asker)
            case words.AskEverybody():
                return await self._ask(person, asker)
        return await self._shown(person, asker)

    async def _shown(self, person: Person, asker: Asker) -> Message:
        now_is = await self._contacts.person(person.id)
        return showing.me(await self._overviews.of(now_is), clear=alone(asker))

    async def _unverified(
        self, command: words.Add | words.SendCode | words.Change, person: Person, asker: Asker
    ) -> Message:
        """What ends in a code that is on its way."""
        if not alone(asker) and not isinstance(command, words.SendCode):
            raise Refused(IN_PUBLIC)
        actor, by_call = actor_of(person, asker), False
        match command:
            case words.Add():
                by_call = command.by_call
                made = await self._contacts.add(
                    person.id, command.kind, command.address, actor, by_call=by_call
                )
            case words.Change():
                named = method_named(person, command.which)
                made = await self._contacts.change(named.id, command.address, actor)
            case words.SendCode():
                made, by_call = method_named(person, command.which), command.by_call
                await self._contacts.send_code(made.id, actor, by_call=by_call)
        return _wanted(made, clear=alone(asker), by_call=by_call)

    async def _verify(self, command: words.Verify, person: Person, asker: Asker) -> Message:
        done = await self._contacts.verify(person.id, command.code, actor_of(person, asker))
        lines = [f"✅ {showing.named(done, clear=alone(asker))} is verified."]
        return paragraphs([*lines, *showing.signed(await self._contacts.warnings(person.id), person)])

    async def _remove(self, command: words.Remove, person: Person, asker: Asker) -> Message:
        method = method_named(person, command.which)
        said = await self._contacts.remove(method.id, actor_of(person, asker))
        lines = [
            f"🗑️ {showing.named(method, clear=alone(asker))} is forgotten, and so are the rules it was in."
        ]
        return paragraphs([*lines, *(f"⚠️ {escape.text(one, 500)}" for one in said)])

    async def _rules(self, command: words.SetRules, person: Person, asker: Asker) -> Message:
        wanted = {urgency: steps_typed(person, typed) for urgency, typed in command.steps.items()}
        for urgency, each in wanted.items():
            checked(person, urgency, each)  # all of it before any of it
        for urgency, each in wanted.items():
            await self._contacts.set_rules(person.id, urgency, each, actor_of(person, asker))
        return await ruled(self._contacts, person)

    async def _test(self, person: Person, asker: Asker) -> Message:
        """One that is too early is answered by what arrived of the last one."""
        try:
            methods = await self._own_tests.start(person.id, actor_of(person, asker))
        except TooMany as early:
            arrived = await self._own_tests.last(person.id)
            return paragraphs([f"⏳ {escape.text(str(early), 300)}", escape.text(report(arrived, person))])
        by = ", ".join(showing.named(one, clear=False) for one in methods)
        return note(
            f"🔔 A test page to you alone is on its way: {by}. In 2 minutes at most I say what arrived."
        )

    async def _ask(self, person: Person, asker: Asker) -> Message:
        asked = await self._contacts.ask_everybody(actor_of(person, asker))
        lines = [f"🔑 Asked to verify: {names(asked.people)}." if asked.people else NOBODY_ASKED]
        if asked.unreached:
            lines.append(f"⚠️ Nothing verified reaches {names(asked.unreached)}: ask them yourself.")
        return paragraphs(lines)


NOBODY_ASKED: Final = (
    "✅ There is nobody to ask: what there is is verified, or they were asked today already."
)


async def ruled(contacts: Contacts, before: Person) -> Message:
    """What the rules are now, and what is to be said of them."""
    now_is, warnings = await contacts.person(before.id), list(await contacts.warnings(before.id))
    if before.rules_by == BY_CONFIG:
        warnings.append(RuleWarning(OVERRULED))
    lines = [f"✅ {showing.rules_line(now_is, urgency)}" for urgency in showing.PAGED]
    return paragraphs([*lines, *showing.signed(warnings, now_is)])


def _wanted(method: ContactMethod, *, clear: bool, by_call: bool) -> Message:
    """Where a code went, and how it is used."""
    if method.usable:
        return note(
            f"✅ {showing.named(method, clear=clear)} is verified: it is a number that you have proved."
        )
    way = "A call with a code goes" if by_call or method.kind.value == "voice" else "A code is on its way"
    said = (
        f"🔑 {way} to {showing.named(method, clear=clear)}. Type it within 15 minutes: "
        "`/oncall me verify 123456`"
    )
    enter = button(showing.CODE, "Enter the code", str(method.id), "primary")
    return Message(said, (*note(said).blocks, actions(showing.NOUN, [enter])))
