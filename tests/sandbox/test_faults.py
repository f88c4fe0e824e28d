"""Slack broken on purpose: what the client sees, and that mending it mends it."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox import faults
from bot.sandbox.clock import monotonic
from bot.sandbox.server import SandboxServer
from tests.sandbox.conftest import Script


async def test_an_outage_is_a_page_of_html(slack: AsyncWebClient, script: Script) -> None:
    """503 without JSON until somebody mends it; the state shows it meanwhile."""
    await script.post("fault", target="slack", kind="outage")
    with pytest.raises(SlackApiError) as caught:
        await slack.chat_postMessage(channel="C0OPS", text="x")
    assert caught.value.response.status_code == 503
    assert [f["kind"] for f in (await script.get("state"))["faults"]] == ["outage"]
    await script.post("fault", target="slack", kind="none")
    await slack.chat_postMessage(channel="C0OPS", text="x")
    assert (await script.get("state"))["faults"] == []


async def test_an_outage_ends_by_itself(
    script: Script, sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault with a length is there for so long, in real time, and over after that."""
    before = monotonic()
    await script.post("fault", target="slack", kind="outage", for_s=60)
    after = monotonic()
    monkeypatch.setattr(faults, "monotonic", lambda: before + 59)
    assert [fault.kind for fault in sandbox.world.faults.active()] == ["outage"]
    monkeypatch.setattr(faults, "monotonic", lambda: after + 60)
    assert sandbox.world.faults.active() == []


async def test_a_reset_comes_after_the_message_was_posted(slack: AsyncWebClient, script: Script) -> None:
    """The sender gets no answer, and the message is there all the same."""
    await script.post("fault", target="slack", kind="reset_after", times=1)
    with pytest.raises(aiohttp.ClientError):
        await slack.chat_postMessage(channel="C0OPS", text="page")
    assert [m["text"] for m in await script.messages("C0OPS")] == ["page"]


async def test_a_hanging_slack_answers_nothing(sandbox: SandboxServer, script: Script) -> None:
    """The client's own timeout ends the wait, not the sandbox."""
    await script.post("fault", target="slack", kind="hang")
    impatient = AsyncWebClient(token="xoxb-demo", base_url=sandbox.api_url, retry_handlers=[])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await impatient.auth_test()


@pytest.mark.parametrize(
    ("kind", "retry_after"), [("429", "17"), ("429_empty", None)], ids=["with Retry-After", "empty"]
)
async def test_throttling_with_and_without_a_header(
    sandbox: SandboxServer, script: Script, http: aiohttp.ClientSession, kind: str, retry_after: str | None
) -> None:
    """429 says when to come back, or says nothing at all."""
    await script.post("fault", target="slack", kind=kind, retry_after=17)
    async with http.post(f"{sandbox.api_url}chat.postMessage") as answer:
        assert (answer.status, answer.headers.get("Retry-After")) == (429, retry_after)


async def test_an_error_of_one_method_leaves_the_others(slack: AsyncWebClient, script: Script) -> None:
    """A fault may be one error of one method in one channel."""
    await script.post(
        "fault", target="slack", kind="not_in_channel", method="chat.postMessage", channel="C0OPS"
    )
    with pytest.raises(SlackApiError) as caught:
        await slack.chat_postMessage(channel="C0OPS", text="x")
    assert caught.value.response["error"] == "not_in_channel"
    await slack.chat_postMessage(channel="C0GENERAL", text="x")
    await slack.auth_test()


async def test_a_deaf_socket_stays_up_and_gets_nothing(
    connected: AsyncApp, script: Script, sandbox: SandboxServer
) -> None:
    """The connection is open and no payload arrives."""
    await script.post("fault", target="slack_socket", kind="deaf")
    answer = await script.post("command", user="ana", channel="#ops", text="/oncall")
    assert answer["error"] == "operation_timeout"
    assert (await script.get("state"))["midwatch"]["connected"]


async def test_a_ticket_is_gone_although_the_socket_failed(
    sandbox: SandboxServer, script: Script, http: aiohttp.ClientSession
) -> None:
    """The edge refuses or drops the connection: the ticket is spent all the same."""
    client = AsyncWebClient(base_url=sandbox.api_url)
    for kind in ("outage", "reset_after"):
        await script.post("fault", target="slack_socket", kind=kind)
        url = (await client.apps_connections_open(app_token="xapp-demo"))["url"]
        with pytest.raises((aiohttp.ClientError, TypeError)):
            async with http.ws_connect(url) as socket:
                await socket.receive_json(timeout=5)
        await script.post("fault", target="slack_socket", kind="none")
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await http.ws_connect(url)
        assert caught.value.status == 403


async def test_a_payload_may_come_twice(connected: AsyncApp, script: Script, sandbox: SandboxServer) -> None:
    """The `duplicate` fault delivers every payload in two envelopes."""
    seen: asyncio.Queue[str] = asyncio.Queue()

    @connected.command("/oncall")
    async def oncall(ack: Any, command: dict[str, Any]) -> None:
        await ack("ok")
        seen.put_nowait(command["trigger_id"])

    await script.post("fault", target="slack_socket", kind="duplicate")
    await script.post("command", user="ana", channel="#ops", text="/oncall")
    async with asyncio.timeout(5):
        assert await seen.get() == await seen.get()


async def test_all_of_slack_down_cuts_the_socket(
    connected: AsyncApp, script: Script, sandbox: SandboxServer
) -> None:
    """An outage of Slack takes its socket with it, and commands reach nobody."""
    await script.post("fault", target="slack", kind="outage")
    await sandbox.until(lambda: not sandbox.world.socket.connected)
    answer = await script.post("command", user="ana", channel="#ops", text="/oncall")
    assert answer["error"] == "dispatch_failed"


async def test_unknown_targets_are_named(script: Script) -> None:
    """A mistyped target is answered with those there are."""
    answer = await script.post("fault", status=404, target="slak", kind="outage")
    assert "slack" in answer["known"]


async def test_unknown_kinds_are_named_where_the_known_ones_are_all(script: Script) -> None:
    """A mistyped way to fail breaks nothing and says so; an error of Slack's goes by any name."""
    answer = await script.post("fault", status=400, target="callbacks", kind="lat")
    assert "late" in answer["known"]
    await script.post("fault", target="slack", kind="some_new_error", method="chat.update")
    assert [f["target"] for f in (await script.get("state"))["faults"]] == ["slack"]
