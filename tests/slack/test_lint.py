"""The linter sees what Slack would refuse, also what the library's own models let pass."""

from __future__ import annotations

from typing import Any

import pytest

from bot.slack.lint import builder_url, lint_message, lint_view
from bot.slack.message import Message, button, context, mrkdwn, option, overflow, plain_text, section


def message(*blocks: dict[str, Any], text: str = "t") -> Message:
    return Message(text, blocks)


def actions(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "actions", "block_id": "b", "elements": list(elements)}


GOOD = button("a", "Go", "1")

FAULTY = {
    "no fallback text": message(section("x"), text=" "),
    "text too long": message(text="x" * 4001),
    "51 blocks": message(*[section("x")] * 51),
    "too much text": message(*[section("x" * 2900)] * 5),
    "empty text": message(section("")),
    "section 3001": message(section("x" * 3001)),
    "section without anything": message({"type": "section"}),
    "field 2001": message({"type": "section", "fields": [mrkdwn("x" * 2001)]}),
    "11 fields": message({"type": "section", "fields": [mrkdwn("x")] * 11}),
    "header in mrkdwn": message({"type": "header", "text": mrkdwn("x")}),
    "header 151": message({"type": "header", "text": plain_text("x" * 151)}),
    "11 context elements": message(context(*["x"] * 11)),
    "26 actions": message(actions(*[button(f"a{at}", "Go", "1") for at in range(26)])),
    "no actions": message(actions()),
    "twice the action id": message(actions(GOOD, GOOD)),
    "twice the block id": message(section("x", block_id="b"), section("x", block_id="b")),
    "block id 256": message(section("x", block_id="b" * 256)),
    "button text 76": message(actions(button("a", "x" * 76, "1"))),
    "button value 2001": message(actions(button("a", "Go", "1" * 2001))),
    "button style": message(actions(button("a", "Go", "1", "warning"))),
    "no options": message(actions(overflow("a", []))),
    "6 options": message(actions(overflow("a", [option("x", str(at)) for at in range(6)]))),
    "option text 76": message(actions(overflow("a", [option("x" * 76, "1")]))),
    "option value 76": message(actions(overflow("a", [option("x", "1" * 76)]))),
    "unknown block": message({"type": "sektion", "text": mrkdwn("x")}),
    "unknown key": message({**section("x"), "colour": "red"}),
    "unknown element": message(actions({"type": "knob", "action_id": "a"})),
    "emoji on mrkdwn": message({"type": "section", "text": {**mrkdwn("x"), "emoji": True}}),
    "input in a message": message({"type": "input", "label": plain_text("x"), "element": GOOD}),
    "confirm 301": message(
        actions(
            GOOD
            | {"confirm": {"title": plain_text("x"), "text": mrkdwn("x" * 301), "confirm": plain_text("y")}}
        )
    ),
    "unknown in an attachment": Message("t", (), ({"color": "#fff", "footer": "x"},)),
    "fault inside an attachment": Message("t", (), ({"blocks": [section("")]},)),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_message_is_seen(name: str) -> None:
    """Each fault is reported as one sentence."""
    assert len(lint_message(FAULTY[name])) == 1


def test_a_good_message_has_no_fault() -> None:
    """Nothing is reported where nothing is wrong."""
    assert lint_message(message(section("x"), actions(GOOD, overflow("m", [option("x", "1")])))) == []


MODAL: dict[str, Any] = {"type": "modal", "title": plain_text("Page"), "blocks": [section("x")]}
ENTRY = {
    "type": "input",
    "label": plain_text("What"),
    "element": {"type": "plain_text_input", "action_id": "a"},
}


@pytest.mark.parametrize(
    "view",
    [
        MODAL | {"title": plain_text("x" * 25)},
        {key: MODAL[key] for key in ("type", "blocks")},
        MODAL | {"blocks": [ENTRY]},
        MODAL | {"blocks": []},
        MODAL | {"blocks": [section("x")] * 101},
        MODAL | {"private_metadata": "x" * 3001},
        MODAL | {"external_id": "x" * 256},
        MODAL | {"type": "drawer"},
        {"type": "home", "blocks": [section("")]},
    ],
)
def test_a_faulty_view_is_seen(view: dict[str, Any]) -> None:
    """Each fault of a modal or home tab is reported."""
    assert len(lint_view(view)) == 1


def test_a_good_view_has_no_fault() -> None:
    """A modal with an input and a submit button passes."""
    assert lint_view(MODAL | {"blocks": [ENTRY], "submit": plain_text("Page")}) == []


def test_faults_can_be_looked_at() -> None:
    """The link to Slack's builder holds the blocks."""
    assert "%22section%22" in builder_url([section("x")])
