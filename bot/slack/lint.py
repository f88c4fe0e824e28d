"""Slack's limits, checked before Slack does: every fault of a message or a view, as sentences.

Never changes what it is given. The numbers are from Slack's documentation; the library's own
models let several of them pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from bot.slack.message import Message

TEXT_MAX: Final = 4000
TOTAL_MAX: Final = 12_000  # undocumented, near 13,200 Slack answers msg_blocks_too_long
BLOCKS_MAX: Final = 50
VIEW_BLOCKS_MAX: Final = 100
ATTACHMENTS_MAX: Final = 20
ID_MAX: Final = 255


@dataclass(frozen=True, slots=True)
class Shape:
    """What a block, element or object may hold: texts with their limits, lists with theirs."""

    required: frozenset[str]
    optional: frozenset[str] = frozenset()
    texts: Mapping[str, int] = field(default_factory=dict)  # text objects
    strings: Mapping[str, int] = field(default_factory=dict)
    lists: Mapping[str, int] = field(default_factory=dict)


def _shape(required: str, optional: str = "", **limits: Mapping[str, int]) -> Shape:
    return Shape(frozenset(required.split()), frozenset(optional.split()), **limits)


_INPUT: Final = {"action_id": ID_MAX}


def _select(optional: str) -> Shape:
    """Where Slack itself knows what may be chosen."""
    return _shape(
        "action_id",
        f"placeholder confirm focus_on_load {optional}",
        texts={"placeholder": 150},
        strings=_INPUT,
    )


SHAPES: Final[Mapping[str, Shape]] = {
    "section": _shape("", "text fields accessory expand", texts={"text": 3000}, lists={"fields": 10}),
    "header": _shape("text", texts={"text": 150}),
    "divider": _shape(""),
    "context": _shape("elements", lists={"elements": 10}),
    "actions": _shape("elements", lists={"elements": 25}),
    "input": _shape("label element", "hint optional dispatch_action", texts={"label": 2000, "hint": 2000}),
    "button": _shape(
        "text action_id",
        "value url style confirm accessibility_label",
        texts={"text": 75},
        strings={**_INPUT, "value": 2000, "url": 3000, "accessibility_label": 75},
    ),
    "overflow": _shape("action_id options", "confirm", strings=_INPUT, lists={"options": 5}),
    "static_select": _shape(
        "action_id options",
        "placeholder initial_option confirm focus_on_load",
        texts={"placeholder": 150},
        strings=_INPUT,
        lists={"options": 100},
    ),
    "multi_static_select": _shape(
        "action_id options",
        "placeholder initial_options confirm max_selected_items focus_on_load",
        texts={"placeholder": 150},
        strings=_INPUT,
        lists={"options": 100},
    ),
    "users_select": _select("initial_user"),
    "multi_users_select": _select("initial_users max_selected_items"),
    "channels_select": _select("initial_channel"),
    "conversations_select": _select("initial_conversation default_to_current_conversation filter"),
    "datepicker": _select("initial_date"),
    "timepicker": _select("initial_time timezone"),
    "checkboxes": _shape(
        "action_id options", "initial_options confirm focus_on_load", strings=_INPUT, lists={"options": 10}
    ),
    "radio_buttons": _shape(
        "action_id options", "initial_option confirm focus_on_load", strings=_INPUT, lists={"options": 10}
    ),
    "number_input": _shape(
        "action_id is_decimal_allowed",
        "placeholder initial_value min_value max_value focus_on_load",
        texts={"placeholder": 150},
        strings=_INPUT,
    ),
    "plain_text_input": _shape(
        "action_id",
        "placeholder initial_value multiline min_length max_length focus_on_load",
        texts={"placeholder": 150},
        strings={**_INPUT, "initial_value": 3000},
    ),
    "option": _shape(
        "text value", "description", texts={"text": 75, "description": 75}, strings={"value": 75}
    ),
    "confirm": _shape(
        "title text confirm", "deny style", texts={"title": 100, "text": 300, "confirm": 30, "deny": 30}
    ),
}
BLOCKS: Final = frozenset({"section", "header", "divider", "context", "actions", "input"})
CHOICES: Final = frozenset(
    {"static_select", "multi_static_select", "users_select", "multi_users_select", "channels_select"}
    | {"conversations_select", "datepicker", "timepicker", "checkboxes", "radio_buttons"}
)
INTERACTIVE: Final = CHOICES | {"button", "overflow"}
INPUTS: Final = CHOICES | {"plain_text_input", "number_input"}
# Why not all: checkboxes and radio buttons may format what they offer.
PLAIN_ONLY: Final = (INTERACTIVE | INPUTS | {"header", "option", "input"}) - {"checkboxes", "radio_buttons"}


def lint_message(message: Message) -> list[str]:
    """Every reason for which Slack would refuse this message, or show less of it."""
    return list(_message_faults(message))


def _message_faults(message: Message) -> Iterator[str]:
    if not message.text.strip():
        yield "text: empty, so notifications would show nothing"
    if len(message.text) > TEXT_MAX:
        yield f"text: {len(message.text)} characters, {TEXT_MAX} allowed"
    if len(message.attachments) > ATTACHMENTS_MAX:
        yield f"attachments: {len(message.attachments)}, {ATTACHMENTS_MAX} allowed"
    if len(message.blocks) > BLOCKS_MAX:
        yield f"blocks: {len(message.blocks)}, {BLOCKS_MAX} allowed"
    everything = list(message.blocks)
    for at, attachment in enumerate(message.attachments):
        unknown = set(attachment) - {"color", "fallback", "blocks"}
        if unknown:
            yield f"attachments[{at}]: unknown {sorted(unknown)}"
        everything += attachment.get("blocks", [])
    yield from _blocks_faults(everything, message_only=True)
    total = sum(_text_lengths(everything))
    if total > TOTAL_MAX:
        yield f"blocks: {total} characters of text, {TOTAL_MAX} allowed"


def lint_view(view: Mapping[str, Any]) -> list[str]:
    """Every reason for which Slack would refuse this modal or home tab."""
    return list(_view_faults(view))


def _view_faults(view: Mapping[str, Any]) -> Iterator[str]:
    blocks: Sequence[Mapping[str, Any]] = view.get("blocks", [])
    if not blocks or len(blocks) > VIEW_BLOCKS_MAX:
        yield f"blocks: {len(blocks)}, 1 to {VIEW_BLOCKS_MAX} allowed"
    if view.get("type") == "modal":
        for key in ("title", "submit", "close"):
            if key in view:
                yield from _text_faults(view[key], 24, key, plain=True)
        if "title" not in view:
            yield "title: a modal needs one"
        if any(block.get("type") == "input" for block in blocks) and "submit" not in view:
            yield "submit: a modal with an input needs one"
    elif view.get("type") != "home":
        yield f"type: {view.get('type')!r} is neither modal nor home"
    for key, limit in {"private_metadata": 3000, "callback_id": ID_MAX, "external_id": ID_MAX}.items():
        if len(view.get(key, "")) > limit:
            yield f"{key}: longer than {limit}"
    yield from _blocks_faults(blocks, message_only=False)


def _blocks_faults(blocks: Sequence[Mapping[str, Any]], *, message_only: bool) -> Iterator[str]:
    seen: set[str] = set()
    for at, block in enumerate(blocks):
        where = f"blocks[{at}]"
        kind = str(block.get("type"))
        if kind not in BLOCKS or (message_only and kind == "input"):
            yield f"{where}: {kind!r} is not a block that may stand here"
            continue
        block_id = block.get("block_id")
        if block_id is not None and not 1 <= len(block_id) <= ID_MAX:
            yield f"{where}.block_id: 1 to {ID_MAX} characters"
        if block_id in seen:
            yield f"{where}.block_id: {block_id!r} is there twice"
        seen.add(block_id or f"\0{at}")
        yield from _shape_faults(kind, block, where, extra={"block_id"})
        if kind == "section" and not ("text" in block or block.get("fields")):
            yield f"{where}: a section needs text or fields"
        yield from _twice([e.get("action_id") for e in block.get("elements", [])], where)


def _twice(action_ids: Sequence[str | None], where: str) -> Iterator[str]:
    named = [action_id for action_id in action_ids if action_id is not None]
    if len(named) != len(set(named)):
        yield f"{where}: an action_id is there twice"


def _shape_faults(
    kind: str, thing: Mapping[str, Any], where: str, extra: frozenset[str] | set[str] = frozenset()
) -> Iterator[str]:
    shape = SHAPES[kind]
    keys = set(thing) - {"type"} - extra
    for key in sorted(shape.required - keys):
        yield f"{where}.{key}: missing"
    for key in sorted(keys - shape.required - shape.optional):
        yield f"{where}.{key}: unknown"
    for key, limit in shape.texts.items():
        if key in thing:
            yield from _text_faults(thing[key], limit, f"{where}.{key}", plain=kind in PLAIN_ONLY)
    for key, limit in shape.strings.items():
        if key in thing and not 1 <= len(thing[key]) <= limit:
            yield f"{where}.{key}: {len(thing[key])} characters, 1 to {limit} allowed"
    for key, limit in shape.lists.items():
        if key in thing and not 1 <= len(thing[key]) <= limit:
            yield f"{where}.{key}: {len(thing[key])} entries, 1 to {limit} allowed"
    if thing.get("style") not in {None, "primary", "danger"}:
        yield f"{where}.style: {thing['style']!r}"
    yield from _children(kind, thing, where)


def _children(kind: str, thing: Mapping[str, Any], where: str) -> Iterator[str]:
    for at, field_text in enumerate(thing.get("fields", [])):
        yield from _text_faults(field_text, 2000, f"{where}.fields[{at}]", plain=False)
    for at, choice in enumerate(thing.get("options", [])):
        yield from _shape_faults("option", choice, f"{where}.options[{at}]")
    if isinstance(thing.get("confirm"), Mapping) and kind != "confirm":
        yield from _shape_faults("confirm", thing["confirm"], f"{where}.confirm")
    inner = list(thing.get("elements", []))
    inner += [thing[key] for key in ("accessory", "element") if key in thing]
    for at, element in enumerate(inner):
        yield from _element_faults(kind, element, f"{where}.elements[{at}]")


def _element_faults(block: str, element: Mapping[str, Any], where: str) -> Iterator[str]:
    kind = str(element.get("type"))
    if block == "context":
        yield from _text_faults(element, 3000, where, plain=False)
    elif kind in (INPUTS if block == "input" else INTERACTIVE):
        yield from _shape_faults(kind, element, where)
    else:
        yield f"{where}: {kind!r} is not an element that may stand in {block}"


def _text_faults(thing: Any, limit: int, where: str, *, plain: bool) -> Iterator[str]:
    if not isinstance(thing, Mapping) or thing.get("type") not in {"mrkdwn", "plain_text"}:
        yield f"{where}: not a text object"
        return
    if plain and thing["type"] != "plain_text":
        yield f"{where}: must be plain_text"
    allowed = {"type", "text", "emoji"} if thing["type"] == "plain_text" else {"type", "text", "verbatim"}
    if set(thing) - allowed:
        yield f"{where}: unknown {sorted(set(thing) - allowed)}"
    length = len(thing.get("text", ""))
    if not 1 <= length <= limit:
        yield f"{where}: {length} characters, 1 to {limit} allowed"


def _text_lengths(thing: Any) -> Iterator[int]:
    if isinstance(thing, Mapping):
        if thing.get("type") in {"mrkdwn", "plain_text"}:
            yield len(thing.get("text", ""))
        for value in thing.values():
            yield from _text_lengths(value)
    elif isinstance(thing, Sequence) and not isinstance(thing, str):
        for value in thing:
            yield from _text_lengths(value)


def builder_url(blocks: Sequence[Mapping[str, Any]]) -> str:
    """Where a person can look at these blocks."""
    return "https://app.slack.com/block-kit-builder/#" + quote(json.dumps({"blocks": list(blocks)}))
