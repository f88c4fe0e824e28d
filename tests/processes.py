"""Midwatch's own commands as processes of a test: started, read, waited for, ended.

A process that a test leaves running is killed when its block ends.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

WITHIN_S = 90.0  # several processes start on a machine that others use too
ROOT = Path(__file__).parents[1]


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
    ours = ("MIDWATCH_", "SLACK_", "TWILIO_")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
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
        process._transport.close()  # type: ignore[attr-defined]  # asyncio has no public way to close it


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
