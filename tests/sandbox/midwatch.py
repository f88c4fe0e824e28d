"""A stand-in for Midwatch's web side: remembers what is posted to it and answers as it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from aiohttp import web
from twilio.request_validator import RequestValidator


@dataclass
class Midwatch:
    """`answers`: the TwiML for a path. `due`: what the demo control still has to do. `on_call`: schedules."""

    url: str = ""
    posts: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    due: list[datetime] = field(default_factory=list)
    moved_to: list[datetime] = field(default_factory=list)
    on_call: list[dict[str, object]] = field(default_factory=list)

    async def phone(self, request: web.Request) -> web.Response:
        form = await request.post()
        signature = request.headers.get("X-Twilio-Signature", "")
        if not RequestValidator("demo").validate(str(request.url), form, signature):
            return web.Response(status=403)
        self.posts.append((request.path, {key: str(value) for key, value in form.items()}))
        return web.Response(text=self.answers.get(request.path, ""), content_type="text/xml")

    async def next_due(self, request: web.Request) -> web.Response:
        return web.json_response({"due_at": min(self.due).isoformat() if self.due else None})

    async def advance(self, request: web.Request) -> web.Response:
        now = datetime.fromisoformat((await request.json())["to"])
        self.moved_to.append(now)
        self.due = [when for when in self.due if when > now]
        return web.json_response({"now": now.isoformat(), "worked": 1})

    async def schedules(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != "Bearer demo":
            return web.Response(status=401)
        return web.json_response({"items": self.on_call})

    def statuses(self, path: str, key: str) -> list[str]:
        return [params[key] for where, params in self.posts if where == path]


@asynccontextmanager
async def running() -> AsyncIterator[Midwatch]:
    midwatch = Midwatch()
    app = web.Application()
    app.router.add_get("/demo/next", midwatch.next_due)
    app.router.add_post("/demo/advance", midwatch.advance)
    app.router.add_get("/v1/schedules/oncall", midwatch.schedules)
    app.router.add_post("/phone/{what}", midwatch.phone)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    midwatch.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield midwatch
    finally:
        await runner.cleanup()


SECOND = timedelta(seconds=1)
