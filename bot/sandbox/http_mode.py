"""HTTP mode: the same payloads, posted to Midwatch and signed with the signing secret.

The timestamp is the sandbox's, as is everything a signature covers.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import uuid
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import aiohttp

from bot.sandbox.clock import monotonic
from bot.sandbox.ledger import Acknowledgement
from bot.sandbox.state import Json
from bot.sandbox.wire import EVENT, SLASH, Parcel, Reply, body_of

if TYPE_CHECKING:
    from bot.sandbox.world import World

FORM = "application/x-www-form-urlencoded"
RETRY_HEADER = "x-slack-no-retry"


def signed(secret: str, timestamp: int, body: str) -> str:
    base = f"v0:{timestamp}:{body}".encode()
    return "v0=" + hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()


class HttpMode:
    def __init__(self, world: World, url: str) -> None:
        self._world = world
        self._url = url

    @property
    def connected(self) -> bool:
        return True

    async def deliver(self, parcel: Parcel) -> Reply:
        began = monotonic()
        reply = await self._post(parcel, began)
        error = reply.error
        self._world.ledger.add(
            Acknowledgement(
                str(uuid.uuid4()),
                parcel.kind,
                parcel.name,
                parcel.retry_attempt,
                reply.ms,
                error,
                self._world.clock.now(),
            )
        )
        return reply

    async def _post(self, parcel: Parcel, began: float) -> Reply:
        body, headers = self._request(parcel)
        try:
            async with (
                asyncio.timeout(self._world.options.ack_timeout_s),
                self._world.http.post(self._url, data=body.encode(), headers=headers) as response,
            ):
                text = await response.text()
        except TimeoutError:
            return Reply("operation_timeout", retry_reason="http_timeout")
        except aiohttp.ClientError:
            return Reply("dispatch_failed", retry_reason="connection_failed")
        no_retry = response.headers.get(RETRY_HEADER) == "1"
        if response.status >= 300:
            return Reply("dispatch_failed", retry_reason="http_error", no_retry=no_retry)
        ms = round((monotonic() - began) * 1000, 1)
        return Reply(body=_parsed(text), ms=ms, no_retry=no_retry)

    def _request(self, parcel: Parcel) -> tuple[str, dict[str, str]]:
        if parcel.kind == EVENT:
            body, content_type = json.dumps(parcel.payload), "application/json"
        elif parcel.kind == SLASH:
            body, content_type = urlencode(parcel.payload), FORM
        else:
            body, content_type = urlencode({"payload": json.dumps(parcel.payload)}), FORM
        timestamp = int(self._world.clock.now().timestamp())
        headers = {
            "Content-Type": content_type,
            "X-Slack-Request-Timestamp": str(timestamp),
            "X-Slack-Signature": signed(self._world.options.signing_secret, timestamp, body),
        }
        if parcel.retry_attempt:
            headers["X-Slack-Retry-Num"] = str(parcel.retry_attempt)
            headers["X-Slack-Retry-Reason"] = parcel.retry_reason
        return body, headers

    async def close(self) -> None:
        """Nothing is held open between two posts."""


def _parsed(text: str) -> Json:
    try:
        return body_of(json.loads(text))
    except ValueError:
        return body_of(text)
