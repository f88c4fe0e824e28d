"""`midwatch demo`, `run` and `sandbox` as processes: they start, say what to do, and stop in order."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

WITHIN_S = 90.0  # several processes start on a machine that others use too
ROOT = Path(__file__).parents[2]
AUTHORIZATION = {"Authorization": "Bearer demo"}


class Command:
    """A running command and what it has written so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.written = ""

    async def until(self, words: str) -> None:
        assert self.process.stdout is not None
        async with asyncio.timeout(WITHIN_S):
            while words not in self.written:
                line = await self.process.stdout.readline()
                assert line, f"it ended without {words!r}: {self.written}"
                self.written += line.decode()

    async def end(self, number: int | None = None) -> int:
        """Its exit code, after a signal if one is given."""
        if number is not None:
            self.process.send_signal(number)
        assert self.process.stdout is not None
        async with asyncio.timeout(WITHIN_S):
            self.written += (await self.process.stdout.read()).decode()
            return await self.process.wait()


@asynccontextmanager
async def midwatch(
    *arguments: str, cwd: Path, env: Mapping[str, str] | None = None, stdin: int | None = None
) -> AsyncIterator[Command]:
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith(("MIDWATCH_", "SLACK_"))
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", *arguments),
        cwd=cwd,
        env={**plain, "PYTHONPATH": str(ROOT), **(env or {})},
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield Command(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        # Why: the transport of the pipe is closed by a callback that the loop has yet to run.
        process._transport.close()  # type: ignore[attr-defined]


def free_pair() -> int:
    """A port that is free together with the one after it."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            try:
                second.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return port


async def incidents(port: int) -> list[str]:
    url = f"http://127.0.0.1:{port}/v1/incidents"
    async with aiohttp.ClientSession() as session, session.get(url, headers=AUTHORIZATION) as answer:
        assert answer.status == 200
        return [item["title"] for item in (await answer.json())["items"]]


@pytest.mark.slow
async def test_the_demo_starts_stops_and_keeps_what_happened(tmp_path: Path) -> None:
    """One command gives a pager and a Slack; a second start finds the incident of the first."""
    port = free_pair()
    command = ("demo", "--port", str(port), "--data", "demo")
    async with midwatch(*command, cwd=tmp_path) as demo:
        await demo.until("Ctrl-C stops it.")
        for said in (f"http://127.0.0.1:{port + 1}", "curl", "/oncall", "/override @ben 2h"):
            assert said in demo.written
        async with aiohttp.ClientSession() as session:
            event = {"summary": "checkout is slow", "severity": "critical"}
            url = f"http://127.0.0.1:{port}/v1/events"
            async with session.post(url, json=event, headers=AUTHORIZATION) as answer:
                assert answer.status == 202
        async with midwatch(*command, cwd=tmp_path) as second:
            assert await second.end() == 2
            assert f"Port {port} cannot be used" in second.written
        assert await demo.end(signal.SIGINT) == 0
        assert "Traceback" not in demo.written
    async with midwatch(*command, cwd=tmp_path) as demo:
        await demo.until("Ctrl-C stops it.")
        assert await incidents(port) == ["checkout is slow"]
        assert await demo.end(signal.SIGINT) == 0
    assert (tmp_path / "demo" / "secret.key").stat().st_mode & 0o077 == 0


async def test_fresh_removes_nothing_but_a_demo(tmp_path: Path) -> None:
    """A wrong --data with --fresh costs nobody their files."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("years of work")
    command = ("demo", "--port", str(free_pair()), "--data", "home", "--fresh")
    async with midwatch(*command, cwd=tmp_path) as demo:
        assert await demo.end() == 2
        assert "does not look like a demo's directory" in demo.written
    assert (tmp_path / "home" / "thesis.txt").exists()


async def test_run_needs_no_slack_to_start_and_stops_on_sigterm(tmp_path: Path) -> None:
    """A new install runs with nothing set, says what is not set up, is ready, and stops with 0."""
    port = free_pair()
    async with midwatch("run", cwd=tmp_path, env={"MIDWATCH_BIND": f"127.0.0.1:{port}"}) as run:
        await run.until("Midwatch listens on")
        assert "without Slack and without SMS and calls" in run.written
        url = f"http://127.0.0.1:{port}/readyz"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert answer.status == 200
        assert await run.end(signal.SIGTERM) == 0
    assert "Traceback" not in run.written


async def test_the_sandbox_ends_with_whoever_started_it(tmp_path: Path) -> None:
    """When the other end of its standard input closes, however that came, the sandbox is gone."""
    command = ("sandbox", "--port", str(free_pair()), "--parent", "stdin")
    async with midwatch(*command, cwd=tmp_path, stdin=asyncio.subprocess.PIPE) as sandbox:
        await sandbox.until("Sandbox Slack and phones on")
        assert sandbox.process.stdin is not None
        sandbox.process.stdin.close()
        assert await sandbox.end() == 0


async def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path) -> None:
    """The sandbox and run say which port cannot be used."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        async with midwatch("sandbox", "--port", str(port), cwd=tmp_path) as sandbox:
            assert await sandbox.end() == 2
            assert f"Port {port} cannot be used" in sandbox.written
        async with midwatch("run", cwd=tmp_path, env={"MIDWATCH_BIND": f"127.0.0.1:{port}"}) as run:
            assert await run.end() == 1
            assert "address already in use" in run.written
            assert "Traceback" not in run.written
