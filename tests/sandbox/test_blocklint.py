"""Slack's limits: what is just allowed, what is one too many, and that nothing breaks the lint."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.sandbox.blocklint import lint_message, lint_view

Json = dict[str, Any]


def plain(length: int) -> Json:
    return {"type": "plain_text", "text": "x" * length}


def mrkdwn(length: int) -> Json:
    return {"type": "mrkdwn", "text": "x" * length}


def button(**changes: Any) -> Json:
    return {"type": "button", "action_id": "a", "text": plain(75), **changes}


def actions(*elements: Json) -> Json:
    return {"type": "actions", "elements": list(elements)}


def options(count: int, length: int = 75) -> list[Json]:
    return [{"text": plain(length), "value": str(number)} for number in range(count)]


def buttons(count: int) -> Json:
    return actions(*(button(action_id=str(number)) for number in range(count)))


ALLOWED = [
    {"type": "section", "text": mrkdwn(3000)},
    {"type": "section", "fields": [mrkdwn(2000)] * 10},
    {"type": "section", "text": mrkdwn(1), "accessory": button()},
    {"type": "header", "text": plain(150)},
    {"type": "context", "elements": [mrkdwn(1)] * 10},
    {"type": "markdown", "text": "x" * 12_000},
    {"type": "divider", "block_id": "b" * 255},
    buttons(25),
    actions(button(value="v" * 2000, url="https://e.example/" + "u" * 2000, style="danger")),
    actions({"type": "overflow", "action_id": "o", "options": options(5)}),
    actions({"type": "static_select", "action_id": "s", "options": options(100), "placeholder": plain(150)}),
]
REFUSED = [
    {"type": "section", "text": mrkdwn(3001)},
    {"type": "section", "text": mrkdwn(0)},
    {"type": "section"},
    {"type": "section", "fields": [mrkdwn(1)] * 11},
    {"type": "section", "fields": [mrkdwn(2001)]},
    {"type": "section", "text": {**mrkdwn(1), "emoji": True}},
    {"type": "section", "text": mrkdwn(1), "colour": "red"},
    {"type": "header", "text": plain(151)},
    {"type": "header", "text": mrkdwn(1)},
    {"type": "context", "elements": [mrkdwn(1)] * 11},
    {"type": "context", "elements": []},
    {"type": "markdown", "text": "x" * 12_001},
    {"type": "divider", "block_id": "b" * 256},
    {"type": "nope"},
    buttons(26),
    actions(button(), button()),
    actions(button(text=plain(76))),
    actions(button(value="v" * 2001)),
    actions(button(url="u" * 3001)),
    actions(button(style="warning")),
    actions(button(action_id="a" * 256)),
    actions(button(confirm={"title": plain(101), "text": plain(1), "confirm": plain(1)})),
    actions({"type": "plain_text_input", "action_id": "p"}),
    actions({"type": "overflow", "action_id": "o", "options": options(6)}),
    actions({"type": "static_select", "action_id": "s", "options": options(101)}),
    actions({"type": "static_select", "action_id": "s", "options": options(1, 76)}),
    actions({"type": "static_select", "action_id": "s", "options": options(1), "placeholder": plain(151)}),
    actions(
        {
            "type": "static_select",
            "action_id": "s",
            "options": options(1),
            "initial_option": {"text": plain(1), "value": "other"},
        }
    ),
]


@pytest.mark.parametrize("block", ALLOWED, ids=lambda block: block["type"])
def test_what_slack_just_allows(block: Json) -> None:
    """At its limit a block is fine."""
    assert lint_message([block]) == []


@pytest.mark.parametrize("block", REFUSED, ids=lambda block: block["type"])
def test_what_is_one_too_many(block: Json) -> None:
    """Past a limit, or with a wrong or unknown part, it is refused, with the place."""
    errors = lint_message([block])
    assert errors
    assert all("[json-pointer:/blocks" in error for error in errors)


def test_the_same_block_id_twice() -> None:
    """block_id is unique in a message."""
    assert lint_message([{"type": "divider", "block_id": "b"}] * 2)


FIELD = {
    "type": "input",
    "label": plain(10),
    "element": {"type": "plain_text_input", "action_id": "a", "initial_value": "x" * 3000},
}
MODAL = {
    "type": "modal",
    "title": plain(24),
    "submit": plain(24),
    "close": plain(24),
    "blocks": [FIELD] * 100,
}


@pytest.mark.parametrize(
    "change",
    [
        {"title": plain(25)},
        {"title": None},
        {"submit": plain(25)},
        {"submit": None},
        {"blocks": [FIELD] * 101},
        {"blocks": []},
        {"blocks": [{"type": "markdown", "text": "x"}]},
        {"private_metadata": "x" * 3001},
        {"callback_id": "x" * 256},
        {"external_id": "x" * 256},
        {"type": "message"},
        {"hash": "1"},
    ],
    ids=str,
)
def test_a_modal_has_limits_of_its_own(change: Json) -> None:
    """At its limits a modal is fine, and each step beyond is refused."""
    assert lint_view(MODAL) == []
    assert lint_view({**MODAL, **change})


KINDS = st.sampled_from(
    ["section", "actions", "input", "context", "image", "button", "overflow", "modal", "x"]
)
KEYS = st.sampled_from(
    ["type", "text", "elements", "element", "accessory", "options", "option_groups", "initial_option"]
) | st.sampled_from(["value", "confirm", "fields", "label", "blocks", "title", "action_id", "block_id"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | KINDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=30,
)


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_any_json_is_judged(value: Any) -> None:
    """Whatever is sent, the lint answers with a list and never fails."""
    assert isinstance(lint_message(value), list)
    assert isinstance(lint_message([value]), list)
    assert isinstance(lint_view(value), list)
