"""Where alerts come in: the key opens a service, the source reads the body, the receiver keeps it.

Says 2xx only after the commit. Never 429 and never a redirect (senders lose alerts over both), and
nothing here runs per alert: a body of 500 is one call.
"""

from __future__ import annotations

import json
import secrets
from functools import partial
from typing import Any, Final

from aiohttp import web

from bot.web import bodies
from bot.web.keys import Door, Keys, shown_key
from bot.web.problems import Problem
from bot.web.recall import Recall
from engine.intake.receive import Receiver
from engine.models import Body, Receipt
from engine.sources import SOURCES, Parser, parse_change, routing_key

# A path with and without a trailing slash is one route: a redirect would be followed without the body.
SLASH: Final = "{slash:/?}"


class Ingest:
    def __init__(self, keys: Keys, receiver: Receiver) -> None:
        self._keys = keys
        self._receiver = receiver
        self._recall = Recall()

    def mount(self, app: web.Application) -> None:
        for source in SOURCES:  # found by their whole path; the others by a pattern
            app.router.add_post(f"/webhooks/{source}", partial(self.webhook, source=source))
        app.router.add_post("/webhooks/{source}" + SLASH, self.webhook)
        app.router.add_post("/webhooks/{source}/{key}" + SLASH, self.webhook)
        app.router.add_post("/v1/events" + SLASH, self.event)
        app.router.add_post("/v2/enqueue" + SLASH, self.enqueue)
        app.router.add_post("/v2/change/enqueue" + SLASH, self.change)

    async def webhook(self, request: web.Request, *, source: str | None = None) -> web.Response:
        parse = _source(source or request.match_info["source"])
        door = await self._keys.door(shown_key(request))
        raw = await bodies.read(request, bodies.INGEST_LIMIT)
        body = await bodies.aside(partial(self._recall.read, parse), raw)
        receipts = await self._accept(door, body)
        return _stored(len(receipts))

    async def event(self, request: web.Request) -> web.Response:
        door = await self._keys.door(shown_key(request))
        value = await bodies.read_json(request, bodies.LIMIT)
        receipt = await self._one(door, SOURCES["events"], value)
        return _accepted({"dedup_key": receipt.dedup_key, "status": receipt.status, **_repeated(receipt)})

    async def enqueue(self, request: web.Request) -> web.Response:
        """PagerDuty's Events API v2, for senders that need to be told a new address only."""
        value = await bodies.read_json(request, bodies.LIMIT)
        door = await self._keys.door(routing_key(value) or "")
        receipt = await self._one(door, SOURCES["pagerduty"], value)
        answer = {"status": "success", "message": "Event processed", "dedup_key": receipt.dedup_key}
        return _accepted({**answer, **_repeated(receipt)})

    async def change(self, request: web.Request) -> web.Response:
        """Change events page nobody; they are let in so that a sender of both needs no exception."""
        value = await bodies.read_json(request, bodies.LIMIT)
        door = await self._keys.door(routing_key(value) or "")
        await self._accept(door, parse_change(value, _new_key))
        return _accepted({"status": "success", "message": "Change event accepted; Midwatch keeps none"})

    async def _one(self, door: Door, parse: Parser, value: object) -> Receipt:
        """What became of the one event that these bodies hold."""
        (receipt,) = await self._accept(door, parse(value, _new_key))
        return receipt

    async def _accept(self, door: Door, body: Body) -> list[Receipt]:
        if not body.events and not body.group_resolves:
            return []  # an empty list of alerts asks for nothing
        return await self._receiver.accept(door.org_id, door.service_id, body)


def _source(name: str) -> Parser:
    parse = SOURCES.get(name)
    if parse is None:
        raise Problem(404, f"There is no such source; known are {', '.join(sorted(SOURCES))}.")
    return parse


def _new_key() -> str:
    return secrets.token_hex(16)


def _repeated(receipt: Receipt) -> dict[str, bool]:
    return {"deduplicated": True} if receipt.status == "repeat" else {}


def _stored(events: int) -> web.Response:
    """Without an encoder: this is the answer that a storm gets."""
    body = b'{"status": "accepted", "events": %d}' % events
    return web.Response(status=202, body=body, content_type="application/json")


def _accepted(answer: dict[str, Any]) -> web.Response:
    return web.Response(status=202, body=json.dumps(answer).encode(), content_type="application/json")
