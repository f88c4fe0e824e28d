"""A phone company on this machine that speaks Twilio's JSON: keeps what it was sent, fails on demand."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

SID = "AC00000000000000000000000000000001"
TOKEN = "sesame-token"


@dataclass
class Fault:
    """One answer that is not a success; `hang` never answers."""

    status: int = 500
    code: int | None = None
    retry_after: str | None = None
    body: str | None = None
    hang: bool = False


@dataclass
class PhoneCompany:
    messages: list[dict[str, str]] = field(default_factory=list)
    inbox: list[dict[str, str]] = field(default_factory=list)  # newest first, as Twilio lists
    asked: list[dict[str, str]] = field(default_factory=list)  # the queries for it
    calls: list[dict[str, str]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    became: dict[str, dict[str, object]] = field(default_factory=dict)  # of messages and calls, by sid
    faults: list[Fault] = field(default_factory=list)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    @property
    def app(self) -> web.Application:
        app = web.Application()
        account = f"/2010-04-01/Accounts/{SID}"
        app.router.add_post(f"{account}/Messages.json", self._message)
        app.router.add_get(f"{account}/Messages.json", self._list)
        app.router.add_get(f"{account}/{{what}}/{{sid}}.json", self._fetch)
        app.router.add_post(f"{account}/Calls.json", self._call)
        app.router.add_post(f"{account}/Calls/{{sid}}.json", self._update)
        return app

    async def _message(self, request: web.Request) -> web.Response:
        if (failed := await self._fail(request)) is not None:
            return failed
        self.messages.append(await form(request))
        return web.json_response({"sid": f"SM{len(self.messages)}", "status": "queued"}, status=201)

    async def _list(self, request: web.Request) -> web.Response:
        if (failed := await self._fail(request)) is not None:
            return failed
        query = dict(request.query)
        self.asked.append(query)
        size, number = int(query["PageSize"]), int(query.get("Page", 0))
        following = (number + 1) * size
        uri = request.rel_url.update_query({"Page": str(number + 1)})
        return web.json_response(
            {
                "messages": self.inbox[number * size : following],
                "next_page_uri": str(uri) if following < len(self.inbox) else None,
            }
        )

    async def _fetch(self, request: web.Request) -> web.Response:
        if (failed := await self._fail(request)) is not None:
            return failed
        sid = request.match_info["sid"]
        if sid not in self.became:
            return web.json_response({"code": 20404, "message": "not found", "status": 404}, status=404)
        return web.json_response({"sid": sid, **self.became[sid]})

    async def _call(self, request: web.Request) -> web.Response:
        if (failed := await self._fail(request)) is not None:
            return failed
        self.calls.append(await form(request))
        return web.json_response({"sid": f"CA{len(self.calls)}", "status": "queued"}, status=201)

    async def _update(self, request: web.Request) -> web.Response:
        if (failed := await self._fail(request)) is not None:
            return failed
        if (await form(request)).get("Status") == "completed":
            self.ended.append(request.match_info["sid"])
        return web.json_response({"sid": request.match_info["sid"], "status": "completed"})

    async def _fail(self, request: web.Request) -> web.Response | None:
        expected = base64.b64encode(f"{SID}:{TOKEN}".encode()).decode()
        if request.headers.get("Authorization") != f"Basic {expected}":
            return web.json_response({"code": 20003, "message": "Authenticate"}, status=401)
        if not self.faults:
            return None
        fault = self.faults.pop(0)
        if fault.hang:
            await self.release.wait()
        headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
        if fault.body is not None:
            return web.Response(text=fault.body, status=fault.status, headers=headers)
        said = {
            "code": fault.code,
            "message": f"about {(await form(request)).get('To')}",
            "status": fault.status,
        }
        return web.json_response(said, status=fault.status, headers=headers)


async def form(request: web.Request) -> dict[str, str]:
    fields = await request.post()
    return {name: str(value) for name, value in fields.items()}


@asynccontextmanager
async def serving(app: web.Application) -> AsyncIterator[str]:
    """The base URL of `app` on a free port of this machine."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
