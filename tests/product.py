"""The whole product on this machine: Midwatch on free ports, and a sandbox Slack and phones beside it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import aiohttp
from pydantic import SecretStr

from bot.app import App, build
from bot.sandbox.server import SandboxServer
from bot.sandbox.world import Options
from bot.settings import Settings
from engine.clock import MovableClock
from engine.config.parse import parse_config
from engine.migrate import upgrade

KEY = "demo"


@dataclass(frozen=True, slots=True)
class Product:
    """Midwatch at `url`, Slack and phones in `sandbox`; `http` calls both."""

    app: App
    sandbox: SandboxServer
    url: str
    http: aiohttp.ClientSession

    async def post(self, path: str, body: Any, key: str = KEY) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {key}"}
        async with self.http.post(f"{self.url}{path}", json=body, headers=headers) as answer:
            return answer.status, await answer.json()

    async def get(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with self.http.get(f"{self.url}{path}", headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def slack(self, path: str, **body: Any) -> Any:
        """A script route of the sandbox, posted."""
        async with self.http.post(f"{self.sandbox.url}/sandbox/{path}", json=body) as answer:
            return await answer.json()

    async def seen(self, path: str) -> Any:
        async with self.http.get(f"{self.sandbox.url}/sandbox/{path}") as answer:
            return await answer.json()


@asynccontextmanager
async def product(
    directory: Path, database_url: str | None = None, *, team: bool = True, **changed: Any
) -> AsyncIterator[Product]:
    """The demo's team on a database of its own, or nobody yet; `changed` are settings that differ."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    by_http = changed.get("slack_signing_secret") is not None
    options = Options(
        control_url=url,
        sms_url=f"{url}/webhooks/twilio/sms" if changed.get("public_url", url) else None,
        midwatch_url=url,
        events_url=f"{url}/slack/events" if by_http else None,
    )
    async with SandboxServer(options=options) as sandbox, aiohttp.ClientSession() as http:
        settings = Settings.model_validate(
            {
                "demo": True,
                "database_url": database_url or f"sqlite:///{directory / 'product.sqlite3'}",
                "secret_key": SecretStr("a secret for tests only"),
                "bind": f"127.0.0.1:{port}",
                "public_url": url,
                "ops_channel": "#ops",
                "slack_bot_token": "xoxb-demo",
                "slack_app_token": "xapp-demo",
                "slack_api_url": sandbox.api_url,
                "twilio_account_sid": "AC" + "0" * 32,
                "twilio_auth_token": "demo",
                "twilio_from": "+12025550100",
                "twilio_api_url": sandbox.url,
                **changed,
            }
        )
        app = build(settings, MovableClock())
        try:
            await upgrade(app.database)
            if team:
                await app.setup.apply(parse_config((files("bot") / "demo.yaml").read_text(encoding="utf-8")))
                await app.setup.create_key("checkout", KEY)
            await app.setup.create_token("tests", value=KEY)
            await app.start()
            yield Product(app, sandbox, url, http)
        finally:
            await app.stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
