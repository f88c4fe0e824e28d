"""What the form of contact methods shows: all of them, one that is added, its code, its change, its end.

Never looks anything up and never saves. It is shown to its person alone, so addresses are in clear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bot.slack import escape
from bot.slack.contacts import showing
from bot.slack.message import Block, actions, button, context, option, plain_text, section
from bot.slack.modals.opening import View
from engine.contacts.address import ADDED_BY_PEOPLE
from engine.contacts.codes import GOOD_FOR
from engine.contacts.contacts import Pending
from engine.contacts.issuing import PHONES
from engine.contacts.warnings import RuleWarning
from engine.directory import ContactMethod, Person
from engine.models import DeliveryStatus, Method, Urgency

LIST, ADD, CODE, CHANGE, REMOVE = "list", "add", "code", "change", "remove"
TITLE: Final = "Contact methods"
BY_CALL: Final = "call"

About = Mapping[str, Any]

_EXAMPLES: Final = {
    Method.SMS: "+12025550143",
    Method.VOICE: "+12025550143",
    Method.EMAIL: "ana@example.com",
    Method.PUSH: "ntfy://my-topic",
}
_HINTS: Final = {
    Method.SMS: "With + and its country code.",
    Method.VOICE: "With + and its country code.",
    Method.EMAIL: "One address.",
    Method.PUSH: "A URL that Apprise knows: ntfy://topic, pover://user@token, gotify://host/token …",
}
_SENT: Final = {
    Method.SMS: "by text",
    Method.VOICE: "in a call",
    Method.EMAIL: "by mail",
    Method.PUSH: "by push",
}


def listed(
    person: Person,
    pending: Mapping[int, Pending],
    warnings: Sequence[RuleWarning],
    about: About,
    banner: str = "",
) -> View:
    blocks = _banner(banner)
    if said := showing.signed(warnings, person):
        blocks.append(section(escape.cut("\n".join(said), 2900)))
    for method in person.methods:
        blocks.append(section(showing.method_line(method, pending.get(method.id), clear=True)))
        if method.kind in ADDED_BY_PEOPLE:
            blocks.append(actions(f"method:{method.id}", _buttons(method, pending.get(method.id))))
    if not person.methods:
        blocks.append(section("Nothing reaches you yet."))
    blocks += [{"type": "divider"}, actions("add", [button("add", "Add a contact method", "add")])]
    blocks.append(context("A method is paged once it is verified. Others see your numbers masked."))
    return View(TITLE, blocks, {**about, "s": LIST}, submit=None, close="Close")


def adding(about: About) -> View:
    kinds = [option(showing.kind_name(kind), kind.value) for kind in ADDED_BY_PEOPLE]
    kind: Block = {"type": "static_select", "action_id": "in", "options": kinds, "initial_option": kinds[0]}
    call = option("Say the code in a call", BY_CALL)
    boxes: Block = {"type": "checkboxes", "action_id": "in", "options": [call]}
    hint = "A number with + and its country code, one mail address, or an Apprise URL like ntfy://my-topic."
    return View(
        TITLE,
        [
            _input("kind", "Kind", kind),
            _input("address", "Address", _typed(_EXAMPLES[Method.SMS], most=500), hint=hint),
            _input(BY_CALL, "Its code", boxes, optional=True, hint="For a number that takes no texts."),
            actions("back", [button("back", "Back", "back")]),
        ],
        {**about, "s": ADD},
        submit="Send the code",
    )


def entering(method: ContactMethod, pending: Pending | None, about: About, banner: str = "") -> View:
    """Asks for the code. `n` counts the codes: with a new one the field is empty again."""
    again = int(about.get("n") or 0)
    shown = showing.named(method, clear=True)
    blocks = _banner(banner)
    if pending is None:
        blocks.append(section(f"No code for {shown} may be used any more. Have another one sent."))
    else:
        way = "in a call" if pending.by_call else _SENT[method.kind]
        failed = pending.status in {DeliveryStatus.DEAD, DeliveryStatus.CANCELLED}
        minutes = int(GOOD_FOR.total_seconds() // 60)
        blocks.append(section(f"The code for {shown} comes {way}, and is good for {minutes} minutes."))
        blocks.append(context(f"{'⚠️ ' if failed else ''}{_first_upper(showing.code_state(pending))}"))
    blocks.append(_input(f"code:{again}", "The six digits", _typed("123456", most=40, focus=True)))
    more = [button("resend", "Send another code", str(method.id))]
    if method.kind in PHONES:
        more.append(button("recall", "Call me with a code", str(method.id)))
    blocks.append(actions(f"code_more:{again}", [*more, button("back", "Later", "back")]))
    return View(TITLE, blocks, {**about, "s": CODE, "m": method.id}, submit="Verify")


def changing(method: ContactMethod, about: About) -> View:
    typed = {**_typed(_EXAMPLES[method.kind], most=500), "initial_value": method.address[:500]}
    return View(
        TITLE,
        [
            section(f"Another address for {showing.named(method, clear=True)}"),
            _input("address", "Address", typed, hint=_HINTS[method.kind]),
            context("Its rules stay. It must be verified again, and is not paged before."),
            actions("back", [button("back", "Back", "back")]),
        ],
        {**about, "s": CHANGE, "m": method.id},
        submit="Send the code",
    )


def removing(method: ContactMethod, person: Person, about: About) -> View:
    used = [
        f"{urgency.value} urgency"
        for urgency in (Urgency.HIGH, Urgency.LOW)
        if any(rule.method_id == method.id for rule in person.rules.get(urgency, ()))
    ]
    said = f"Forget {showing.named(method, clear=True)}?"
    if used:
        said += f" Its steps of {' and '.join(used)} end with it."
    back = actions("back", [button("back", "Back", "back")])
    return View(TITLE, [section(said), back], {**about, "s": REMOVE, "m": method.id}, submit="Remove")


# --- parts -------------------------------------------------------------------------------------------


def _buttons(method: ContactMethod, pending: Pending | None) -> list[Block]:
    shown = []
    if not method.verified and method.disabled_reason is None:
        label = "Enter the code" if pending is not None else "Verify"
        shown.append(button("verify", label, str(method.id), "primary"))
    return [
        *shown,
        button("change", "Change", str(method.id)),
        button("remove", "Remove", str(method.id)),
    ]


def _first_upper(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _banner(said: str) -> list[Block]:
    return [section(said)] if said else []


def _typed(example: str, *, most: int, focus: bool = False) -> Block:
    element: Block = {
        "type": "plain_text_input",
        "action_id": "in",
        "placeholder": plain_text(example),
        "max_length": most,
    }
    return {**element, "focus_on_load": True} if focus else element


def _input(block_id: str, label: str, element: Block, *, optional: bool = False, hint: str = "") -> Block:
    block: Block = {"type": "input", "block_id": block_id, "label": plain_text(label), "element": element}
    if optional:
        block["optional"] = True
    if hint:
        block["hint"] = plain_text(hint)
    return block
