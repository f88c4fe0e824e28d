"""The phone company's posts to Midwatch: forms, signed as Twilio signs them.

Every post is bounded in time and recorded; a failure is an answer of None, never an exception.
What became of a message or a call may be told late, twice, in the wrong order or never; what asks
for words is always posted at once.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from bot.sandbox.ledger import Callback

if TYPE_CHECKING:
    from bot.sandbox.world import World

ANSWER_WITHIN_S = 15.0
LATE = timedelta(seconds=90)
HELD_BACK = timedelta(seconds=10)
# How a message ends, and a call; what is told of them before that comes after it when the order is lost.
ENDS = frozenset({"delivered", "undelivered", "failed", "completed", "busy", "no-answer", "canceled"})


def signature(auth_token: str, url: str, params: Mapping[str, str]) -> str:
    text = url + "".join(name + params[name] for name in sorted(params))
    return base64.b64encode(hmac.new(auth_token.encode(), text.encode(), hashlib.sha1).digest()).decode()


class Callbacks:
    def __init__(self, world: World) -> None:
        self._world = world

    async def tell(self, kind: str, url: str, params: Mapping[str, str]) -> None:
        """What became of a message or a call, as far as this part of the company works."""
        fault = self._world.faults.strike("callbacks", kind, params)
        how = "" if fault is None else fault.kind
        if how in ("outage", "hang"):
            return
        ended = not ENDS.isdisjoint((params.get("MessageStatus"), params.get("CallStatus")))
        if how == "late":
            self._later(LATE, kind, url, params)
        elif how == "disorder" and not ended:
            self._later(HELD_BACK, kind, url, params)
        else:
            await self.post(kind, url, params)
            if how == "duplicate":
                await self.post(kind, url, params)

    def _later(self, after: timedelta, kind: str, url: str, params: Mapping[str, str]) -> None:
        async def post() -> None:
            await self.post(kind, url, params)

        self._world.agenda.at(self._world.clock.now() + after, lambda: self._world.errands.run(post()))

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
