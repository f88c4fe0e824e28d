"""The phone company's posts to Midwatch: forms, signed as Twilio signs them.

Every post is bounded in time and recorded; a failure is an answer of None, never an exception.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from bot.sandbox.ledger import Callback

if TYPE_CHECKING:
    from bot.sandbox.world import World

ANSWER_WITHIN_S = 15.0


def signature(auth_token: str, url: str, params: Mapping[str, str]) -> str:
    text = url + "".join(name + params[name] for name in sorted(params))
    return base64.b64encode(hmac.new(auth_token.encode(), text.encode(), hashlib.sha1).digest()).decode()


class Callbacks:
    def __init__(self, world: World) -> None:
        self._world = world

    async def post(self, kind: str, url: str, params: Mapping[str, str]) -> str | None:
        """The body of Midwatch's answer; None when there was none or it was a refusal."""
        headers = {
            "X-Twilio-Signature": signature(self._world.options.auth_token, url, params),
            "I-Twilio-Idempotency-Token": hashlib.sha256(repr(sorted(params.items())).encode()).hexdigest(),
            "User-Agent": "TwilioProxy/1.1",
        }
        status, body = 0, ""
        try:
            async with (
                asyncio.timeout(ANSWER_WITHIN_S),
                self._world.http.post(URL(url, encoded=True), data=dict(params), headers=headers) as answer,
            ):
                status, body = answer.status, await answer.text()
        except (aiohttp.ClientError, TimeoutError, ValueError):
            status = 0
        self._world.ledger.add(Callback(kind, url, dict(params), status, self._world.clock.now()))
        return body if 200 <= status < 300 else None
