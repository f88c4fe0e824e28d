"""Midwatch as processes: killed between alert and page, and the demo from start to Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from pydantic import SecretStr

from bot.app import build
from bot.sandbox.server import SandboxServer
from bot.settings import Settings
from engine.clock import SystemClock, monotonic
from engine.config.parse import parse_config
from engine.migrate import upgrade
from tests.processes import WITHIN_S, Command, free_pair, midwatch
from tests.product import KEY, free_port

AUTHORIZATION = {"Authorization": f"Bearer {KEY}"}
EVENT = {"action": "trigger", "dedup_key": "d", "summary": "checkout is slow", "severity": "critical"}
SECRET = "a secret for tests only"
CONFIG = """
people:
- {name: ana, slack: U0ANA, timezone: Europe/Berlin, rules: {high: [slack], low: [slack]}}
policies:
- {name: payments, levels: [{targets: [{person: ana}], timeout: 5m}]}
services:
- {name: checkout, policy: payments, channel: "#payments"}
fallback: [{person: ana}]
"""


async def configured(database_url: str) -> None:
    """A database as `midwatch apply` and `midwatch key create` leave it."""
    app = build(Settings(database_url=database_url, secret_key=SecretStr(SECRET)), SystemClock())
    try:
        await upgrade(app.database)
        await app.setup.apply(parse_config(CONFIG))
        await app.setup.create_key("checkout", KEY)
    finally:
        await app.stop()


async def accepted(port: int) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"http://127.0.0.1:{port}/v1/events", json=EVENT, headers=AUTHORIZATION) as answer,
    ):
        assert answer.status == 202


async def test_killed_between_alert_and_page_it_pages_once(tmp_path: Path) -> None:
    """Accepted by a process that is killed before anybody was told: the next one pages, once, and hears."""
    port, database_url = free_port(), f"sqlite:///{tmp_path / 'midwatch.sqlite3'}"
    await configured(database_url)
    async with SandboxServer() as sandbox:
        env = {
            "MIDWATCH_DATABASE_URL": database_url,
            "MIDWATCH_SECRET_KEY": SECRET,
            "MIDWATCH_BIND": f"127.0.0.1:{port}",
            "SLACK_BOT_TOKEN": "xoxb-demo",
            "SLACK_APP_TOKEN": "xapp-demo",
            "SLACK_API_URL": sandbox.api_url,
        }
        # Why only the web: no process is so quick that it could be killed for certain before it pages.
        async with midwatch("run", "--only", "web", cwd=tmp_path, env=env) as first:
            await first.until("Midwatch listens on")
            await accepted(port)
            assert await first.end(signal.SIGKILL) == -signal.SIGKILL
        assert not sandbox.ledger.calls("chat.postMessage")
        async with midwatch("run", cwd=tmp_path, env=env) as second:
            await second.until("Midwatch listens on")
            direct, channel = sandbox.state.channels["D0ANA"], sandbox.state.channels["C0PAYMENTS"]
            await sandbox.until(lambda: bool(direct.messages and channel.messages), WITHIN_S)
            await sandbox.until(lambda: sandbox.world.wire.connected, WITHIN_S)
            await acknowledged(sandbox)
            assert await second.end(signal.SIGTERM) == 0
        assert [len(one.messages) for one in (direct, channel)] == [1, 1]
        assert "Traceback" not in second.written


async def acknowledged(sandbox: SandboxServer) -> None:
    """Ana clicks Ack in #payments, and the card says so."""
    (card,) = sandbox.state.channels["C0PAYMENTS"].messages.values()
    click = {"user": "ana", "channel": card.channel, "ts": card.ts, "action_id": "incident_ack"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{sandbox.url}/sandbox/click", json=click) as answer,
    ):
        assert (await answer.json())["ok"]
    await sandbox.until(lambda: "ACKED by @ana" in card.text, WITHIN_S)


# --- the demo -------------------------------------------------------------------------------------------


Running = tuple[Command, aiohttp.ClientSession]


@asynccontextmanager
async def demo(
    directory: Path, port: int, *more: str
) -> AsyncIterator[tuple[Command, aiohttp.ClientSession]]:
    command = ("demo", "--port", str(port), "--data", "demo", *more)
    async with midwatch(*command, cwd=directory) as running, aiohttp.ClientSession() as http:
        await running.until("Ctrl-C stops it.")
        yield running, http


async def ctrl_c(running: Command) -> None:
    began = monotonic()
    assert await running.end(signal.SIGINT) == 0
    assert monotonic() - began < 10
    assert "Traceback" not in running.written


async def titles(http: aiohttp.ClientSession, port: int) -> list[str]:
    async with http.get(f"http://127.0.0.1:{port}/v1/incidents", headers=AUTHORIZATION) as answer:
        assert answer.status == 200
        return [item["title"] for item in (await answer.json())["items"]]


async def card_stands(http: aiohttp.ClientSession, port: int) -> Mapping[str, Any]:
    """Read as the page does: told of each change by the sandbox's stream."""
    page = f"http://127.0.0.1:{port + 1}/sandbox"
    async with asyncio.timeout(WITHIN_S), http.get(f"{page}/stream") as stream:
        async for _ in stream.content:
            async with http.get(f"{page}/messages", params={"channel": "payments"}) as answer:
                shown: list[Mapping[str, Any]] = (await answer.json())["messages"]
            if shown:
                return shown[0]
    raise AssertionError("the stream ended before the card stood")


async def suggests_who_is_next(running: Command, http: aiohttp.ClientSession, port: int) -> None:
    """The override that the demo suggests changes who is on call."""
    async with http.get(f"http://127.0.0.1:{port}/v1/schedules/oncall", headers=AUTHORIZATION) as answer:
        primary = (await answer.json())["items"][0]
    on_call, following = ([each["name"] for each in primary[key]] for key in ("people", "next_people"))
    assert f"/override @{following[0]} 2h" in running.written
    assert following[0] not in on_call


async def test_the_demo_from_start_to_ctrl_c(tmp_path: Path) -> None:
    """It says what to open and to try, pages, stops in order; then keeps what happened, or starts afresh."""
    port = free_pair()
    async with demo(tmp_path, port) as (running, http):
        for said in (f"http://127.0.0.1:{port + 1}", "curl", "/oncall"):
            assert said in running.written
        await suggests_who_is_next(running, http, port)
        await accepted(port)
        assert "checkout is slow" in (await card_stands(http, port))["text"]
        async with midwatch("demo", "--port", str(port), "--data", "demo", cwd=tmp_path) as taken:
            assert await taken.end() == 2
            assert f"Port {port} cannot be used" in taken.written
        await ctrl_c(running)
    async with demo(tmp_path, port) as (running, http):
        assert await titles(http, port) == ["checkout is slow"]
        assert "checkout is slow" in (await card_stands(http, port))["text"]  # posted to the new Slack
        await ctrl_c(running)
    async with demo(tmp_path, port, "--fresh") as (running, http):
        assert await titles(http, port) == []
        await ctrl_c(running)
    assert (tmp_path / "demo" / "secret.key").stat().st_mode & 0o077 == 0
