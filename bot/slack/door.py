"""HTTP mode: POST /slack/events. Nothing that is not signed by Slack gets any further.

Never raises and never writes a traceback for what a stranger sent.
"""

from __future__ import annotations

import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest

from bot.slack.signature import is_signed
from engine.clock import Clock

log = structlog.get_logger(__name__)


class Door:
    def __init__(self, app: AsyncApp, clock: Clock, signing_secret: str) -> None:
        self._app = app
        self._clock = clock
        self._secret = signing_secret

    async def handle(self, request: web.Request) -> web.Response:
        raw = await request.read()
        timestamp = request.headers.get("X-Slack-Request-Timestamp", "")
        signature = request.headers.get("X-Slack-Signature", "")
        if not is_signed(self._secret, timestamp, signature, raw, self._clock.now()):
            log.warning("slack.signature_refused", bytes=len(raw))
            return web.Response(status=401, text="not signed by Slack, or too long ago")
        try:
            response = await self._app.async_dispatch(
                AsyncBoltRequest(body=raw.decode(), query=request.query_string, headers=dict(request.headers))
            )
        except Exception as error:  # listeners do not raise; the library does, for what it cannot parse
            log.warning("slack.unreadable", error=type(error).__name__)
            return web.Response(status=400, text="not a payload of Slack")
        return await to_aiohttp_response(response)
