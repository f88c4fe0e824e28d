"""HTTP mode: POST /slack/events. Nothing that is not signed by Slack gets any further.

Never raises and never writes a traceback for what a stranger sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest

from bot.slack.signature import is_signed
from engine.clock import Clock

log = structlog.get_logger(__name__)

LIMIT: Final = 1024 * 1024  # Slack's own bodies are far below; who sent this one is not known yet
BODY_TIMEOUT: Final = timedelta(seconds=30)


class Door:
    def __init__(
        self,
        app: AsyncApp,
        clock: Clock,
        signing_secret: str,
        on_request: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._app = app
        self._clock = clock
        self._secret = signing_secret
        self._on_request = on_request

    async def handle(self, request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(BODY_TIMEOUT.total_seconds()):
                raw = await _body(request)
        except TimeoutError:
            return web.Response(status=408, text="the body did not arrive in time")
        if raw is None:
            return web.Response(status=413, text="longer than anything that Slack sends")
        timestamp = request.headers.get("X-Slack-Request-Timestamp", "")
        signature = request.headers.get("X-Slack-Signature", "")
        if not is_signed(self._secret, timestamp, signature, raw, self._clock.now()):
            log.warning("slack.signature_refused", bytes=len(raw))
            return web.Response(status=401, text="not signed by Slack, or too long ago")
        self._on_request(_event(raw))
        try:
            response = await self._app.async_dispatch(
                AsyncBoltRequest(body=raw.decode(), query=request.query_string, headers=dict(request.headers))
            )
        except Exception as error:  # listeners do not raise; the library does, for what it cannot parse
            log.warning("slack.unreadable", error=type(error).__name__)
            return web.Response(status=400, text="not a payload of Slack")
        return await to_aiohttp_response(response)


def _event(raw: bytes) -> Mapping[str, Any]:
    """The payload of an event; of a click or a command nothing, which is no JSON."""
    try:
        said = json.loads(raw)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


async def _body(request: web.Request) -> bytes | None:
    """The whole body; nothing when it is longer than `LIMIT`, before more than that is held."""
    if (request.content_length or 0) > LIMIT:
        return None
    chunks: list[bytes] = []
    size = 0
    while chunk := await request.content.readany():
        size += len(chunk)
        if size > LIMIT:
            return None
        chunks.append(chunk)
    return b"".join(chunks)
