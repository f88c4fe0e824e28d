"""Moving time, HTTP mode, the stream and the page: what is neither message nor phone."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta
from typing import Any

import aiohttp
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.server import SandboxServer
from bot.sandbox.world import Options
from tests.sandbox.conftest import Script
from tests.sandbox.midwatch import running


async def test_time_stops_at_everything_due(http: aiohttp.ClientSession) -> None:
    """Midwatch is taken along from one due instant to the next, then to the end."""
    async with (
        running() as midwatch,
        SandboxServer(options=Options(control_url=midwatch.url)) as sandbox,
    ):
        began = sandbox.world.clock.now()
        midwatch.due = [began + timedelta(minutes=m) for m in (5, 1, 60)]
        answer = await Script(http, sandbox.url).post("advance", seconds=600)
        offsets = [round((when - began) / timedelta(minutes=1), 1) for when in midwatch.moved_to]
        assert offsets == [1.0, 5.0, 10.0]
        assert midwatch.due == [began + timedelta(minutes=60)]
        assert datetime.fromisoformat(answer["now"]) >= began + timedelta(minutes=10)


async def test_a_midwatch_that_is_gone_does_not_take_time_with_it(http: aiohttp.ClientSession) -> None:
    """Without an answer from the control, advance says so and time stands."""
    async with SandboxServer(options=Options(control_url="http://127.0.0.1:9")) as sandbox:
        answer = await Script(http, sandbox.url).post("advance", status=502, seconds=600)
        assert "control" in answer["error"]
        assert sandbox.world.clock.offset == timedelta()


async def test_who_is_on_call_is_asked_of_midwatch(http: aiohttp.ClientSession) -> None:
    """The page opens as whoever is paged, and suggests who is next; without an answer nobody is named."""
    nobody = {"ok": True, "people": [], "next": []}
    async with running() as midwatch, SandboxServer(options=Options(midwatch_url=midwatch.url)) as sandbox:
        script = Script(http, sandbox.url)
        assert await script.get("oncall") == nobody
        midwatch.on_call = [
            {"people": [{"id": 2, "name": "ben"}], "next_people": [{"id": 1, "name": "ana"}]},
            {"people": [{"id": 3, "name": "cho"}], "next_people": []},
        ]
        assert await script.get("oncall") == {"ok": True, "people": ["ben"], "next": ["ana"]}
    for address in ("http://127.0.0.1:9", None):
        async with SandboxServer(options=Options(midwatch_url=address)) as alone:
            assert await Script(http, alone.url).get("oncall") == nobody


async def test_http_mode_is_signed_and_answered(http: aiohttp.ClientSession) -> None:
    """Bolt's own signature check takes a command, an interaction and an event."""
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def events(request: web.Request) -> web.StreamResponse:
        return await to_aiohttp_response(await app.async_dispatch(await to_bolt_request(request)))

    async def mentioned(event: dict[str, Any]) -> None:
        seen.put_nowait(event["text"])

    async def oncall(ack: Any) -> None:
        await ack("ana is on call")

    server = web.Application()
    server.router.add_post("/slack/events", events)
    runner = web.AppRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    async with SandboxServer(options=Options(events_url=url, signing_secret="s3cret")) as sandbox:
        client = AsyncWebClient(token="xoxb-demo", base_url=sandbox.api_url)
        app = AsyncApp(client=client, signing_secret="s3cret")
        app.command("/oncall")(oncall)
        app.event("app_mention")(mentioned)
        script = Script(http, sandbox.url)
        answer = await script.post("command", user="ana", channel="#ops", text="/oncall")
        assert answer["response"] == "ana is on call"
        await script.post("command", user="ana", channel="#ops", text="hello @midwatch")
        async with asyncio.timeout(5):
            assert await seen.get() == "hello <@UMIDWATCH>"
    await runner.cleanup()


async def test_the_stream_names_what_changed(
    sandbox: SandboxServer, script: Script, slack: AsyncWebClient, http: aiohttp.ClientSession
) -> None:
    """A post is told to whoever listens, by the channel's id."""
    async with http.get(f"{sandbox.url}/sandbox/stream") as stream:
        assert (await stream.content.readline()).startswith(b": open")
        await slack.chat_postMessage(channel="#ops", text="x")
        async with asyncio.timeout(5):
            while not (line := await stream.content.readline()).startswith(b"data: "):
                continue
    assert json.loads(line.removeprefix(b"data: "))["changed"] == ["messages:C0OPS"]


async def test_the_page_is_served_and_nothing_else(
    sandbox: SandboxServer, http: aiohttp.ClientSession
) -> None:
    """The page's own files are there; the source beside them and other sites' requests are not."""
    statuses = {}
    for path in ("/", "/page/style.css", "/page/main.js", "/page/..%2Fserver.py", "/page/server.py"):
        async with http.get(f"{sandbox.url}{path}") as answer:
            statuses[path] = answer.status
    assert list(statuses.values()) == [200, 200, 200, 404, 404]
    async with http.post(
        f"{sandbox.url}/sandbox/advance", json={"seconds": 60}, headers={"Origin": "http://elsewhere.example"}
    ) as answer:
        assert answer.status == 403


async def test_an_open_stream_does_not_hold_up_the_end(http: aiohttp.ClientSession) -> None:
    """Stopping takes no longer than a second with streams, sockets and hanging calls open."""
    loop = asyncio.get_running_loop()
    async with SandboxServer() as sandbox:
        script = Script(http, sandbox.url)
        client = AsyncWebClient(token="xoxb-demo", base_url=sandbox.api_url, retry_handlers=[])
        socket = await http.ws_connect((await client.apps_connections_open(app_token="xapp-demo"))["url"])
        stream = await http.get(f"{sandbox.url}/sandbox/stream")
        await script.post("fault", target="slack", kind="hang", method="auth.test")
        hanging = asyncio.create_task(client.auth_test())
        await asyncio.sleep(0)
        began = loop.time()
    assert loop.time() - began < 1
    await asyncio.gather(hanging, return_exceptions=True)
    stream.close()
    await socket.close()
