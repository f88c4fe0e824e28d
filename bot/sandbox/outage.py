"""How a broken service answers: not at all, with a page of HTML, with "too many requests".

Serves the Web API and the phone company alike; whether something is broken is the faults' word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from aiohttp import web

from bot.sandbox.faults import Fault

HTML = "<html><head><title>503</title></head><body>Service Unavailable</body></html>"


LONGEST_HANG_S = 300.0  # nobody waits longer, and a fault may stand for days
RATE_LIMITED = {"ok": False, "error": "ratelimited"}


async def obstructed(fault: Fault, too_many: Mapping[str, Any] = RATE_LIMITED) -> web.Response | None:
    """The answer of a service that does not work; None when the fault is of another kind."""
    if fault.kind == "hang":
        await hanging(fault)
    if fault.kind in ("outage", "hang"):
        return web.Response(status=503, text=HTML, content_type="text/html")
    if fault.kind == "429":
        headers = {"Retry-After": str(fault.retry_after)}
        return web.json_response(too_many, status=429, headers=headers)
    if fault.kind == "429_empty":
        return web.Response(status=429)
    return None


async def hanging(fault: Fault) -> None:
    """Nothing is said until somebody mends it, or nobody can be waiting any more."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LONGEST_HANG_S):
            await fault.over.wait()


def cut(request: web.Request) -> web.Response:
    """Read, done, and the connection is gone before the answer: the sender cannot know."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
