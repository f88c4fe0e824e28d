"""Socket Mode with the real Bolt app: commands, clicks, modals, events and what goes wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.server import SandboxServer
from tests.sandbox.conftest import Script
from tests.sandbox.test_messages import CARD

MODAL = {
    "type": "modal",
    "callback_id": "override",
    "title": {"type": "plain_text", "text": "Override"},
    "submit": {"type": "plain_text", "text": "Save"},
    "blocks": [
        {
            "type": "input",
            "block_id": "who",
            "label": {"type": "plain_text", "text": "Who"},
            "element": {"type": "users_select", "action_id": "user"},
        },
        {
            "type": "input",
            "block_id": "how_long",
            "optional": True,
            "label": {"type": "plain_text", "text": "How long"},
            "element": {"type": "plain_text_input", "action_id": "length", "initial_value": "2h"},
        },
    ],
}


async def test_a_ticket_lets_one_connection_in(sandbox: SandboxServer, http: aiohttp.ClientSession) -> None:
    """The second connection with the same ticket is refused, whatever became of the first."""
    client = AsyncWebClient(base_url=sandbox.api_url)
    url = (await client.apps_connections_open(app_token="xapp-demo"))["url"]
    async with http.ws_connect(url) as socket:
        hello = await socket.receive_json(timeout=5)
        assert (hello["type"], hello["num_connections"]) == ("hello", 1)
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        await http.ws_connect(url)
    assert caught.value.status == 403


async def test_the_ack_of_a_command_is_what_the_user_sees(
    connected: AsyncApp, script: Script, sandbox: SandboxServer
) -> None:
    """Mentions arrive as ids with labels, and the text of the ack comes back as an ephemeral message."""
    seen: list[str] = []

    @connected.command("/override")
    async def override(ack: Any, command: dict[str, Any]) -> None:
        seen.append(command["text"])
        await ack("done")

    text = "/override #payments @ben 2h & more."
    answer = await script.post("command", user="ana", channel="#general", text=text)
    assert (answer["ok"], answer["response"]) == (True, "done")
    assert seen == ["<#C0PAYMENTS|payments> <@U0BEN|ben> 2h &amp; more."]
    assert [m["text"] for m in await script.messages("#general", user="ana")] == ["done"]
    assert await script.messages("#general", user="ben") == []
    (ack,) = sandbox.ledger.acks("slash_commands")
    assert (ack.name, ack.error) == ("/override", None)
    assert ack.ms is not None


async def test_a_command_nobody_acks_times_out(connected: AsyncApp, script: Script) -> None:
    """The user is told operation_timeout, as Slack tells them."""

    @connected.command("/oncall")
    async def never(command: dict[str, Any]) -> None:
        await asyncio.sleep(0)

    answer = await script.post("command", user="ana", channel="#ops", text="/oncall")
    assert (answer["ok"], answer["error"]) == (False, "operation_timeout")
    assert "operation_timeout" in (await script.messages("#ops", user="ana"))[0]["text"]


async def test_a_response_url_works_five_times(
    connected: AsyncApp, script: Script, http: aiohttp.ClientSession, sandbox: SandboxServer
) -> None:
    """The first answer follows the empty ack, replace_original changes it, the sixth use is refused."""
    urls: list[str] = []

    @connected.command("/oncall")
    async def later(ack: Any, respond: Any, command: dict[str, Any]) -> None:
        await ack()
        urls.append(command["response_url"])
        await respond("working…")

    answer = await script.post("command", user="ana", channel="#ops", text="/oncall")
    assert answer["response"] == "working…"
    statuses = []
    for number in range(2, 7):
        body = {"text": f"answer {number}", "replace_original": True}
        async with http.post(urls[0], json=body) as response:
            statuses.append(response.status)
    assert statuses == [200, 200, 200, 200, 404]
    assert [m["text"] for m in await script.messages("#ops", user="ana")] == ["answer 5"]
    assert sandbox.ledger.calls("response_url")[-1].error == "used_url"


async def test_a_click_reaches_the_app_with_its_message(
    connected: AsyncApp, slack: AsyncWebClient, script: Script
) -> None:
    """A click carries the button's value and the message; an unknown button names those there are."""
    clicks: list[tuple[str, str, str]] = []

    @connected.action("ack")
    async def acked(ack: Any, body: dict[str, Any], action: dict[str, Any]) -> None:
        await ack()
        clicks.append((body["user"]["id"], action["value"], body["message"]["ts"]))

    posted = await slack.chat_postMessage(channel="C0OPS", text="card", attachments=[{"blocks": CARD}])
    place = {"channel": "#ops", "ts": posted["ts"]}
    answer = await script.post("click", user="ben", action_id="ack", **place)
    assert answer["ok"]
    assert answer["ack_ms"] < 400
    assert clicks == [("U0BEN", "42", posted["ts"])]
    wrong = await script.post("click", status=404, user="ben", action_id="resolve", **place)
    assert "ack" in wrong["error"]


async def test_a_click_nobody_takes_warns_the_user(
    connected: AsyncApp, slack: AsyncWebClient, script: Script
) -> None:
    """Bolt acks no action without a listener; the user sees the warning and nothing is sent again."""
    posted = await slack.chat_postMessage(channel="C0OPS", text="card", blocks=CARD)
    answer = await script.post("click", user="ben", channel="C0OPS", ts=posted["ts"], action_id="ack")
    assert (answer["ok"], answer["error"]) == (False, "operation_timeout")
    assert len(await script.messages("C0OPS", user="ben")) == 2


