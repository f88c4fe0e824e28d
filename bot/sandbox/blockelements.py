"""Slack's rules for what stands inside a block: text objects, options, buttons, selects, inputs.

Only finds; which element may stand in which block is the block's business.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Any


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CHOICES = "action_id confirm focus_on_load placeholder"
KEYS: dict[str, frozenset[str]] = {
    name: words(keys)
    for name, keys in {
        "button": "action_id text url value style confirm accessibility_label",
        "overflow": "action_id options confirm",
        "image": "image_url slack_file alt_text",
        "workflow_button": "action_id text workflow style accessibility_label",
        "static_select": f"{CHOICES} options option_groups initial_option",
        "external_select": f"{CHOICES} initial_option min_query_length",
        "users_select": f"{CHOICES} initial_user",
        "conversations_select": f"{CHOICES} initial_conversation default_to_current_conversation"
        " response_url_enabled filter",
        "channels_select": f"{CHOICES} initial_channel response_url_enabled",
        "multi_static_select": f"{CHOICES} options option_groups initial_options max_selected_items",
        "multi_external_select": f"{CHOICES} initial_options min_query_length max_selected_items",
        "multi_users_select": f"{CHOICES} initial_users max_selected_items",
        "multi_conversations_select": f"{CHOICES} initial_conversations default_to_current_conversation"
        " max_selected_items filter",
        "multi_channels_select": f"{CHOICES} initial_channels max_selected_items",
        "datepicker": f"{CHOICES} initial_date",
        "timepicker": f"{CHOICES} initial_time timezone",
        "datetimepicker": "action_id confirm focus_on_load initial_date_time",
        "checkboxes": "action_id options initial_options confirm focus_on_load",
        "radio_buttons": "action_id options initial_option confirm focus_on_load",
        "plain_text_input": "action_id initial_value multiline min_length max_length placeholder"
        " dispatch_action_config focus_on_load",
        "number_input": "action_id is_decimal_allowed initial_value min_value max_value placeholder"
        " dispatch_action_config focus_on_load",
        "email_text_input": "action_id initial_value placeholder dispatch_action_config focus_on_load",
        "url_text_input": "action_id initial_value placeholder dispatch_action_config focus_on_load",
        "rich_text_input": "action_id initial_value placeholder dispatch_action_config focus_on_load",
        "file_input": "action_id filetypes max_files",
    }.items()
}
OPTION_LIMITS = {"overflow": 5, "checkboxes": 10, "radio_buttons": 10}
TEXT_LENGTHS = {"value": 2000, "url": 3000, "accessibility_label": 75, "action_id": 255}


class Finder:
    """Collects what is wrong and where."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def __call__(self, message: str, pointer: str) -> None:
        self.errors.append(f"{message} [json-pointer:{pointer}]")

    def longer(self, value: Any, limit: int, pointer: str) -> None:
        if value is None:
            return
        if not isinstance(value, str):
            self("must be a string", pointer)
        elif len(value) > limit:
            self(f"must be less than {limit + 1} characters", pointer)

    def items(self, value: Any, least: int, most: int, pointer: str) -> None:
        if not isinstance(value, list):
            self("must provide an array", pointer)
        elif len(value) < least:
            self(f"no fewer than {least} items allowed", pointer)
        elif len(value) > most:
            self(f"no more than {most} items allowed", pointer)


def check_text(find: Finder, text: Any, at: str, limit: int, *, plain: bool = False) -> None:
    if not isinstance(text, dict):
        find("must provide an object", at)
        return
    kind = text.get("type")
    if kind not in ("plain_text", "mrkdwn") or (plain and kind != "plain_text"):
        find("must be plain_text" if plain else "must be plain_text or mrkdwn", f"{at}/type")
    allowed = {"type", "text", "emoji" if kind == "plain_text" else "verbatim"}
    for key in text.keys() - allowed:
        find(f"invalid additional property: {key}", at)
    if text.get("text") == "":
        find("must be more than 0 characters", f"{at}/text")
    elif not isinstance(text.get("text"), str):
        find("missing required field: text", at)
    find.longer(text.get("text"), limit, f"{at}/text")


