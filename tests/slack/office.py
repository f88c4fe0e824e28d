"""A whole Midwatch at the sandbox Slack: its worker in the hand of the test, so that notices are sent."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from bot.app import App, build
from bot.sandbox.server import SandboxServer
from bot.sandbox.state import Message
from tests.fakes import FakeClock
from tests.slack.conftest import Desk, slack_settings


@dataclass
class Office:
    app: App
    desk: Desk

    async def work(self) -> None:
        """What a round of the sweeps and the worker do."""
        await self.app.sweeps.abreast.go()
        await self.app.worker.run_due()

    async def types(self, user: str, text: str, channel: str = "#general") -> str:
        answer = await self.desk.types(user, text, channel)
        await self.later(seconds=2)
        return answer

    async def clicks(self, user: str, message: Message, action_id: str) -> None:
        await self.desk.clicks(user, message, action_id)
        await self.desk.slack._answering.stop()  # what follows by response_url has been said
        await self.later(seconds=2)

    async def later(self, **delta: float) -> None:
        """Time as it would have passed, timer by timer. Slack takes one message a second for each."""
        target = self.desk.clock.now() + timedelta(**delta)
        await self.work()
        while True:
            await self.app.worker.run_due()
            due = await self.app.next_due()
            if due is None or due > target:
                break
            self.desk.clock.move_to(max(due, self.desk.clock.now() + timedelta(milliseconds=10)))
        self.desk.clock.move_to(target)
        await self.work()

    def direct(self, user: str) -> list[Message]:
        return self.desk.direct(user)


@asynccontextmanager
async def opened(
    clock: FakeClock, configured: Path, folder: Path, sandbox: SandboxServer, **changes: Any
) -> AsyncIterator[Office]:
    """Connected to the sandbox, on a copy of the demo's directory."""
    path = folder / "office.sqlite3"
    shutil.copy(configured, path)
    settings = slack_settings(sandbox, database_url=f"sqlite:///{path}", **changes)
    # Why copied: it is shorter than a key may be in life, and the directory was written with it.
    settings = settings.model_copy(update={"secret_key": SecretStr("a key for tests")})
    app = build(settings, clock)
    assert app.slack is not None
    parts = (clock, app.database, sandbox, app.slack, app.setup, app.roster, app.receiver, app.responder)
    desk = Desk(*parts, app.views, app.contacts, [None])
    await desk.connect()
    office = Office(app, desk)
    await office.work()
    yield office
    await app.slack.stop()
    await app.pipeline.drain()
    await app.transports.close()
    await app.database.close()
