"""The test's end of pagers that are processes of their own: it starts them, moves their clock, keeps
their ledger, and sees them die.

One family for all runs of a test. Whatever it started is gone when its block ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.errors import Unavailable
from engine.schema import EPOCH, MICROSECOND
from tests.crash.faults import Fault, Killed
from tests.crash.ledger import Ledger, Message, as_json
from tests.fakes import START, FakeClock
from tests.processes import ROOT, WITHIN_S


class SharedClock(FakeClock):
    """Moved here, read by every pager."""

    def __init__(self, path: Path, start: datetime = START) -> None:
        super().__init__(start)
        self._path = path
        self._write()

    def move_to(self, when: datetime) -> datetime:
        moved = super().move_to(when)
        self._write()
        return moved

    def _write(self) -> None:
        micros = (self.now() - EPOCH) // MICROSECOND
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT)
        os.write(file, micros.to_bytes(8, "little"))
        os.close(file)


@dataclass(slots=True)
class Child:
    """One pager. `do` raises Killed when it is gone."""

    pid: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    at: str = ""  # where its fault befell it
    stopped: Callable[[Child], Awaitable[None]] | None = None

    async def begin(self, fault: Fault) -> None:
        self.at = ""
        await self._ask({"begin": fault.kind.value, "nth": fault.nth})

    async def do(self, order: str) -> int:
        return int((await self._ask({"do": order}))["result"])

    async def _ask(self, words: dict[str, Any]) -> dict[str, Any]:
        with suppress(ConnectionError):
            self.writer.write(json.dumps(words).encode() + b"\n")
            await self.writer.drain()
        answer = await self._hear()
        while "stopping" in answer:
            self.at = answer["stopping"]
            assert self.stopped is not None, "it stopped, and nobody is there to start it again"
            await self.stopped(self)
            answer = await self._hear()
        if "unavailable" in answer:
            raise Unavailable
        assert "failed" not in answer, answer
        self.at = answer.get("at", self.at)
        return answer

    async def _hear(self) -> dict[str, Any]:
        line = b""
        with suppress(ConnectionError):
            async with asyncio.timeout(WITHIN_S):
                line = await self.reader.readline()
        if not line:
            self.at = self.at or "a boundary, by SIGKILL"
            raise Killed("it is gone")
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def is_stopped(self) -> None:
        """Return when the process has come to a stand."""
        async with asyncio.timeout(WITHIN_S):
            while _state(self.pid) != "T":  # noqa: ASYNC110  # the kernel has no event for it
                await asyncio.sleep(0)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.writer.close()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]


@dataclass(slots=True)
class Family:
    """The forking process, and who was forked."""

    url: str
    directory: Path
    forker: asyncio.subprocess.Process
    ledger: Ledger | None = None
    arrived: asyncio.Queue[Child] = field(default_factory=asyncio.Queue)
    children: list[Child] = field(default_factory=list)

    @property
    def path(self) -> str:
        return str(self.directory / "line")

    @property
    def clock_path(self) -> Path:
        return self.directory / "clock"

    async def new(self) -> Child:
        assert self.forker.stdin is not None
        words = [self.url, str(self.clock_path), self.path]
        self.forker.stdin.write(json.dumps(words).encode() + b"\n")
        await self.forker.stdin.drain()
        async with asyncio.timeout(WITHIN_S):
            child = await self.arrived.get()
        self.children.append(child)
        return child

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A pager that was born, or a message that one of them sends."""
        said = json.loads(await reader.readline() or b"{}")
        if "pager" in said:
            await self.arrived.put(Child(said["pager"], reader, writer))
            return
        if "message" in said and self.ledger is not None:
            outcome = self.ledger.receive(Message(**said["message"]))
            with suppress(ConnectionError):  # whoever asked may be dead by now
                writer.write(json.dumps(as_json(outcome)).encode() + b"\n")
                await writer.drain()
        writer.close()


@asynccontextmanager
async def family(url: str) -> AsyncIterator[Family]:
    # Why /tmp: the path of a socket may not be long.
    with tempfile.TemporaryDirectory(prefix="midwatch-", dir="/tmp") as directory:  # see above
        forker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.crash.child"),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        made = Family(url, Path(directory), forker)
        server = await asyncio.start_unix_server(made.connected, made.path)
        try:
            yield made
        finally:
            for child in made.children:
                child.end()
            forker.kill()
            await forker.wait()
            forker._transport.close()  # type: ignore[attr-defined]  # asyncio has no public way to close it
            server.close()
            await server.wait_closed()
