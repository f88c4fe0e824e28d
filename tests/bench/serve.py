"""The servers that are measured, each a process of its own: a bare handler, and Midwatch's web role."""

from __future__ import annotations

import asyncio
import json
import sys

from aiohttp import web
from pydantic import SecretStr

from bot.app import Role, build
from bot.settings import Settings
from engine.clock import SystemClock
from engine.config.parse import parse_config
from engine.migrate import upgrade

CONFIG = """
people:
  - {name: ana, slack: U0ANA, timezone: UTC}
policies:
  - {name: bench, levels: [{targets: [{person: ana}], timeout: 5m}]}
services:
  - {name: bench, policy: bench}
"""


async def bare(port: int) -> None:
    """Reads the same body, parses it and answers: what no server in aiohttp can beat."""

    async def handle(request: web.Request) -> web.Response:
        json.loads(await request.read())
        return web.Response(status=202, body=b'{"status": "accepted"}', content_type="application/json")

    app = web.Application()
    app.router.add_post("/webhooks/alertmanager", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()


async def midwatch(port: int, url: str) -> None:
    settings = Settings(
        database_url=url, secret_key=SecretStr("a secret for benchmarks"), bind=f"127.0.0.1:{port}"
    )
    app = build(settings, SystemClock(), [], only=Role.WEB)
    await upgrade(app.database)
    await app.setup.apply(parse_config(CONFIG))
    await app.setup.create_key("bench", "bench")
    await app.start()


async def main(kind: str, port: str, url: str = "") -> None:
    await (bare(int(port)) if kind == "bare" else midwatch(int(port), url))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
