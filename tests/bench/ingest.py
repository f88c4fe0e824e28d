"""Ingest: single-alert Alertmanager posts against a bare aiohttp handler that parses the same body."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.bench.load import Result, load, request

CONNECTIONS = 64
SECONDS = 6.0
WARM = 1.5
PATH = "/webhooks/alertmanager"
BODY = json.loads((Path(__file__).parents[1] / "cases/payloads/01_firing_single.json").read_text())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def server(*arguments: str) -> AsyncIterator[int]:
    """One of tests.bench.serve, ready; its port."""
    port = free_port()
    kind, *rest = arguments
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.serve", kind, str(port), *rest),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    while b"ready" not in (line := await process.stdout.readline()):
        if not line:
            raise RuntimeError(f"the {kind} server did not start")
    try:
        yield port
    finally:
        process.kill()
        await process.wait()


def repeats(keys: int = 100) -> Callable[[], bytes]:
    """The same alerts again and again."""
    requests = itertools.cycle([request(PATH, body(f"repeat-{n}")) for n in range(keys)])
    return lambda: next(requests)


def new_keys() -> Callable[[], bytes]:
    """An alert that nobody has seen, each time."""
    numbers = itertools.count()
    return lambda: request(PATH, body(f"new-{next(numbers)}"))


def body(key: str) -> bytes:
    alert = BODY["alerts"][0] | {"fingerprint": key}
    return json.dumps(BODY | {"groupKey": key, "alerts": [alert]}, separators=(",", ":")).encode()


async def measure(port: int, make: Callable[[], bytes], seconds: float, warm: float) -> Result:
    await load(port, CONNECTIONS, warm, make)
    result = await load(port, CONNECTIONS, seconds, make)
    wrong = {status: count for status, count in result.statuses.items() if status != 202}
    if wrong:
        raise RuntimeError(f"not every alert was accepted: {wrong}")
    return result


async def run(
    postgresql: str, sqlite: str, seconds: float = SECONDS, warm: float = WARM
) -> list[tuple[str, Result, float]]:
    """(name, result, share of the bare handler's rate), measured side by side."""
    rows: list[tuple[str, Result, float]] = []
    async with server("bare") as port:
        bare = await measure(port, repeats(), seconds, warm)
    rows.append(("bare aiohttp handler", bare, 1.0))
    for name, url in (("SQLite", sqlite), ("PostgreSQL", postgresql)):
        async with server("midwatch", url) as port:
            for kind, make in (("repeats", repeats()), ("all-new keys", new_keys())):
                result = await measure(port, make, seconds, warm)
                rows.append((f"Midwatch on {name}, {kind}", result, result.rate / bare.rate))
    return rows
