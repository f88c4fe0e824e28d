"""The web application: every route on one port, and the server's limits.

Never starts or stops anything but itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from bot.web import bodies
from bot.web.answer import AnswerPage
from bot.web.api import Api
from bot.web.calendar import Calendar
from bot.web.demo import DemoClock
from bot.web.health import Health
from bot.web.ingest import Ingest
from bot.web.keys import Keys
from bot.web.middlewares import AccessLog, guard
from bot.web.parts import WebParts
from bot.web.phone import Phone
from engine.links import Links

IDLE_SECONDS: Final = 10  # also for the head of a request: aiohttp counts from the end of the last one
GRACE_SECONDS: Final = 10  # a request that is being committed is finished

ABOUT: Final = """Midwatch: an on-call pager that lives in Slack.

Alerts   POST /webhooks/alertmanager, /webhooks/generic, /v1/events, /v2/enqueue (PagerDuty's form)
API      /v1/incidents, /v1/schedules/oncall; all of it in /v1/openapi.json
Answers  /answer/TOKEN, by links in mails and push messages
Shifts   /calendar/TOKEN.ics, by links that `/oncall me calendar` makes
Health   /healthz, /readyz, /metrics
"""


def build_web(parts: WebParts) -> web.Application:
    app = web.Application(middlewares=[guard], client_max_size=bodies.INGEST_LIMIT)
    Ingest(Keys(parts.database), parts.receiver).mount(app)
    Api(parts).mount(app)
    Health(parts).mount(app)
    if parts.public_url is not None:
        AnswerPage(parts, Links(parts.vault.link_key, parts.public_url)).mount(app)
    if parts.calendars is not None:
        Calendar(parts.calendars).mount(app)
    if parts.phones is not None:
        Phone(parts, parts.phones).mount(app)
    if parts.slack_http is not None:
        app.router.add_post("/slack/events", parts.slack_http)
    if parts.demo is not None:
        DemoClock(parts, parts.demo).mount(app)
    app.router.add_get("/", _about(parts.demo.page if parts.demo else None))
    return app


def runner(app: web.Application) -> web.AppRunner:
    """The server with its limits. Bodies are not inflated: what is small stays small."""
    return web.AppRunner(
        app,
        access_log_class=AccessLog,
        keepalive_timeout=IDLE_SECONDS,
        shutdown_timeout=GRACE_SECONDS,
        auto_decompress=False,
    )


def _about(page: str | None) -> Callable[[web.Request], Awaitable[web.Response]]:
    """What is here; in the demo a browser is taken to the page, and others are told where it is."""

    async def about(request: web.Request) -> web.Response:
        if page is not None and "text/html" in request.headers.get("Accept", ""):
            return web.Response(status=302, headers={"Location": page})
        return web.Response(text=ABOUT if page is None else f"{ABOUT}Demo     {page}: Slack and the phones\n")

    return about
