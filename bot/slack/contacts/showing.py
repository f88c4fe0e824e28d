"""How somebody is reached, in words: for `/oncall me`, the forms and the Home tab.

Never looks anything up. An address is in clear only where its owner alone reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

from bot.slack import escape
from bot.slack.answers import paragraphs
from bot.slack.contacts.overview import Overview
from bot.slack.contacts.silence import Silence
from bot.slack.message import Block, Message, actions, button
from bot.slack.words import duration
from engine.contact import steps
from engine.contacts.contacts import Pending
from engine.contacts.masking import masked
from engine.contacts.warnings import NAMES, RuleWarning
from engine.directory import BY_CONFIG, BY_PERSON, ContactMethod, Person
from engine.models import DeliveryStatus, Method, Urgency

NOUN: Final = "contact"  # of the buttons
METHODS, RULES, TEST, CARD, CODE = (f"{NOUN}_{verb}" for verb in ("methods", "rules", "test", "card", "code"))
PAGED: Final = (Urgency.HIGH, Urgency.LOW)
WARNED_MOST: Final = 6

_BY: Final = {BY_CONFIG: "by midwatch.yaml", BY_PERSON: "your own"}
_CODE: Final = {
    DeliveryStatus.QUEUED: "a code is on its way",
    DeliveryStatus.SENDING: "a code is on its way",
    DeliveryStatus.SENT: "a code was sent",
    DeliveryStatus.DELIVERED: "a code arrived",
    DeliveryStatus.UNCONFIRMED: "a code was sent, and may not have arrived",
    DeliveryStatus.DEAD: "its code could not be sent",
    DeliveryStatus.CANCELLED: "its code was not sent",
}


def me(seen: Overview, *, clear: bool) -> Message:
    """`clear`: nobody else reads it, so that numbers stand there in full, and there are buttons."""
    person = seen.person
    admin = " · admin" if person.admin else ""
    lines = [
        f"You are *{escape.line(person.name, 80)}*, time zone {escape.line(person.timezone, 60)}{admin}",
        *(method_line(one, seen.pending.get(one.id), clear=clear) for one in person.methods),
    ]
    lines += [rules_line(person, urgency) for urgency in PAGED]
    lines += signed(seen.warnings, person)
    lines += silence_lines(seen)
    if any(not one.usable and one.id in seen.pending for one in person.methods):
        lines.append("🔑 Type the code that came: `/oncall me verify 123456`")
    if not clear:
        return paragraphs([*lines, "Type it as a command, with `/`, to see the numbers and change them."])
    return with_buttons(paragraphs(lines), numbers=seen.numbers)


def with_buttons(message: Message, *, numbers: bool) -> Message:
    return Message(message.text, (*message.blocks, bar(numbers=numbers)))


def bar(*, numbers: bool) -> Block:
    """What can be done about how one is reached."""
    shown = [
        button(METHODS, "Contact methods", "show"),
        button(RULES, "Contact rules", "show"),
        button(TEST, "Test them", "test"),
    ]
    if numbers:
        shown.append(button(CARD, "Midwatch's numbers", "send"))
    return actions(NOUN, shown)


def method_line(method: ContactMethod, pending: Pending | None = None, *, clear: bool) -> str:
    """ "✓ SMS +12025550143", and what is wrong with it."""
    why = state(method, pending)
    return f"{'✓' if method.usable else '✗'} {named(method, clear=clear)}{f' – {why}' if why else ''}"


def named(method: ContactMethod, *, clear: bool) -> str:
    """ "SMS +12025550143": in a code span, where no phone makes a link of it."""
    if method.kind is Method.SLACK:
        return f"{NAMES[method.kind]} {escape.mention(method.address)}".strip()
    return f"{kind_name(method.kind)} {escape.code(method.address if clear else masked(method), 300)}"


def kind_name(kind: Method) -> str:
    name = NAMES.get(kind, kind.value)
    return f"{name[:1].upper()}{name[1:]}"


def state(method: ContactMethod, pending: Pending | None) -> str:
    """Empty if it is as it should be."""
    if method.disabled_reason is not None:
        return f"off: {escape.line(method.disabled_reason, 120)}"
    if method.verified:
        return ""
    return f"not verified; {code_state(pending)}" if pending is not None else "not verified"


def code_state(pending: Pending) -> str:
    why = f" ({escape.line(pending.reason, 160)})" if pending.reason else ""
    return f"{_CODE[pending.status]}{why}, {pending.tries_left} tries left"


def rules_line(person: Person, urgency: Urgency) -> str:
    """ "*High urgency* (your own): Slack at once, SMS after 1 min"."""
    by = _BY.get(person.rules_by, "the usual order")
    if urgency is Urgency.LOW and person.rules and not person.rules.get(Urgency.LOW):
        by = "by the first of high urgency"
    said = [
        f"{NAMES.get(one.method.kind, one.method.kind)} {after(one.delay)}" for one in steps(person, urgency)
    ]
    return f"*{urgency.value.capitalize()} urgency* ({by}): {', '.join(said) or 'nothing reaches you'}"


def after(delay: timedelta) -> str:
    return f"after {duration(delay)}" if delay else "at once"


def signed(warnings: Iterable[RuleWarning], person: Person) -> list[str]:
    """The gravest first; of many the first few."""
    every = [f"⚠️ {escape.text(one.text, 500)}{_which(one, person)}" for one in warnings]
    more = len(every) - WARNED_MOST
    return [*every[:WARNED_MOST], *([f"and {more} more warnings"] if more > 0 else [])]


def _which(warning: RuleWarning, person: Person) -> str:
    """A warning names the kind: of several of it, which one is meant."""
    meant = next((one for one in person.methods if one.id == warning.method_id), None)
    if meant is None or sum(one.kind is meant.kind for one in person.methods) < 2:
        return ""
    return f" ({escape.code(masked(meant), 100)})"


def silence_lines(seen: Overview) -> Iterator[str]:
    """Slack's Do Not Disturb: no app breaks through it, so something else must ring."""
    if seen.silence is None or all(one.kind is not Method.SLACK for one in seen.person.methods):
        return
    lead = "You are on call, and Slack is silent" if seen.on_call else "Slack is silent for you"
    lets = " Save *Midwatch's numbers* on your phone, and let them through when it is silent too."
    yield (
        f"🔕 {lead} {_when(seen.silence)}: a page in Slack makes no sound then, SMS and calls do. In Slack, "
        "Preferences, Notifications, Notification schedule changes that."
        f"{lets if seen.numbers else ''}"
    )


def _when(silence: Silence) -> str:
    return f"from {escape.date(silence.start)} to {escape.date(silence.end)}"
