"""Page latency: from the POST to the sandbox receiving the card and the DM, at rest and in a storm."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from bot.sandbox.server import SandboxServer
from tests.bench.ingest import body, free_port

INCIDENTS = 25
APART = 1.3  # seconds: Slack takes one message per second and channel
STORM_RATE = 200  # repeats a second, of STORM_KEYS alerts
STORM_KEYS = 100

CONFIG = """
people:
  - {name: ana, slack: U0ANA, timezone: UTC, rules: {high: [slack]}}
  - {name: ben, slack: U0BEN, timezone: UTC, rules: {high: [slack]}}
policies:
  - {name: measured, levels: [{targets: [{person: ben}], timeout: 30m}]}
  - {name: storm, levels: [{targets: [{person: ana}], timeout: 30m}]}
services:
  - {name: measured, policy: measured, channel: "#general"}
  - {name: storm, policy: storm, channel: "#payments"}
"""


@asynccontextmanager
async def midwatch(directory: Path, url: str, sandbox: SandboxServer) -> AsyncIterator[str]:
    """A Midwatch of its own process, as anybody would run it."""
    port = free_port()
    env = {
        **os.environ,
        "MIDWATCH_DATABASE_URL": url,
        "MIDWATCH_SECRET_KEY": "a secret for benchmarks",
        "MIDWATCH_BIND": f"127.0.0.1:{port}",
        "SLACK_BOT_TOKEN": "xoxb-demo",
        "SLACK_APP_TOKEN": "xapp-demo",
        "SLACK_API_URL": sandbox.api_url,
    }
    config = directory / "midwatch.yaml"
    config.write_text(CONFIG)
    for arguments in (
        ("apply", str(config)),
        ("key", "create", "measured", "--value", "measured-key"),
        ("key", "create", "storm", "--value", "storm-key"),
    ):
        await _command(env, *arguments)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", "run"),
        env=env,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await sandbox.until(lambda: bool(sandbox.ledger.calls("auth.test")), within_s=60)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()


async def _command(env: dict[str, str], *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", *arguments),
        env=env,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    if process.returncode:
        raise RuntimeError(said.decode())


async def _post(session: aiohttp.ClientSession, base: str, key: str, raw: bytes) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    async with session.post(f"{base}/webhooks/alertmanager", data=raw, headers=headers) as answer:
        if answer.status != 202:
            raise RuntimeError(f"not accepted: {answer.status}")


def _seen(sandbox: SandboxServer, title: str) -> int:
    """How many messages with this title arrived: the card and the DM are two."""
    posts = sandbox.ledger.calls("chat.postMessage", ok=True)
    return sum(title in json.dumps(call.args, default=str) for call in posts)


async def _measure(
    sandbox: SandboxServer, base: str, names: itertools.count[int], incidents: int
) -> list[float]:
    latencies = []
    async with aiohttp.ClientSession() as session:
        for _ in range(incidents):
            title = f"measured {next(names):03d}"
            raw = body(title).replace(b"p99 > 2s", title.encode())
            began = time.perf_counter()
            await _post(session, base, "measured-key", raw)
            await sandbox.until(lambda title=title: _seen(sandbox, title) >= 2, within_s=60)  # type: ignore[misc]  # mypy cannot see the default
            latencies.append(time.perf_counter() - began)
            await asyncio.sleep(max(0.0, APART - latencies[-1]))
    return latencies


async def _storm(base: str, stop: asyncio.Event) -> int:
    """Repeats of the same alerts at a steady rate."""
    raws = itertools.cycle([body(f"storm-{n}") for n in range(STORM_KEYS)])
    sent = 0
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as posts:
        began = time.perf_counter()
        while not stop.is_set():
            posts.create_task(_post(session, base, "storm-key", next(raws)))
            sent += 1
            await asyncio.sleep(max(0.0, began + sent / STORM_RATE - time.perf_counter()))
    return sent


async def run(directory: Path, url: str, incidents: int = INCIDENTS) -> list[tuple[str, list[float]]]:
    """(name, latencies in seconds)."""
    names = itertools.count()
    async with SandboxServer() as sandbox, midwatch(directory, url, sandbox) as base:
        await _measure_once(sandbox, base, names)
        rest = await _measure(sandbox, base, names, incidents)
        stop = asyncio.Event()
        storm = asyncio.create_task(_storm(base, stop))
        busy = await _measure(sandbox, base, names, incidents)
        stop.set()
        await storm
    return [("at rest", rest), (f"while {STORM_RATE} repeats/s arrive", busy)]


async def _measure_once(sandbox: SandboxServer, base: str, names: itertools.count[int]) -> None:
    """The first page opens connections and DM channels; it is not measured."""
    async with aiohttp.ClientSession() as session:
        title = f"warm {next(names):03d}"
        await _post(session, base, "measured-key", body(title).replace(b"p99 > 2s", title.encode()))
        await sandbox.until(lambda: _seen(sandbox, title) >= 2, within_s=60)
    await asyncio.sleep(APART)
