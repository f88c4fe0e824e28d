"""Modals in general: opened in time, reopened, answered inline, closed; against a real socket."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bot.sandbox.content import visible_text
from bot.sandbox.hands import Hands
from bot.sandbox.state import View as Shown
from bot.slack.commands import Commands
from bot.slack.identity import Asker
from bot.slack.message import Message, actions, button, note, plain_text, section
from bot.slack.modals import opening
from bot.slack.modals.opening import Done, View, Wrong
from bot.slack.modals.values import Values, many, read_values, text
from engine.errors import NotFound
from tests.slack.conftest import Desk, until


def an_input(block_id: str, element: dict[str, Any]) -> dict[str, Any]:
    return {"type": "input", "block_id": block_id, "label": plain_text(block_id), "element": element}


class Greeting:
    """A form with one input and a button; what is typed decides how it ends."""

    name = "greeting"

    def __init__(self) -> None:
        self.slow = asyncio.Event()
        self.slow.set()
        self.seen: list[tuple[str, Any]] = []

    async def view(self, asker: Asker, about: opening.About) -> View:
        await self.slow.wait()
        typed = {"type": "plain_text_input", "action_id": "said"}
        more = actions("more", [button("louder", "Louder", "1")])
        return View("Greeting", [an_input("words", typed), more], about, submit="Say")

    async def press(self, action: Any, values: Values, asker: Asker, about: opening.About) -> View | None:
        self.seen.append((action["action_id"], text(values, "words")))
        if about.get("gone"):
            raise NotFound("The schedule was <deleted>.")
        view = await self.view(asker, about)
        return View(view.title, [section("Louder!"), *view.blocks], {"loud": 1}, submit="Say")

    async def submit(self, values: Values, asker: Asker, about: opening.About) -> View | Wrong | Done:
        await self.slow.wait()
        said = text(values, "words")
        match said:
            case "wrong":
                return Wrong({"words": "Say something else."})
            case "gone":
                raise NotFound("There is no such schedule any more.")
            case "broken":
                raise ZeroDivisionError
            case "next":
                return View("Second", [section("Step two")], about, submit=None)
        return Done(note(f"{said} {about}"))


@pytest.fixture
def greeting() -> Greeting:
    return Greeting()


@pytest.fixture
async def online(desk: Desk, greeting: Greeting, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """`/page` opens the form of these tests."""
    desk.slack.modals._forms["greeting"] = greeting

    async def run(_self: Commands, _name: str, words: str, asker: Asker) -> Message | None:
        return await desk.slack.modals.open(asker, "greeting", {"gone": 1} if words else {})

    monkeypatch.setattr(Commands, "run", run)
    await desk.connect()
    return desk


def modals(desk: Desk, user: str = "ana") -> list[Shown]:
    found = desk.sandbox.state.find_user(f"@{user}")
    assert found is not None
    return desk.sandbox.state.modals.get(found.id) or []


async def submits(desk: Desk, words: str, user: str = "ana") -> dict[str, Any]:
    found = desk.sandbox.state.find_user(f"@{user}")
    assert found is not None
    (view,) = modals(desk, user)
    return await Hands(desk.sandbox.world).submit(found, view, {"words": {"said": words}})


async def presses(desk: Desk) -> None:
    found = desk.sandbox.state.find_user("@ana")
    assert found is not None
    (view,) = modals(desk)
    seen = await Hands(desk.sandbox.world).click_in_view(
        found, view, "louder", None, {"words": {"said": "x"}}
    )
    assert seen.error is None


async def test_a_modal_from_command_to_answer(online: Desk) -> None:
    """It opens without another word, closes when it is done, and the answer stands where it was asked."""
    assert await online.types("ana", "/page") == ""
    (view,) = modals(online)
    assert view.body["title"]["text"] == "Greeting"
    assert (await submits(online, "hello"))["response_action"] == "clear"
    assert modals(online) == []
    await until(lambda: online.whispers("ana", "#general") == ["hello {}"])


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("wrong", "Say something else."),
        ("gone", "There is no such schedule any more."),
        ("broken", "Your action was NOT applied. Ref "),
    ],
)
async def test_what_is_wrong_is_said_inline(online: Desk, words: str, error: str) -> None:
    """The modal stays with what was typed, and the error stands at its input."""
    await online.types("ana", "/page")
    answer = await submits(online, words)
    assert error in answer["errors"]["words"]
    assert len(modals(online)) == 1


async def test_the_next_step_takes_the_place_of_the_first(online: Desk) -> None:
    """A form of several steps is one view that changes."""
    await online.types("ana", "/page")
    assert (await submits(online, "next"))["ok"]
    (view,) = modals(online)
    assert view.body["title"]["text"] == "Second"


async def test_a_press_changes_the_view_and_keeps_what_was_typed(online: Desk, greeting: Greeting) -> None:
    """A button inside of a modal may change it and what it remembers."""
    await online.types("ana", "/page")
    await presses(online)
    await until(lambda: "Louder!" in str(modals(online)[0].body["blocks"]))
    assert greeting.seen == [("louder", "x")]
    await submits(online, "hello")
    await until(lambda: online.whispers("ana", "#general") == ["hello {'loud': 1}"])


async def test_a_press_that_is_refused_is_said_in_the_modal(online: Desk) -> None:
    """A banner above what was there, escaped."""
    await online.types("ana", "/page gone")
    await presses(online)
    await until(lambda: "The schedule was &lt;deleted&gt;." in str(modals(online)[0].body["blocks"]))


async def test_an_expired_trigger_leaves_a_button_that_opens_it(online: Desk) -> None:
    """Slack refuses to open a modal after three seconds; a click gives a new trigger."""
    online.breaks("expired_trigger_id", method="views.open")
    answer = await online.types("ana", "/page")
    assert "That took too long for Slack: nothing was changed." in answer
    online.mends()
    user = online.sandbox.state.users["U0ANA"]
    (message,) = [m for m in online.said("#general", user.id) if m.ephemeral_to == user.id]
    await online.clicks("ana", message, opening.REOPEN)
    await until(lambda: len(modals(online)) == 1)


async def test_a_slow_modal_opens_empty_first(online: Desk, greeting: Greeting) -> None:
    """The trigger is used in time, and what took longer is filled in."""
    greeting.slow.clear()
    typing = asyncio.create_task(online.types("ana", "/page"))
    await until(lambda: bool(modals(online)))
    assert "Loading" in str(modals(online)[0].body["blocks"])
    greeting.slow.set()
    await until(lambda: modals(online)[0].body["title"]["text"] == "Greeting")
    await typing


async def test_a_slow_submission_says_working_and_then_how_it_ended(online: Desk, greeting: Greeting) -> None:
    """Slack gets its answer in three seconds, and the person the truth when it is known."""
    await online.types("ana", "/page")
    online.slack._answering._soon = 0.05
    greeting.slow.clear()
    assert (await submits(online, "hello"))["ok"]
    assert "Working" in str(modals(online)[0].body["blocks"])
    greeting.slow.set()
    await until(lambda: "hello {}" in str(modals(online)[0].body["blocks"]))


async def test_a_mention_gets_a_button(online: Desk) -> None:
    """In a thread there is no trigger: the form opens by a button there."""
    await online.says("ana", "@midwatch override", "#payments")
    await until(lambda: len(online.said("#payments")) == 1)
    (message,) = online.said("#payments")
    assert "Fill it in here" in visible_text(message)
    await online.clicks("ana", message, opening.REOPEN)
    await until(lambda: len(modals(online)) == 1)


def test_values_are_read_from_every_kind_of_input() -> None:
    """What Slack calls selected_user or selected_options is one value, or a list."""
    state = {
        "who": {"a": {"type": "users_select", "selected_user": "U1"}},
        "days": {"a": {"type": "checkboxes", "selected_options": [{"value": "mon"}, {"value": "tue"}]}},
        "kind": {"a": {"type": "static_select", "selected_option": {"value": "week"}}},
        "none": {"a": {"type": "datepicker", "selected_date": None}},
        "words": {"a": {"type": "plain_text_input", "value": " x "}, "b": {"type": "timepicker"}},
    }
    values = read_values({"state": {"values": state}})
    assert [text(values, name) for name in ("who", "kind", "none", "words")] == ["U1", "week", "", "x"]
    assert many(values, "days") == ["mon", "tue"]
    assert values["words.b"] is None
