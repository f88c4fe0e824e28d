"""A pager that is a process of its own, and dies or stops as one: started by `process`, told what to do
by lines on a socket.

It reads the time from a file that the test moves, and sends by asking the test's ledger. It is forked
from a process that has imported everything: the imports would take longer than the whole night.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import signal
import socket
import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog

from bot.app import App
from engine.errors import Unavailable
from engine.models import Outcome
from engine.notify import pipeline
from engine.schema import EPOCH, MICROSECOND
from tests.crash.faults import Fault, Kind
from tests.crash.ledger import Message, from_json
from tests.crash.orders import ORDERS, built
from tests.crash.watched import Trap, Watched


class FileClock:
    """The time as the test wrote it, microseconds since 1970."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._view = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)

    def now(self) -> datetime:
        return EPOCH + int.from_bytes(self._view[:8], "little") * MICROSECOND

    def monotonic(self) -> float:
        return self.now().timestamp()

    async def sleep_until(self, when: datetime) -> None:
        raise NotImplementedError("nothing in a story sleeps by itself")


class Child:
    def __init__(self, url: str, clock: FileClock, path: str, line: socket.socket) -> None:
        self._clock = clock
        self._path = path
        self._line = line
        self._database = Watched(url)
        self._trap: Trap | None = None
        self._app: App | None = None

    async def serve(self) -> None:
        reader, _ = await asyncio.open_unix_connection(sock=self._line)
        while heard := await reader.readline():
            self._say(await self._obey(json.loads(heard)))

    async def _obey(self, order: dict[str, Any]) -> dict[str, Any]:
        try:
            if "begin" in order:
                await self._begin(Fault(Kind(order["begin"]), order["nth"]))
                return {"result": 0}
            assert self._app is not None, "it was never told to begin"
            result = await ORDERS[order["do"]](self._app)
        except Unavailable:
            return {"unavailable": True}
        except Exception as error:
            return {"failed": repr(error)}
        boundaries = self._trap.boundaries if self._trap else None
        return {"result": result, "at": boundaries.at if boundaries else ""}

    async def _begin(self, fault: Fault) -> None:
        """A pager as after a start: nothing of an earlier run is known."""
        self._database.trap = None
        await self._database.close()
        self._trap = Trap(fault, kill=_die, meet=self._stop)
        self._database.trap = self._trap
        self._app = built(self._database, self._clock, self._give, self._trap)

    async def _stop(self, _kind: Kind, _blocked: bool) -> None:
        assert self._trap is not None
        self._say({"stopping": self._trap.boundaries.at})
        os.kill(os.getpid(), signal.SIGSTOP)

    async def _give(self, message: Message) -> Outcome:
        reader, writer = await asyncio.open_unix_connection(self._path)
        writer.write(json.dumps({"message": asdict(message)}).encode() + b"\n")
        answer = json.loads(await reader.readline())
        writer.close()
        return from_json(answer)

    def _say(self, words: dict[str, Any]) -> None:
        # Why past the loop: it must be out before the process stops.
        os.write(self._line.fileno(), json.dumps(words).encode() + b"\n")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _child(url: str, clock: str, path: str) -> None:
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
    os.write(line.fileno(), json.dumps({"pager": os.getpid()}).encode() + b"\n")
    line.setblocking(False)
    read = FileClock(Path(clock))
    vars(pipeline)["monotonic"] = read.monotonic  # its watchdogs go on while the process stands still
    asyncio.run(Child(url, read, path, line).serve())


def main() -> None:
    """Fork a pager for each line (database, clock, socket), until there are no more lines."""
    structlog.configure(processors=[structlog.processors.KeyValueRenderer()], logger_factory=_to_stderr())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them: their sockets close
    for words in sys.stdin:
        if os.fork() == 0:
            os.close(0)
            _child(*json.loads(words))
            os._exit(0)


def _to_stderr() -> Any:
    return structlog.PrintLoggerFactory(sys.stderr)


if __name__ == "__main__":
    main()
