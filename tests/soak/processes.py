"""`midwatch run`, as anybody would run it: started, found ready, killed with -9 and started again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import Final

import aiohttp

from tests.processes import ROOT
from tests.product import free_port

READY_WITHIN_S: Final = 120.0  # on a machine that others use too


class Process:
    """One process on a port that it keeps over its lives; its log goes on in one file."""

    def __init__(self, env: Mapping[str, str], log: Path) -> None:
        self.port = free_port()
        self._env = {**env, "MIDWATCH_BIND": f"127.0.0.1:{self.port}"}
        self.log = log
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self, http: aiohttp.ClientSession) -> None:
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bot", "run"), env=self._env, stdout=log, stderr=log
            )
        async with asyncio.timeout(READY_WITHIN_S):
            while not await self._ready(http):
                if self._process.returncode is not None:
                    raise RuntimeError(f"a process ended: {self.log.read_text()[-2000:]}")
                await asyncio.sleep(0.1)

    async def _ready(self, http: aiohttp.ClientSession) -> bool:
        try:
            async with http.get(f"{self.url}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    async def end(self, how: signal.Signals) -> int:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(how)
        return await self._process.wait()


@dataclass
class Fleet:
    """All processes of one install."""

    processes: Sequence[Process]
    http: aiohttp.ClientSession
    killed_at: list[float] = field(default_factory=list)
    peace: asyncio.Event = field(default_factory=asyncio.Event)
    down: list[tuple[float, float]] = field(default_factory=list)  # when none could take an alert

    @property
    def any_url(self) -> str:
        return random.choice(self.processes).url

    async def start(self) -> None:
        for process in self.processes:  # one after the other: the first makes the tables
            await process.start(self.http)

    async def kill_now_and_then(self, shortest_s: float, longest_s: float) -> None:
        """Until `peace`; whoever was killed last is ready by then."""
        while not await self._peace_within(random.uniform(shortest_s, longest_s)):
            victim = random.choice(self.processes)
            self.killed_at.append(time())
            await victim.end(signal.SIGKILL)
            await victim.start(self.http)
            if len(self.processes) == 1:
                self.down.append((self.killed_at[-1], time()))

    async def _peace_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self.peace.wait()
        return False

    async def stop(self) -> list[int]:
        """Their exit codes: each finishes what it holds."""
        return [await process.end(signal.SIGTERM) for process in self.processes]

    async def kill(self) -> None:
        for process in self.processes:
            await process.end(signal.SIGKILL)


def environment(database_url: str, provider_url: str, secret: str, sid: str, token: str) -> dict[str, str]:
    # Why bytecode: where Python may not write it, each start compiles everything anew, and is twice as long.
    ours = ("MIDWATCH_", "SLACK_", "TWILIO_", "PYTHONDONTWRITEBYTECODE")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {
        **plain,
        "PYTHONPATH": str(ROOT),
        "MIDWATCH_DATABASE_URL": database_url,
        "MIDWATCH_SECRET_KEY": secret,
        "TWILIO_ACCOUNT_SID": sid,
        "TWILIO_AUTH_TOKEN": token,
        "TWILIO_FROM": "+12025550100",
        "MIDWATCH_SMS_PER_SECOND": "1000",
        "MIDWATCH_CALLS_PER_SECOND": "1000",
        "TWILIO_API_URL": provider_url,
    }
