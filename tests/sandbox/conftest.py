"""A sandbox on a free port, the real Slack client against it, and a small Bolt app as Midwatch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.server import SandboxServer
from bot.sandbox.world import Options

ACK_TIMEOUT_S = 0.4  # Slack's three seconds, shortened: no test waits that long for nothing


class Script:
    """What the page does: JSON in, JSON out."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http = http
        self._url = url

    async def post(self, path: str, *, status: int = 200, **body: Any) -> Any:
        async with self._http.post(f"{self._url}/sandbox/{path}", json=body) as answer:
            assert answer.status == status, await answer.text()
            return await answer.json()

    async def get(self, path: str, *, status: int = 200, **query: str) -> Any:
        async with self._http.get(f"{self._url}/sandbox/{path}", params=query) as answer:
            assert answer.status == status, await answer.text()
            return await answer.json()

    async def messages(self, channel: str, **query: str) -> list[dict[str, Any]]:
        shown = (await self.get("messages", channel=channel, **query))["messages"]
        assert isinstance(shown, list)
        return shown


@pytest.fixture
async def sandbox() -> AsyncIterator[SandboxServer]:
    async with SandboxServer(options=Options(ack_timeout_s=ACK_TIMEOUT_S)) as server:
        yield server


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def script(sandbox: SandboxServer, http: aiohttp.ClientSession) -> Script:
    return Script(http, sandbox.url)


@pytest.fixture
def slack(sandbox: SandboxServer) -> AsyncWebClient:
    return AsyncWebClient(token="xoxb-demo", base_url=sandbox.api_url, retry_handlers=[], timeout=5)


@pytest.fixture
def app(slack: AsyncWebClient) -> AsyncApp:
    return AsyncApp(client=slack, raise_error_for_unhandled_request=False)


@pytest.fixture
async def connected(app: AsyncApp, sandbox: SandboxServer) -> AsyncIterator[AsyncApp]:
    """The Bolt app with an open socket; its listeners may be added before or after."""
    handler = AsyncSocketModeHandler(app, "xapp-demo")
    async with asyncio.timeout(5):
        await handler.connect_async()
    await sandbox.until(lambda: sandbox.world.socket.connected)
    yield app
    await handler.close_async()