async def test_a_modal_is_opened_refused_and_submitted(
    connected: AsyncApp, script: Script, sandbox: SandboxServer
) -> None:
    """Errors stay on the modal, plain values become Slack's state, and a good answer closes it."""
    states: list[dict[str, Any]] = []

    @connected.command("/override")
    async def override(ack: Any, client: AsyncWebClient, command: dict[str, Any]) -> None:
        await ack()
        await client.views_open(trigger_id=command["trigger_id"], view=MODAL)

    @connected.view("override")
    async def submitted(ack: Any, view: dict[str, Any]) -> None:
        states.append(view["state"]["values"])
        if states[-1]["how_long"]["length"]["value"] == "2h":
            await ack(response_action="errors", errors={"how_long": "too long"})
        else:
            await ack()

    opened = await script.post("command", user="ana", channel="#ops", text="/override")
    view = {"user": "ana", "view_id": opened["view_id"]}
    empty = await script.post("submit", **view, values={})
    assert list(empty["errors"]) == ["who"]
    assert states == []
    refused = await script.post("submit", **view, values={"user": "@ben"})
    assert refused["errors"] == {"how_long": "too long"}
    assert (await script.get("views", user="ana"))["modals"][0]["errors"] == {"how_long": "too long"}
    done = await script.post("submit", **view, values={"how_long": {"length": "1h"}})
    assert done["ok"]
    assert states[-1]["who"]["user"]["selected_user"] == "U0BEN"
    assert (await script.get("views", user="ana"))["modals"] == []
    assert len(sandbox.ledger.acks("interactive")) == 2


async def test_a_trigger_dies_by_use_and_by_age(
    connected: AsyncApp, slack: AsyncWebClient, script: Script, sandbox: SandboxServer
) -> None:
    """The error names the trigger, whichever way it is dead."""
    trigger = sandbox.world.vouchers.new_trigger("U0ANA")
    await slack.views_open(trigger_id=trigger, view=MODAL)
    errors = []
    old = sandbox.world.vouchers.new_trigger("U0ANA")
    await script.post("advance", seconds=4)
    for dead in (trigger, old, "1.2.3"):
        try:
            await slack.views_open(trigger_id=dead, view=MODAL)
        except Exception as error:
            errors.append(error.response["error"])  # type: ignore[attr-defined]  # a SlackApiError
    assert errors == ["exchanged_trigger_id", "expired_trigger_id", "invalid_trigger_id"]


async def test_a_mention_and_a_direct_message_are_events(connected: AsyncApp, script: Script) -> None:
    """A mention in a thread arrives with its thread_ts, a direct message as message.im."""
    seen: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    @connected.event("app_mention")
    async def mention(event: dict[str, Any]) -> None:
        seen.put_nowait(event)

    @connected.event("message")
    async def message(event: dict[str, Any]) -> None:
        seen.put_nowait(event)

    root = await script.post("command", user="ana", channel="#ops", text="something is wrong")
    ts = root["message"]["ts"]
    await script.post("command", user="ben", channel="#ops", text="@Midwatch ack", thread_ts=ts)
    async with asyncio.timeout(5):
        mentioned = await seen.get()
    assert (mentioned["text"], mentioned["thread_ts"]) == ("<@UMIDWATCH> ack", ts)
    await script.post("command", user="ben", channel="dm", text="who is on call?")
    async with asyncio.timeout(5):
        direct = await seen.get()
    assert (direct["channel_type"], direct["channel"], direct["user"]) == ("im", "D0BEN", "U0BEN")
    refused = await script.post("command", user="ben", channel="#ops", text="/oncall", thread_ts=ts)
    assert refused["error"] == "not_in_threads"


async def test_an_unacknowledged_event_comes_again(
    sandbox: SandboxServer, http: aiohttp.ClientSession, script: Script
) -> None:
    """Events are sent again at once, after 1 and after 5 minutes, with the reason; then no more."""
    client = AsyncWebClient(base_url=sandbox.api_url)
    url = (await client.apps_connections_open(app_token="xapp-demo"))["url"]
    async with http.ws_connect(url) as socket:
        await socket.receive_json(timeout=5)
        await script.post("home", user="ana")
        attempts = []
        for seconds in (0, 0, 60, 300):
            await script.post("advance", seconds=seconds)
            envelope = await socket.receive_json(timeout=5)
            attempts.append((envelope["retry_attempt"], envelope["retry_reason"]))
            misses = len(attempts)
            await sandbox.until(lambda misses=misses: len(sandbox.ledger.acks()) >= misses)  # type: ignore[misc]  # a lambda with a default
    assert attempts == [(0, ""), (1, "timeout"), (2, "timeout"), (3, "timeout")]
    assert {ack.error for ack in sandbox.ledger.acks()} == {"operation_timeout"}


async def test_several_sockets_share_the_payloads(
    sandbox: SandboxServer, http: aiohttp.ClientSession, script: Script
) -> None:
    """Each payload goes to one socket only, in turn."""
    client = AsyncWebClient(base_url=sandbox.api_url)
    urls = [(await client.apps_connections_open(app_token="xapp-demo"))["url"] for _ in range(2)]
    async with http.ws_connect(urls[0]) as one, http.ws_connect(urls[1]) as two:
        await one.receive_json(timeout=5)
        assert (await two.receive_json(timeout=5))["num_connections"] == 2
        for _ in range(2):
            await script.post("home", user="ana")
        for socket in (one, two):
            envelope = await socket.receive_json(timeout=5)
            await socket.send_json({"envelope_id": envelope["envelope_id"]})
        await sandbox.until(lambda: len(sandbox.ledger.acks("events_api")) == 2)
    assert all(ack.error is None for ack in sandbox.ledger.acks())
