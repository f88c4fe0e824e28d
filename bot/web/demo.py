"""The demo's clock, moved over HTTP by the sandbox beside it.

Never there outside of the demo, and only for callers on this machine.
"""

from __future__ import annotations

from ipaddress import ip_address

from aiohttp import web
from pydantic import BaseModel, ValidationError

from bot.web import bodies
from bot.web.parts import Demo, WebParts
from bot.web.problems import Problem, invalid
from bot.web.shapes import Instant


class Advance(BaseModel):
    to: Instant


class DemoClock:
    def __init__(self, parts: WebParts, demo: Demo) -> None:
        self._parts = parts
        self._demo = demo

    def mount(self, app: web.Application) -> None:
        app.router.add_get("/demo/next", self.next)
        app.router.add_post("/demo/advance", self.advance)

    async def next(self, request: web.Request) -> web.Response:
        _only_from_here(request)
        due_at = await self._demo.next_due()
        return web.json_response({"due_at": None if due_at is None else due_at.isoformat()})

    async def advance(self, request: web.Request) -> web.Response:
        _only_from_here(request)
        try:
            wanted = Advance.model_validate(await bodies.read_json(request, bodies.LIMIT))
        except ValidationError as error:
            raise invalid("body", error) from None
        worked = await self._demo.advance(wanted.to)
        return web.json_response({"now": self._parts.clock.now().isoformat(), "worked": worked})


def _only_from_here(request: web.Request) -> None:
    """By the peer of the connection: headers can say anything."""
    peer = request.transport.get_extra_info("peername") if request.transport else None
    if not peer or not ip_address(str(peer[0]).partition("%")[0]).is_loopback:
        raise Problem(403, "The demo's clock is moved from this machine only.")
