"""GET /calendar/{token}.ics: the shifts that a link opens, for calendar programs.

Never says why a link opens nothing: one that was revoked and one that never was are answered alike.
"""

from __future__ import annotations

import re
from typing import Final

from aiohttp import web

from engine.rota.calendars import Calendars

# Why not no-store: a program that keeps nothing has no ETag to ask by, and fetches a year each time.
KEPT: Final = "private, no-cache"


class Calendar:
    def __init__(self, calendars: Calendars) -> None:
        self._calendars = calendars

    def mount(self, app: web.Application) -> None:
        app.router.add_get("/calendar/{token}.ics", self.open)

    async def open(self, request: web.Request) -> web.Response:
        content = await self._calendars.open(request.match_info["token"])
        headers = {"ETag": content.etag, "Cache-Control": KEPT}
        if _has(request.headers.get("If-None-Match", ""), content.etag):
            return web.Response(status=304, headers=headers)
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", content.name).strip("-") or "calendar"
        headers["Content-Disposition"] = f'inline; filename="{name}.ics"'
        return web.Response(body=content.body, content_type="text/calendar", charset="utf-8", headers=headers)


def _has(asked: str, etag: str) -> bool:
    """Proxies that compress weaken an ETag; for an answer read whole that is all the same."""
    given = {word.strip().removeprefix("W/") for word in asked.split(",")}
    return etag in given or "*" in given
