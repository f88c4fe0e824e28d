"""Slack's rules for blocks and views, as Slack enforces them.

Answers in Slack's form ("must be less than 76 characters [json-pointer:/blocks/0/…]"). Never
changes what it reads, and never renders it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from bot.sandbox.blockelements import Finder, check_element, check_text, words

MESSAGE_BLOCKS = 50
VIEW_BLOCKS = 100
MESSAGE_TEXT = 13_200  # nowhere documented; what Slack was seen to refuse as msg_blocks_too_long
MARKDOWN_TEXT = 12_000
VIEW_BYTES = 250_000

ACTIONS = words(
    "button overflow static_select external_select users_select conversations_select channels_select"
    " datepicker timepicker datetimepicker checkboxes radio_buttons workflow_button"
)
MULTI_SELECTS = words(
    "multi_static_select multi_external_select multi_users_select multi_conversations_select"
    " multi_channels_select"
)
INPUTS = (
    (ACTIONS - {"button", "overflow", "workflow_button"})
    | MULTI_SELECTS
    | words("plain_text_input number_input email_text_input url_text_input rich_text_input file_input")
)
ACCESSORIES = ACTIONS | MULTI_SELECTS | {"image"}

KEYS: dict[str, frozenset[str]] = {
    "section": frozenset({"text", "fields", "accessory", "expand"}),
    "header": frozenset({"text", "level"}),
    "divider": frozenset(),
    "context": frozenset({"elements"}),
    "actions": frozenset({"elements"}),
    "image": frozenset({"image_url", "slack_file", "alt_text", "title"}),
    "input": frozenset({"label", "element", "hint", "optional", "dispatch_action"}),
    "rich_text": frozenset({"elements"}),
    "markdown": frozenset({"text"}),
    "table": frozenset({"rows", "column_settings"}),
    "video": words(
        "alt_text author_name description provider_icon_url provider_name title title_url thumbnail_url"
        " video_url"
    ),
    "file": frozenset({"external_id", "source"}),
}
ONLY_IN_MESSAGES = frozenset({"markdown", "table", "file"})
VIEW_KEYS = words(
    "type title submit close blocks private_metadata callback_id external_id clear_on_close"
    " notify_on_close submit_disabled"
)


def lint_message(blocks: Any, pointer: str = "/blocks") -> list[str]:
    """What is wrong with the blocks of a message or of an attachment."""
    return _lint_blocks(blocks, pointer, MESSAGE_BLOCKS, in_message=True)


def lint_view(view: Any) -> list[str]:
    find = Finder()
    if not isinstance(view, dict):
        return ["must provide an object [json-pointer:/view]"]
    kind = view.get("type")
    if kind not in ("modal", "home"):
        find("must be a valid view type", "/view/type")
    for key in view.keys() - VIEW_KEYS:
        find(f"invalid additional property: {key}", "/view")
    for key, limit in (("private_metadata", 3000), ("callback_id", 255), ("external_id", 255)):
        find.longer(view.get(key), limit, f"/view/{key}")
    if kind == "modal":
        _lint_modal(find, view)
    return find.errors + _lint_blocks(view.get("blocks"), "/view/blocks", VIEW_BLOCKS, in_message=False)


def view_too_large(view: Any) -> bool:
    return len(json.dumps(view, ensure_ascii=False).encode()) > VIEW_BYTES


def text_length(blocks: Sequence[Any]) -> int:
    """All the text that the blocks show, which has a limit of its own."""
    if isinstance(blocks, str | bytes):
        return 0
    total = 0
    for part in blocks:
        if isinstance(part, dict):
            total += sum(len(v) for k, v in part.items() if k == "text" and isinstance(v, str))
            total += text_length(list(part.values()))
        elif isinstance(part, list):
            total += text_length(part)
    return total


def _lint_modal(find: Finder, view: dict[str, Any]) -> None:
    if view.get("title") is None:
        find("missing required field: title", "/view")
    for key in ("title", "submit", "close"):
        if view.get(key) is not None:
            check_text(find, view[key], f"/view/{key}", 24, plain=True)
    blocks = view.get("blocks")
    has_input = isinstance(blocks, list) and any(
        isinstance(block, dict) and block.get("type") == "input" for block in blocks
    )
    if has_input and view.get("submit") is None:
        find("missing required field: submit (there are input blocks)", "/view")


def _lint_blocks(blocks: Any, pointer: str, limit: int, *, in_message: bool) -> list[str]:
    find = Finder()
    if not isinstance(blocks, list):
        find("must provide an array", pointer)
        return find.errors
    if len(blocks) > limit:
        find(f"no more than {limit} items allowed", pointer)
    if not in_message and not blocks:
        find("must provide at least 1 item", pointer)
    seen: set[str] = set()
    for number, block in enumerate(blocks[: limit + 1]):
        _lint_block(find, block, f"{pointer}/{number}", in_message=in_message)
        block_id = block.get("block_id") if isinstance(block, dict) else None
        if isinstance(block_id, str) and block_id in seen:
            find(f"`block_id` already exists: {block_id}", f"{pointer}/{number}/block_id")
        elif isinstance(block_id, str):
            seen.add(block_id)
    markdown = [b for b in blocks if isinstance(b, dict) and b.get("type") == "markdown"]
    if text_length(markdown) > MARKDOWN_TEXT:
        find(f"markdown must be less than {MARKDOWN_TEXT + 1} characters in all", pointer)
    return find.errors


def _lint_block(find: Finder, block: Any, at: str, *, in_message: bool) -> None:
    if not isinstance(block, dict):
        find("must provide an object", at)
        return
    kind = str(block.get("type"))
    if kind not in KEYS or (kind in ONLY_IN_MESSAGES and not in_message):
        find(f"unsupported type: {kind}", f"{at}/type")
        return
    for key in block.keys() - KEYS[kind] - {"type", "block_id"}:
        find(f"invalid additional property: {key}", at)
    find.longer(block.get("block_id"), 255, f"{at}/block_id")
    if kind in LINTERS:
        LINTERS[kind](find, block, at)


def _section(find: Finder, block: dict[str, Any], at: str) -> None:
    text, fields = block.get("text"), block.get("fields")
    if text is None and not fields:
        find("must define either `text` or `fields`", at)
    if text is not None:
        check_text(find, text, f"{at}/text", 3000)
    if fields is not None:
        find.items(fields, 1, 10, f"{at}/fields")
        for number, item in enumerate(fields if isinstance(fields, list) else []):
            check_text(find, item, f"{at}/fields/{number}", 2000)
    if block.get("accessory") is not None:
        check_element(find, block["accessory"], f"{at}/accessory", ACCESSORIES)


def _header(find: Finder, block: dict[str, Any], at: str) -> None:
    check_text(find, block.get("text"), f"{at}/text", 150, plain=True)


def _context(find: Finder, block: dict[str, Any], at: str) -> None:
    elements = block.get("elements")
    find.items(elements, 1, 10, f"{at}/elements")
    for number, element in enumerate(elements if isinstance(elements, list) else []):
        where = f"{at}/elements/{number}"
        if isinstance(element, dict) and element.get("type") == "image":
            check_element(find, element, where, frozenset({"image"}))
        else:
            check_text(find, element, where, 3000)


def _actions(find: Finder, block: dict[str, Any], at: str) -> None:
    elements = block.get("elements")
    find.items(elements, 1, 25, f"{at}/elements")
    seen: set[str] = set()
    for number, element in enumerate(elements if isinstance(elements, list) else []):
        check_element(find, element, f"{at}/elements/{number}", ACTIONS)
        action_id = element.get("action_id") if isinstance(element, dict) else None
        if isinstance(action_id, str) and action_id in seen:
            find(f"`action_id` already exists: {action_id}", f"{at}/elements/{number}/action_id")
        elif isinstance(action_id, str):
            seen.add(action_id)


def _image(find: Finder, block: dict[str, Any], at: str) -> None:
    check_element(find, {k: v for k, v in block.items() if k not in ("block_id", "title")}, at, {"image"})
    if block.get("title") is not None:
        check_text(find, block["title"], f"{at}/title", 2000, plain=True)


def _input(find: Finder, block: dict[str, Any], at: str) -> None:
    check_text(find, block.get("label"), f"{at}/label", 2000, plain=True)
    if block.get("hint") is not None:
        check_text(find, block["hint"], f"{at}/hint", 2000, plain=True)
    check_element(find, block.get("element"), f"{at}/element", INPUTS)


def _markdown(find: Finder, block: dict[str, Any], at: str) -> None:
    if not isinstance(block.get("text"), str) or not block["text"]:
        find("must be more than 0 characters", f"{at}/text")


def _table(find: Finder, block: dict[str, Any], at: str) -> None:
    rows = block.get("rows")
    find.items(rows, 1, 100, f"{at}/rows")
    for number, row in enumerate(rows if isinstance(rows, list) else []):
        find.items(row, 1, 20, f"{at}/rows/{number}")


def _rich_text(find: Finder, block: dict[str, Any], at: str) -> None:
    if not isinstance(block.get("elements"), list):
        find("must provide an array", f"{at}/elements")


LINTERS: dict[str, Callable[[Finder, dict[str, Any], str], None]] = {
    "section": _section,
    "header": _header,
    "context": _context,
    "actions": _actions,
    "image": _image,
    "input": _input,
    "markdown": _markdown,
    "table": _table,
    "rich_text": _rich_text,
}
