"""Modals and home tabs beyond the first submit: stacks, hashes, closing, home."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.server import SandboxServer
from tests.sandbox.conftest import Script

MODAL = {
    "type": "modal",
    "callback_id": "plain",
    "notify_on_close": True,
    "title": {"type": "plain_text", "text": "Plain"},
    "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "one"}}],
}
HOME = {"type": "home", "blocks": MODAL["blocks"]}


async def refused(call: Any) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])


async def test_a_stack_is_three_views_deep(slack: AsyncWebClient, sandbox: SandboxServer) -> None:
    """The fourth view is push_limit_reached."""
    new_trigger = sandbox.world.vouchers.new_trigger
    await slack.views_open(trigger_id=new_trigger("U0ANA"), view=MODAL)
    for _ in range(2):
        await slack.views_push(trigger_id=new_trigger("U0ANA"), view=MODAL)
    assert (
        await refused(slack.views_push(trigger_id=new_trigger("U0ANA"), view=MODAL)) == "push_limit_reached"
    )
    assert len(sandbox.state.modals["U0ANA"]) == 3


async def test_an_update_with_an_old_hash_is_refused(slack: AsyncWebClient, sandbox: SandboxServer) -> None:
    """Of two updates that began from the same view, the second is told hash_conflict."""
    trigger = sandbox.world.vouchers.new_trigger("U0ANA")
    view = (await slack.views_open(trigger_id=trigger, view=MODAL))["view"]
    await slack.views_update(view_id=view["id"], hash=view["hash"], view=MODAL)
    again = slack.views_update(view_id=view["id"], hash=view["hash"], view=MODAL)
    assert await refused(again) == "hash_conflict"
    assert await refused(slack.views_update(view_id="V0", view=MODAL)) == "not_found"


async def test_a_submission_may_push_update_and_clear(connected: AsyncApp, script: Script) -> None:
    """Each response_action does what it says to the stack."""
    answers: list[dict[str, Any]] = []

    @connected.command("/page")
    async def page(ack: Any, client: AsyncWebClient, command: dict[str, Any]) -> None:
        await ack()
        await client.views_open(trigger_id=command["trigger_id"], view=MODAL)

    @connected.view("plain")
    async def submitted(ack: Any) -> None:
        await ack(**answers.pop(0))

    opened = await script.post("command", user="ana", channel="#ops", text="/page")
    changed = {**MODAL, "title": {"type": "plain_text", "text": "Changed"}}
    answers += [
        {"response_action": "update", "view": changed},
        {"response_action": "push", "view": MODAL},
        {"response_action": "clear"},
    ]
    await script.post("submit", user="ana", view_id=opened["view_id"], values={})
    (view,) = (await script.get("views", user="ana"))["modals"]
    assert (view["id"], view["title"]["text"]) == (opened["view_id"], "Changed")
    await script.post("submit", user="ana", view_id=view["id"], values={})
    modals = (await script.get("views", user="ana"))["modals"]
    assert modals[1]["previous_view_id"] == view["id"]
    await script.post("submit", user="ana", view_id=modals[1]["id"], values={})
    assert (await script.get("views", user="ana"))["modals"] == []


async def test_closing_is_told_to_the_app(
    connected: AsyncApp, script: Script, slack: AsyncWebClient, sandbox: SandboxServer
) -> None:
    """A closed modal is gone, and the app hears of it when it asked to."""
    closed: asyncio.Queue[str] = asyncio.Queue()

    @connected.view_closed("plain")
    async def gone(ack: Any, view: dict[str, Any]) -> None:
        await ack()
        closed.put_nowait(view["id"])

    trigger = sandbox.world.vouchers.new_trigger("U0ANA")
    view = (await slack.views_open(trigger_id=trigger, view=MODAL))["view"]
    await script.post("close", user="ana", view_id=view["id"])
    async with asyncio.timeout(5):
        assert await closed.get() == view["id"]
    assert (await script.get("views", user="ana"))["modals"] == []


async def test_home_is_published_when_it_is_opened(connected: AsyncApp, script: Script) -> None:
    """Opening Home tells the app, and what it publishes is shown, with buttons that work."""
    pressed: asyncio.Queue[str] = asyncio.Queue()
    button = {"type": "button", "action_id": "go", "text": {"type": "plain_text", "text": "Go"}, "value": "7"}
    home = {**HOME, "blocks": [*HOME["blocks"], {"type": "actions", "elements": [button]}]}

    @connected.event("app_home_opened")
    async def opened(event: dict[str, Any], client: AsyncWebClient) -> None:
        await client.views_publish(user_id=event["user"], view=home)
        pressed.put_nowait("published")

    @connected.action("go")
    async def go(ack: Any, action: dict[str, Any]) -> None:
        await ack()
        pressed.put_nowait(action["value"])

    await script.post("home", user="ana")
    async with asyncio.timeout(5):
        assert await pressed.get() == "published"
    shown = (await script.get("views", user="ana"))["home"]
    await script.post("click", user="ana", view_id=shown["id"], action_id="go")
    async with asyncio.timeout(5):
        assert await pressed.get() == "7"


async def test_a_choice_that_is_not_offered_is_named(
    connected: AsyncApp, slack: AsyncWebClient, script: Script
) -> None:
    """A script that picks an option which is not there is told which are."""
    overflow = {
        "type": "overflow",
        "action_id": "more",
        "options": [{"text": {"type": "plain_text", "text": "Escalate"}, "value": "escalate:42"}],
    }
    picked: list[str] = []

    @connected.action("more")
    async def more(ack: Any, action: dict[str, Any]) -> None:
        await ack()
        picked.append(action["selected_option"]["value"])

    blocks = [{"type": "actions", "elements": [overflow]}]
    posted = await slack.chat_postMessage(channel="C0OPS", text="card", blocks=blocks)
    place = {"user": "ana", "channel": "C0OPS", "ts": posted["ts"], "action_id": "more"}
    wrong = await script.post("click", status=400, value="resolve:42", **place)
    assert "escalate:42" in wrong["error"]
    await script.post("click", value="Escalate", **place)
    assert picked == ["escalate:42"]


async def test_a_user_group_is_replaced_and_never_emptied(slack: AsyncWebClient) -> None:
    """usergroups.users.update replaces the list; an empty list and a guest are refused."""
    await slack.usergroups_users_update(usergroup="S0PAYMENTS", users=["U0BEN", "U0CHO"])
    groups = (await slack.usergroups_list(include_users=True))["usergroups"]
    assert groups[0]["users"] == ["U0BEN", "U0CHO"]
    empty = slack.usergroups_users_update(usergroup="S0PAYMENTS", users="")
    assert await refused(empty) == "no_users_provided"
    guest = slack.usergroups_users_update(usergroup="S0PAYMENTS", users=["U0GUS"])
    assert await refused(guest) == "invalid_users"
