"""A phone company that fails one request in ten, in every way that one does, and keeps a ledger.

It lives in the parent of the processes that are killed: what it took, it knows.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from enum import StrEnum
from time import time
from typing import Final

from aiohttp import web

from tests.notify.phone_company import SID, form, serving

HELD_S: Final = 12.0  # longer than any sender waits
PAGE: Final = re.compile(r"#(\d+) FIRING|Incident (\d+)")  # what only tells how it ended is none


class Mood(StrEnum):
    """How a request ends. Of the last two nobody but the company knows that they were taken."""

    TAKEN = "taken"
    BROKEN = "503"
    BUSY = "429"
    CUT = "taken, then the connection is cut"
    SILENT = "taken, then no answer"


CHANCES: Final = {Mood.TAKEN: 90, Mood.BROKEN: 4, Mood.BUSY: 2, Mood.CUT: 2, Mood.SILENT: 2}
AMBIGUOUS: Final = frozenset({Mood.CUT, Mood.SILENT})


@dataclass(frozen=True, slots=True)
class Request:
    """One attempt that reached the company. `key` is what must not be sent twice without a reason."""

    incident: int
    to: str
    method: str
    at: float
    mood: Mood

    @property
    def key(self) -> tuple[int, str, str]:
        return self.incident, self.to, self.method

    @property
    def taken(self) -> bool:
        return self.mood is Mood.TAKEN or self.mood in AMBIGUOUS


@dataclass
class Provider:
    ledger: list[Request] = field(default_factory=list)
    told: asyncio.Queue[int] = field(default_factory=asyncio.Queue)  # incidents, for the people to answer
    others: int = 0  # messages that page nobody: alarms, news
    texts: list[dict[str, str]] = field(default_factory=list)  # that were taken, as the company lists them

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        app = web.Application()
        account = f"/2010-04-01/Accounts/{SID}"
        app.router.add_post(f"{account}/Messages.json", self._message)
        app.router.add_get(f"{account}/Messages.json", self._list)
        app.router.add_get(f"{account}/{{what}}/{{sid}}.json", self._became)
        app.router.add_post(f"{account}/Calls.json", self._call)
        app.router.add_post(f"{account}/Calls/{{sid}}.json", self._hang_up)
        async with serving(app) as url:
            yield url

    async def _message(self, request: web.Request) -> web.Response:
        fields = await form(request)
        return await self._take(request, "sms", fields["To"], fields["Body"])

    async def _call(self, request: web.Request) -> web.Response:
        fields = await form(request)
        return await self._take(request, "voice", fields["To"], fields["Twiml"])

    async def _take(self, request: web.Request, method: str, to: str, text: str) -> web.Response:
        mood = random.choices(list(CHANCES), list(CHANCES.values()))[0]
        found = PAGE.search(text)
        taken = mood is Mood.TAKEN or mood in AMBIGUOUS
        if found is None:
            self.others += 1
        else:
            one = Request(int(found[1] or found[2]), to, method, time(), mood)
            self.ledger.append(one)
            if taken:
                self.told.put_nowait(one.incident)
        sid = f"{method}-{len(self.ledger)}-{self.others}"
        if taken and method == "sms":
            sent = formatdate(usegmt=True)
            self.texts.append({"sid": sid, "to": to, "body": text, "status": "delivered", "date_sent": sent})
        return await _answer(request, mood, sid)

    async def _list(self, request: web.Request) -> web.Response:
        """What was sent to a number; nobody writes to ours."""
        found = [one for one in self.texts if one["to"] == request.query.get("To")]
        return web.json_response({"messages": found, "next_page_uri": None})

    async def _became(self, request: web.Request) -> web.Response:
        """Texts arrive; nobody presses a key."""
        status = "delivered" if request.match_info["what"] == "Messages" else "completed"
        return web.json_response({"sid": request.match_info["sid"], "status": status})

    async def _hang_up(self, request: web.Request) -> web.Response:
        return web.json_response({"sid": request.match_info["sid"], "status": "completed"})


async def _answer(request: web.Request, mood: Mood, sid: str) -> web.Response:
    if mood is Mood.BROKEN:
        return web.json_response({"code": 20500, "message": "down", "status": 503}, status=503)
    if mood is Mood.BUSY:
        said = {"code": 20429, "message": "too many", "status": 429}
        return web.json_response(said, status=429, headers={"Retry-After": "2"})
    if mood is Mood.CUT and request.transport is not None:
        request.transport.close()
    if mood is Mood.SILENT:
        await asyncio.sleep(HELD_S)
    return web.json_response({"sid": sid, "status": "queued"}, status=201)
