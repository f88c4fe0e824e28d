"""What a person chose or typed in an element, in the form in which Slack reports it.

Turns plain values ("2h", "@ben", an option's value) into Slack's; never checks what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bot.sandbox.state import Json, Workspace

PICKED = {
    "users_select": "user",
    "conversations_select": "conversation",
    "channels_select": "channel",
    "datepicker": "date",
    "timepicker": "time",
    "datetimepicker": "date_time",
}
PICKED_MANY = {
    "multi_users_select": "users",
    "multi_conversations_select": "conversations",
    "multi_channels_select": "channels",
}
ONE_OPTION = ("static_select", "external_select", "radio_buttons", "overflow")
MANY_OPTIONS = ("multi_static_select", "multi_external_select", "checkboxes")


class NoSuchChoice(ValueError):
    """The element does not offer this."""


def chosen(space: Workspace, element: Json, value: Any) -> Json:
    """The part of an action or of `state.values` that says what was chosen; None: nothing was."""
    kind = element["type"]
    if isinstance(value, dict) and _is_slack_form(value):
        return {"type": kind, **value}
    if kind in ONE_OPTION:
        return {"type": kind, "selected_option": None if value is None else _option(element, value)}
    if kind in MANY_OPTIONS:
        return {"type": kind, "selected_options": [_option(element, v) for v in _many(value)]}
    if kind in PICKED:
        return {"type": kind, f"selected_{PICKED[kind]}": _named(space, kind, value)}
    if kind in PICKED_MANY:
        picked = [_named(space, kind.removeprefix("multi_"), v) for v in _many(value)]
        return {"type": kind, f"selected_{PICKED_MANY[kind]}": picked}
    return {"type": kind, "value": None if value in (None, "") else str(value)}


def initial(element: Json) -> Json:
    """What the element holds before anybody touches it."""
    kind = element["type"]
    if kind in ONE_OPTION:
        return {"type": kind, "selected_option": element.get("initial_option")}
    if kind in MANY_OPTIONS:
        return {"type": kind, "selected_options": list(element.get("initial_options") or [])}
    for names, empty in ((PICKED, None), (PICKED_MANY, [])):
        if kind in names:
            return {"type": kind, f"selected_{names[kind]}": element.get(f"initial_{names[kind]}", empty)}
    return {"type": kind, "value": element.get("initial_value")}


def is_empty(part: Mapping[str, Any]) -> bool:
    return not any(value for key, value in part.items() if key != "type")


def inputs(view: Json) -> Iterator[tuple[Json, Json]]:
    """Every block with an element whose state Slack keeps, and that element."""
    for block in view["blocks"]:
        candidates = [block.get("element"), block.get("accessory")]
        if block["type"] == "actions":
            candidates += block["elements"]
        for element in candidates:
            if isinstance(element, dict) and element["type"] not in ("button", "image", "overflow"):
                yield block, element


def state_values(space: Workspace, view: Json, values: Mapping[str, Any]) -> Json:
    """`state.values`: what was given, else what was there, else what the app suggested."""
    before = view.get("state", {}).get("values", {})
    state: Json = {}
    for block, element in inputs(view):
        block_id, action_id = block["block_id"], element["action_id"]
        given, value = _given(values, block_id, action_id)
        if given:
            part = chosen(space, element, value)
        else:
            part = before.get(block_id, {}).get(action_id) or initial(element)
        state.setdefault(block_id, {})[action_id] = part
    return state


def missing(view: Json, state: Json) -> dict[str, str]:
    """The required inputs that are empty: Slack's own client does not let such a form go."""
    return {
        block["block_id"]: "Please complete this required field."
        for block in view["blocks"]
        if block["type"] == "input"
        and not block.get("optional")
        and is_empty(state[block["block_id"]][block["element"]["action_id"]])
    }


def _given(values: Mapping[str, Any], block_id: str, action_id: str) -> tuple[bool, Any]:
    inner = values.get(block_id)
    if isinstance(inner, Mapping) and action_id in inner:
        return True, inner[action_id]
    return action_id in values, values.get(action_id)


def _is_slack_form(value: Json) -> bool:
    return any(key == "value" or key.startswith("selected_") for key in value) and "text" not in value


def _many(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _option(element: Json, value: Any) -> Json:
    wanted = value.get("value") if isinstance(value, dict) else value
    options = list(element.get("options") or [])
    for group in element.get("option_groups") or []:
        options += group["options"]
    for option in options:
        if option["value"] == wanted or option["text"]["text"] == wanted:
            return dict(option)
    if "external" in element["type"]:
        plain = {"text": {"type": "plain_text", "text": str(wanted)}, "value": str(wanted)}
        return dict(value) if isinstance(value, dict) else plain
    offered = ", ".join(option["value"] for option in options)
    raise NoSuchChoice(f"{element['action_id']} has no option {wanted!r}; it offers {offered}")


def _named(space: Workspace, kind: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if kind == "users_select":
        user = space.find_user(value)
        return user.id if user else value
    if kind in ("conversations_select", "channels_select"):
        channel = space.find_channel(value)
        return channel.id if channel else value
    return value or None
