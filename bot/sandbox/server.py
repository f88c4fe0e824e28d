"""The sandbox as a server: its routes, its page, its start and its end.

Listens on this machine only unless told otherwise, and needs nothing from the internet.
"""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files
from types import TracebackType
from typing import Self

from aiohttp import web

from bot.sandbox import beside, handset, hooks, mail, script, second_company, slack_api, twilio_api
from bot.sandbox import files as uploads
from bot.sandbox.ledger import Ledger
from bot.sandbox.state import Workspace
from bot.sandbox.world import WORLD, Options, World

BODY_LIMIT = 4 * 1024 * 1024
LAST_WORDS_S = 0.5
SECURITY = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def build_app(world: World) -> web.Application:
    app = web.Application(middlewares=[script.plain_errors], client_max_size=BODY_LIMIT)
    app[WORLD] = world
    app.add_routes(
        [
            web.route("*", "/api/{method}", slack_api.handle),
            web.post("/response/{token}", hooks.handle),
            web.get("/socket", world.socket.connect),
            web.get("/", page),
            web.get(r"/page/{name:[\w-]+\.[a-z]+}", page),
            *script.routes(),
            *beside.routes(),
            *handset.routes(),
            *uploads.routes(),
            *twilio_api.routes(),
            *second_company.routes(),
        ]
    )
    return app


async def page(request: web.Request) -> web.Response:
    name = request.match_info.get("name", "index.html")
    file = files("bot.sandbox") / "page" / name
    if not file.is_file():
        return web.Response(status=404, text="There is no such page.")
    content_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    charset = "utf-8" if content_type.startswith("text/") or content_type.endswith("javascript") else None
    return web.Response(body=file.read_bytes(), content_type=content_type, charset=charset, headers=SECURITY)


class SandboxServer:
    """A running sandbox: `async with SandboxServer() as sandbox: … sandbox.url`."""

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, options: Options | None = None) -> None:
        self._host = host
        self._port = port
        self._options = options or Options()

    async def __aenter__(self) -> Self:
        self.world = World(self._options)
        self._runner = web.AppRunner(
            build_app(self.world), access_log=None, shutdown_timeout=LAST_WORDS_S, handle_signals=False
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
        try:
            await site.start()
        except OSError:
            await self._runner.cleanup()
            await self.world.close()
            raise
        self.port: int = self._runner.addresses[0][1]
        host = "127.0.0.1" if self._host in ("0.0.0.0", "::") else self._host  # noqa: S104  # compared, not bound
        self.url = f"http://{host}:{self.port}"
        self.world.base_url = self.url
        wanted = self._options.smtp_port
        self._mail = None if wanted is None else await mail.listen(self.world, self._host, wanted)
        self._agenda = asyncio.create_task(self.world.agenda.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._agenda.cancel()
        with suppress(asyncio.CancelledError):
            await self._agenda
        if self._mail is not None:
            self._mail.close()
        await self.world.close()
        await self._runner.cleanup()

    @property
    def smtp_port(self) -> int | None:
        """Where mail is taken; None: nowhere."""
        return None if self._mail is None else int(self._mail.sockets[0].getsockname()[1])

    @property
    def api_url(self) -> str:
        """What slack_sdk wants as its base URL."""
        return f"{self.url}/api/"

    @property
    def state(self) -> Workspace:
        return self.world.space

    @property
    def ledger(self) -> Ledger:
        return self.world.ledger

    async def until(self, met: Callable[[], bool], within_s: float = 5.0) -> None:
        """Wait until something in the sandbox is so; TimeoutError when it does not become so."""
        if not await self.world.changes.until(met, within_s):
            raise TimeoutError("the sandbox did not come to that state in time")


async def run_sandbox(
    *,
    host: str = "127.0.0.1",
    port: int = 8081,
    signing_secret: str | None = None,
    events_url: str | None = None,
    sms_url: str | None = None,
    control_url: str | None = None,
    auth_token: str | None = None,
    midwatch_url: str | None = None,
    smtp_port: int | None = None,
    status: Callable[[str], None] | None = None,
) -> None:
    """Serve until cancelled."""
    options = Options(
        events_url=events_url,
        sms_url=sms_url,
        control_url=control_url,
        midwatch_url=midwatch_url,
        smtp_port=smtp_port,
    )
    options = replace(
        options,
        signing_secret=signing_secret or options.signing_secret,
        auth_token=auth_token or options.auth_token,
    )
    async with SandboxServer(host=host, port=port, options=options) as sandbox:
        if status is not None:
            post = "" if sandbox.smtp_port is None else f", mail on port {sandbox.smtp_port}"
            status(f"Sandbox Slack and phones on {sandbox.url}{post}")
        await asyncio.Event().wait()