def check_element(find: Finder, element: Any, at: str, allowed: AbstractSet[str]) -> None:
    kind = str(element.get("type")) if isinstance(element, dict) else ""
    if not isinstance(element, dict) or kind not in allowed or kind not in KEYS:
        find(f"unsupported type: {kind}", f"{at}/type")
        return
    for key in element.keys() - KEYS[kind] - {"type"}:
        find(f"invalid additional property: {key}", at)
    for key, limit in TEXT_LENGTHS.items():
        find.longer(element.get(key), limit, f"{at}/{key}")
    if element.get("placeholder") is not None:
        check_text(find, element["placeholder"], f"{at}/placeholder", 150, plain=True)
    if element.get("confirm") is not None:
        _check_confirm(find, element["confirm"], f"{at}/confirm")
    _check_choices(find, element, kind, at)
    _check_own_rules(find, element, kind, at)


def _check_own_rules(find: Finder, element: dict[str, Any], kind: str, at: str) -> None:
    if kind == "button":
        check_text(find, element.get("text"), f"{at}/text", 75, plain=True)
        if element.get("style") not in (None, "primary", "danger"):
            find("must be primary or danger", f"{at}/style")
    elif kind == "image":
        if not element.get("image_url") and not element.get("slack_file"):
            find("must define either `image_url` or `slack_file`", at)
        find.longer(element.get("image_url"), 3000, f"{at}/image_url")
        if not element.get("alt_text"):
            find("missing required field: alt_text", at)
        find.longer(element.get("alt_text"), 2000, f"{at}/alt_text")
    elif kind == "number_input" and not isinstance(element.get("is_decimal_allowed"), bool):
        find("missing required field: is_decimal_allowed", at)
    elif kind.endswith("_text_input"):
        find.longer(element.get("initial_value"), 3000, f"{at}/initial_value")
    for key, form in (("initial_date", r"\d{4}-\d\d-\d\d"), ("initial_time", r"\d\d:\d\d")):
        if element.get(key) is not None and not re.fullmatch(form, str(element[key])):
            find("must be a valid date or time", f"{at}/{key}")


def _check_choices(find: Finder, element: dict[str, Any], kind: str, at: str) -> None:
    if "options" not in KEYS[kind]:
        return
    options, groups = element.get("options"), element.get("option_groups")
    if groups is not None:
        find.items(groups, 1, 100, f"{at}/option_groups")
        for number, group in enumerate(groups if isinstance(groups, list) else []):
            where = f"{at}/option_groups/{number}"
            if not isinstance(group, dict):
                find("must provide an object", where)
                continue
            check_text(find, group.get("label"), f"{where}/label", 75, plain=True)
            _check_options(find, group.get("options"), kind, f"{where}/options")
    else:
        _check_options(find, options, kind, f"{at}/options")
    _check_initial(find, element, at)


def _check_options(find: Finder, options: Any, kind: str, at: str) -> None:
    find.items(options, 1, OPTION_LIMITS.get(kind, 100), at)
    for number, option in enumerate(options if isinstance(options, list) else []):
        where = f"{at}/{number}"
        if not isinstance(option, dict):
            find("must provide an object", where)
            continue
        keys = {"text", "value", "description"} | ({"url"} if kind == "overflow" else set())
        for key in option.keys() - keys:
            find(f"invalid additional property: {key}", where)
        styled = kind in ("checkboxes", "radio_buttons")
        check_text(find, option.get("text"), f"{where}/text", 75, plain=not styled)
        if option.get("description") is not None:
            check_text(find, option["description"], f"{where}/description", 75, plain=not styled)
        if not isinstance(option.get("value"), str):
            find("missing required field: value", where)
        find.longer(option.get("value"), 150, f"{where}/value")


def _check_initial(find: Finder, element: dict[str, Any], at: str) -> None:
    """An initial option must be one of the options, to the letter."""
    options = _list(element.get("options"))
    for group in _list(element.get("option_groups")):
        options += _list(group.get("options") if isinstance(group, dict) else None)
    chosen = _list(element.get("initial_options"))
    if element.get("initial_option") is not None:
        chosen.append(element["initial_option"])
    if any(option not in options for option in chosen):
        find("initial option does not match any of the options", at)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else []


def _check_confirm(find: Finder, confirm: Any, at: str) -> None:
    if not isinstance(confirm, dict):
        find("must provide an object", at)
        return
    for key in confirm.keys() - {"title", "text", "confirm", "deny", "style"}:
        find(f"invalid additional property: {key}", at)
    limits = {"title": 100, "text": 300, "confirm": 30, "deny": 30}
    for key, limit in limits.items():
        if key in ("title", "text", "confirm") or confirm.get(key) is not None:
            check_text(find, confirm.get(key), f"{at}/{key}", limit, plain=key != "text")
