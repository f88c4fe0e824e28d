"""contacts: how people are reached, from a terminal: looked at, added, verified, and by which rules.

Never sends: the running Midwatch does, and sees what is done here within a second. Addresses are masked;
`midwatch export` writes those of midwatch.yaml.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

from cyclopts import App, Parameter

from bot.commands import names
from bot.commands.opened import Opened, me, opened
from bot.commands.say import say, say_json, say_table
from bot.contact_words import method_named, steps_typed
from engine.config.durations import show_duration
from engine.contact import steps
from engine.contacts.contacts import Pending
from engine.contacts.masking import masked
from engine.contacts.warnings import RuleWarning
from engine.directory import BY_CONFIG, BY_PERSON, ContactMethod, Person
from engine.errors import BadCommand
from engine.models import Method, Urgency

Json = Annotated[bool, Parameter("--json", negative=())]
ByCall = Annotated[bool, Parameter("--by-call", negative=())]
Reset = Annotated[bool, Parameter("--reset", negative=())]

KINDS: Final = {one.value: one for one in (Method.SMS, Method.VOICE, Method.EMAIL, Method.PUSH)}

contacts = App(name="contacts", help="How people are reached: contact methods, their codes, contact rules.")


@contacts.default
async def show(person: str | None = None, /, *, as_json: Json = False) -> None:
    """How everybody is reached, or one person with their rules and what is wrong with them.

    Parameters
    ----------
    person
        By name.
    """
    async with opened() as engine:
        people = (await engine.roster.directory()).people.values()
        active = sorted((each for each in people if each.active), key=lambda each: each.name)
        if person is not None:
            return await _show_one(engine, person, as_json=as_json)
        if as_json:
            return say_json([await _plain(engine, each) for each in active])
        rows = [(each.name, _methods(each), await _how_well(engine, each)) for each in active]
        return say_table(rows, "There is nobody yet. Write midwatch.yaml, and: midwatch apply FILE")


@contacts.command(name="add")
async def add(
    person: str, kind: str, address: str, /, *, by_call: ByCall = False, as_json: Json = False
) -> None:
    """Add a contact method for somebody, who is told of it, and send the code that verifies it.

    Parameters
    ----------
    person
        By name.
    kind
        sms, voice, email or push.
    address
        A number like +12025550143, a mail address, or an Apprise URL like ntfy://topic.
    by_call
        Say the code in a call: for a landline.
    """
    if kind not in KINDS:
        raise BadCommand(f"{kind!r} is no kind of contact method. There are: {', '.join(KINDS)}.")
    async with opened() as engine:
        whom = await _person(engine, person)
        made = await engine.contacts.add(whom.id, KINDS[kind], address, me(), by_call=by_call)
        if as_json:
            return say_json(_plain_method(made, None))
        if made.usable:
            return say(f"{made.id}: {made.kind} {masked(made)}, verified: it is the same number.")
        code = f"midwatch contacts verify {whom.name} CODE"
        return say(f"{made.id}: {made.kind} {masked(made)}. A code is on its way there: {code}")


@contacts.command(name="code")
async def code(person: str, method: str, /, *, by_call: ByCall = False, as_json: Json = False) -> None:
    """Send a new code to a contact method; the one before is worth nothing.

    Parameters
    ----------
    person
        By name.
    method
        Its number, or its kind where there is one of it.
    by_call
        Say it in a call: for a landline.
    """
    async with opened() as engine:
        whom = await _person(engine, person)
        pending = await engine.contacts.send_code(method_named(whom, method).id, me(), by_call=by_call)
        if as_json:
            return say_json(pending)
        return say("A code is on its way. It is good for 15 minutes.")


@contacts.command(name="verify")
async def verify(person: str, code: str, /, *, as_json: Json = False) -> None:
    """Verify a contact method by the code that was sent there.

    Parameters
    ----------
    person
        By name.
    code
        The six digits.
    """
    async with opened() as engine:
        whom = await _person(engine, person)
        done = await engine.contacts.verify(whom.id, code, me())
        if as_json:
            return say_json(_plain_method(done, None))
        return say(f"{done.kind} {masked(done)} is verified.")


@contacts.command(name="remove")
async def remove(person: str, method: str, /, *, as_json: Json = False) -> None:
    """Forget a contact method of somebody, who is told of it, and the rules that use it.

    Parameters
    ----------
    person
        By name.
    method
        Its number, or its kind where there is one of it.
    """
    async with opened() as engine:
        whom = await _person(engine, person)
        one = method_named(whom, method)
        said = await engine.contacts.remove(one.id, me())
        if as_json:
            return say_json({"removed": one.id, "warnings": said})
        return say(f"{one.kind} {masked(one)} is forgotten.", *said)


@contacts.command(name="rules")
async def rules(
    person: str,
    /,
    *,
    high: str | None = None,
    low: str | None = None,
    reset: Reset = False,
    as_json: Json = False,
) -> None:
    """By which contact methods somebody is paged, after which delays; what is not given stays.

    Parameters
    ----------
    person
        By name.
    high
        The steps for high urgency, like "slack, sms after 1m, voice after 3m".
    low
        The steps for low urgency; "" for the first of the high ones.
    reset
        Back to the usual order.
    """
    if reset and (high is not None or low is not None):
        raise BadCommand("Say either --reset, or steps.")
    async with opened() as engine:
        whom = await _person(engine, person)
        given = {Urgency.HIGH: high, Urgency.LOW: low}
        wanted = {urgency: steps_typed(whom, text) for urgency, text in given.items() if text is not None}
        if reset:
            await engine.contacts.reset_rules(whom.id, me())
        for urgency, each in wanted.items():
            await engine.contacts.set_rules(whom.id, urgency, each, me())
        await _show_one(engine, person, as_json=as_json)


@contacts.command(name="ask")
async def ask(*, as_json: Json = False) -> None:
    """Ask everybody who has an unverified contact method to verify it; once a day."""
    async with opened() as engine:
        asked = await engine.contacts.ask_everybody(me())
        told, unreached = [each.name for each in asked.people], [each.name for each in asked.unreached]
        if as_json:
            return say_json({"asked": told, "unreached": unreached})
        say(f"Asked: {', '.join(told) or 'nobody, or today already'}.")
        if unreached:
            say(f"Nothing verified reaches {', '.join(unreached)}: ask them yourself.")
        return None


# --- what is typed


async def _person(engine: Opened, typed: str) -> Person:
    found = names.person(await engine.roster.directory(), typed)
    return await engine.contacts.person(found.id)


# --- what is shown


async def _show_one(engine: Opened, typed: str, *, as_json: bool) -> None:
    person = await _person(engine, typed)
    if as_json:
        return say_json(await _plain(engine, person))
    pending = await engine.contacts.pending(person.id)
    say_table([_row(one, pending) for one in person.methods], f"{person.name} has no contact method.")
    by = {BY_CONFIG: "by midwatch.yaml", BY_PERSON: "their own"}.get(person.rules_by, "the usual order")
    for urgency in (Urgency.HIGH, Urgency.LOW):
        say(f"{urgency} urgency ({by}): {_in_words(person, urgency)}")
    warnings = await engine.contacts.warnings(person.id)
    return say(*(f"! {one.text}" for one in warnings))


def _row(one: ContactMethod, pending: Mapping[int, Pending]) -> tuple[str, ...]:
    return str(one.id), one.kind.value, masked(one), _state(one, pending.get(one.id))


def _state(one: ContactMethod, pending: Pending | None = None) -> str:
    if one.disabled_reason is not None:
        return f"off: {one.disabled_reason}"
    if one.verified:
        return "verified"
    if pending is None:
        return "not verified"
    why = f" ({pending.reason})" if pending.reason else ""
    return f"not verified; code {pending.status}{why}, {pending.tries_left} tries left"


def _methods(person: Person) -> str:
    shown = (f"{one.kind} {masked(one)}{'' if one.usable else f' ({_state(one)})'}" for one in person.methods)
    return ", ".join(shown) or "none"


async def _how_well(engine: Opened, person: Person) -> str:
    count = len(await engine.contacts.warnings(person.id))
    return f"{count} warning{'s' if count > 1 else ''}" if count else ""


def _in_words(person: Person, urgency: Urgency) -> str:
    each = (
        f"{step.method.kind}{f' after {show_duration(step.delay)}' if step.delay else ''}"
        for step in steps(person, urgency)
    )
    return ", ".join(each) or "nobody is told"


async def _plain(engine: Opened, person: Person) -> dict[str, Any]:
    pending = await engine.contacts.pending(person.id)
    return {
        "person": person.name,
        "methods": [_plain_method(one, pending.get(one.id)) for one in person.methods],
        "rules_by": person.rules_by,
        "rules": {urgency.value: _plain_steps(person, urgency) for urgency in (Urgency.HIGH, Urgency.LOW)},
        "warnings": _plain_warnings(await engine.contacts.warnings(person.id)),
    }


def _plain_method(one: ContactMethod, pending: Pending | None) -> dict[str, Any]:
    return {
        "id": one.id,
        "kind": one.kind,
        "address": masked(one),
        "verified": one.verified,
        "verified_by": one.verified_by,
        "usable": one.usable,
        "off": one.disabled_reason,
        "in_file": one.in_file,
        "code": pending,
    }


def _plain_steps(person: Person, urgency: Urgency) -> Sequence[Mapping[str, Any]]:
    return [
        {"method": step.method.id, "kind": step.method.kind, "after": show_duration(step.delay)}
        for step in steps(person, urgency)
    ]


def _plain_warnings(warnings: Iterable[RuleWarning]) -> list[dict[str, Any]]:
    return [{"text": one.text, "urgency": one.urgency, "method": one.method_id} for one in warnings]
