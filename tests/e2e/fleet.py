"""Several `midwatch run` on one database, and the phone company that hears from all of them.

Acts through their ports and signals; looks at the database and at their metrics, as an operator could.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import sqlalchemy as sa
from aiohttp import web
from pydantic import SecretStr

from bot.app import App, build
from bot.settings import Settings
from engine.clock import SystemClock, monotonic
from engine.config.parse import parse_config
from engine.migrate import upgrade
from tests.notify.phone_company import SID, TOKEN, PhoneCompany, form, serving
from tests.processes import WITHIN_S, Command, midwatch
from tests.product import KEY, free_port

SECRET = "a secret for tests only"
PEOPLE = 60  # as many as alerts of one test: nobody is texted twice in a minute
OURS = "+12025550100"


def number(person: int) -> str:
    return f"+1202556{person:04}"


def config() -> str:
    """Everybody has a service of their own, and is paged by SMS."""
    people, policies, services = [], [], []
    for n in range(PEOPLE):
        contact = f'{{sms: "{number(n)}"}}'
        people.append(f"- {{name: p{n}, timezone: UTC, contact: {contact}, rules: {{high: [sms]}}}}")
        policies.append(f"- {{name: l{n}, levels: [{{targets: [{{person: p{n}}}], timeout: 1h}}]}}")
        services.append(f"- {{name: s{n}, policy: l{n}}}")
    lines = ["people:", *people, "policies:", *policies, "services:", *services, "fallback: [{person: p0}]"]
    return "\n".join(lines)


@dataclass
class Exchange(PhoneCompany):
    """Notes when each message came, and holds those to some numbers until it is told to go on."""

    came_at: list[float] = field(default_factory=list)
    held: set[str] = field(default_factory=set)
    holding: int = 0
    takes_held: bool = True  # once released; else they are refused
    change: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def _message(self, request: web.Request) -> web.Response:
        if (await form(request))["To"] in self.held:
            await self._note(holding=1)
            await self.release.wait()
            if not self.takes_held:
                return web.json_response({"code": 20500, "message": "down"}, status=503)
        self.came_at.append(monotonic())
        answer = await super()._message(request)
        await self._note()
        return answer

    async def _list(self, request: web.Request) -> web.Response:
        answer = await super()._list(request)
        await self._note()
        return answer

    async def _note(self, holding: int = 0) -> None:
        async with self.change:
            self.holding += holding
            self.change.notify_all()

    async def until(self, met: Callable[[], Any]) -> None:
        async with asyncio.timeout(WITHIN_S), self.change:
            await self.change.wait_for(lambda: bool(met()))

    def paged(self) -> Counter[int]:
        """How often each incident was texted."""
        found = (re.search(r"#(\d+)", one["Body"]) for one in self.messages)
        return Counter(int(each[1]) for each in found if each)


@dataclass
class Process:
    """One `midwatch run` and its port."""

    command: Command
    port: int

    @property
    def pid(self) -> int:
        return self.command.process.pid

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class Fleet:
    """Processes of one install; `door` is the same install in the test's own process, never started."""

    def __init__(self, url: str, directory: Path, exchange: Exchange, door: App, http: Any) -> None:
        self.url = url
        self.directory = directory
        self.exchange = exchange
        self.door = door
        self.http: aiohttp.ClientSession = http
        self.stack = AsyncExitStack()

    async def run(self, *arguments: str, **settings: str) -> Process:
        """Another process; returns when it works."""
        port = free_port()
        env = {
            "MIDWATCH_DATABASE_URL": self.url,
            "MIDWATCH_SECRET_KEY": SECRET,
            "MIDWATCH_BIND": f"127.0.0.1:{port}",
            "TWILIO_ACCOUNT_SID": SID,
            "TWILIO_AUTH_TOKEN": TOKEN,
            "TWILIO_FROM": OURS,
            "MIDWATCH_SMS_PER_SECOND": "1000",
            "MIDWATCH_CALLS_PER_SECOND": "1000",
            "TWILIO_API_URL": self.exchange.url,
            **settings,
        }
        running = midwatch("run", *arguments, cwd=self.directory, env=env)
        command = await self.stack.enter_async_context(running)
        await command.until("Midwatch ")  # listens on a port, or runs as a role
        return Process(command, port)

    async def fire(self, process: Process, person: int, key: str) -> float:
        """An alert of that person's service; when it was accepted."""
        body = {"action": "trigger", "dedup_key": key, "summary": key, "severity": "critical"}
        headers = {"Authorization": f"Bearer {KEY}{person}"}
        async with self.http.post(f"{process.url}/v1/events", json=body, headers=headers) as answer:
            assert answer.status == 202, await answer.text()
        return monotonic()

    async def ready(self, process: Process) -> int:
        async with self.http.get(f"{process.url}/readyz") as answer:
            return answer.status

    async def health(self, process: Process) -> Any:
        async with self.http.get(f"{process.url}/healthz") as answer:
            return await answer.json()

    async def counted(self, process: Process, metric: str) -> float:
        """The sum of a metric over its labels."""
        async with self.http.get(f"{process.url}/metrics") as answer:
            lines = (await answer.text()).splitlines()
        return sum(float(line.split()[-1]) for line in lines if re.match(rf"{metric}[{{ ]", line))

    async def rows(self, query: sa.Select[Any]) -> list[Any]:
        async with self.door.database.snapshot() as tx:
            return list((await tx.execute(query)).all())

    async def until(self, query: sa.Select[Any], met: Callable[[list[Any]], bool]) -> list[Any]:
        """Wait until the database says so: nothing else tells a test what another process has done."""
        async with asyncio.timeout(WITHIN_S):
            while not met(rows := await self.rows(query)):  # noqa: ASYNC110  # another process sets no event of ours
                await asyncio.sleep(0.05)
        return rows


@asynccontextmanager
async def fleet(url: str, directory: Path) -> AsyncIterator[Fleet]:
    """An install on an empty database, configured; its processes end with it."""
    exchange = Exchange()
    async with serving(exchange.app) as exchange.url, aiohttp.ClientSession() as http:
        door = build(Settings(database_url=url, secret_key=SecretStr(SECRET)), SystemClock())
        try:
            await upgrade(door.database)
            await door.setup.apply(parse_config(config()))
            for n in range(PEOPLE):
                await door.setup.create_key(f"s{n}", f"{KEY}{n}")
            made = Fleet(url, directory, exchange, door, http)
            async with made.stack:
                yield made
        finally:
            exchange.release.set()
            await door.stop()


def owned_by(processes: Sequence[Process]) -> sa.ColumnElement[bool]:
    """Leases of these processes."""
    owner = sa.column("lease_owner")
    return sa.or_(*(owner.like(f"{os.uname().nodename}:{process.pid}:%") for process in processes))
