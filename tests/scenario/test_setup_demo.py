"""`midwatch run`, `demo` and `sandbox` as processes: they start, say what to do, and stop in order."""

from __future__ import annotations

import asyncio
import signal
import socket
import sqlite3
from pathlib import Path

import aiohttp

from tests.processes import free_pair, midwatch


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


async def test_an_empty_demo_has_nobody_and_says_how_to_begin(tmp_path: Path) -> None:
    """What a new install looks like; it is kept apart from the demo with a team."""
    port = free_pair()
    command = ("demo", "--port", str(port), "--data", "home", "--empty")
    async with midwatch(*command, cwd=tmp_path) as demo:
        await demo.until("Ctrl-C stops it.")
        assert "/oncall schedule new" in demo.written
        assert await demo.end(signal.SIGTERM) == 0
    with sqlite3.connect(tmp_path / "home-empty" / "midwatch.sqlite3") as database:
        assert database.execute("SELECT count(*) FROM people").fetchone() == (0,)
    assert not (tmp_path / "home").exists()


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


async def test_a_port_that_only_the_page_needs_is_explained(tmp_path: Path) -> None:
    """The demo has two ports: which one is taken is said, and what it is needed for."""
    port = free_pair()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port + 1))
        taken.listen()
        async with midwatch("demo", "--port", str(port), cwd=tmp_path) as demo:
            assert await demo.end() == 2
            assert f"Port {port + 1} cannot be used" in demo.written
            assert f"The page with Slack and the phones needs it, beside {port}." in demo.written
