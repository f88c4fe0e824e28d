"""One Socket Mode client, and whether it is alive: hello, frames, the dead ticket.

Never decides when it is given up; `connection` does, by what `trouble` says.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import structlog
from aiohttp import WSMessage
from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app, send_async_response
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient

from bot.slack.errors import trouble_of
from engine.clock import monotonic

log = structlog.get_logger(__name__)

SILENT_PINGS: Final = 4

# Why silent: the library writes a traceback at each try of an outage. What went wrong is in our log.
_quiet = logging.getLogger("midwatch.slack.socket")
_quiet.setLevel(logging.CRITICAL + 1)


class _Client(SocketModeClient):
    """Remembers why Slack gave no ticket."""

    refused: str = ""

    async def issue_new_wss_url(self) -> str:
        try:
            ticket = await super().issue_new_wss_url()
        except Exception as error:
            self.refused = trouble_of(error).code
            raise
        self.refused = ""
        return ticket


class Socket:
    """Connects in the background from the moment it is made."""

    def __init__(
        self,
        app: AsyncApp,
        app_token: str,
        web: AsyncWebClient,
        *,
        ping_interval: float,
        hello_within: float,
        on_hello: Callable[[int], None],
        on_request: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._app = app
        self._hello_within = hello_within
        self._silence = SILENT_PINGS * ping_interval
        self._on_hello = on_hello
        self._on_request = on_request
        self._client = _Client(
            app_token,
            logger=_quiet,
            web_client=web,
            ping_interval=ping_interval,
            on_message_listeners=[self._frame],
        )
        self._client.proxy = web.proxy
        self._client.message_listeners.append(self._message)
        self._client.socket_mode_request_listeners.append(self._request)
        self.up = False
        self._greeted: object = None  # the session that said hello
        self._alive_at = monotonic()
        self._pong: float | None = None
        # Why a task: connect() does not return while Slack is down, and nothing may wait for it.
        self._connecting: asyncio.Task[None] = asyncio.create_task(
            self._client.connect(),  # type: ignore[no-untyped-call]  # the library left it so
            name="slack.connect",
        )

    @property
    def refused(self) -> str:
        """Slack's reason for giving no ticket, at the last try."""
        return self._client.refused

    async def trouble(self) -> str | None:
        """Why this client must be rebuilt, if it must. Also mends what can be mended."""
        now = monotonic()
        # The library passes text frames on; that a pong came shows only in this.
        if self._client.last_ping_pong_time not in (None, self._pong):
            self._pong = self._client.last_ping_pong_time
            self._alive_at = now
        connected = await self._client.is_connected()
        if not connected:
            # Why: tickets are for one use. The library keeps one whose connect failed and tries it
            # for ever; without a ticket it asks for a new one.
            self._client.wss_uri = None
        self.up = connected and self._greeted is self._client.current_session
        if not self.up and now - self._alive_at > self._hello_within:
            return self.refused or "no hello"
        if self.up and now - self._alive_at > self._silence:
            return "silent"
        return None

    async def _frame(self, _message: WSMessage) -> None:
        self._alive_at = monotonic()

    async def _message(
        self, _client: AsyncBaseSocketModeClient, message: dict[str, Any], _raw: str | None
    ) -> None:
        if message.get("type") == "hello":
            self._greeted = self._client.current_session
            self.up = True
            self._on_hello(int(message.get("num_connections") or 0))

    async def _request(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        self._on_request(request.payload)
        try:
            response = await run_async_bolt_app(self._app, request)
        except Exception as error:  # listeners do not raise; the library does, for what it cannot parse
            log.warning("slack.unreadable", kind=request.type, error=type(error).__name__)
            return
        if response.status != 200:
            log.warning("slack.unanswered", kind=request.type, status=response.status)
        await send_async_response(client, request, response, 0)

    async def close(self) -> None:
        """Give everything back; the library cancels its tasks and does not wait for them."""
        self._connecting.cancel()
        await self._client.close()  # type: ignore[no-untyped-call]  # likewise
        tasks: list[Awaitable[object] | None] = [
            self._connecting,
            self._client.message_processor,
            self._client.current_session_monitor,
            self._client.message_receiver,
        ]
        await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)
