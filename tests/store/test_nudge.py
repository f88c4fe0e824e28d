"""The nudge over a network that fails in silence: this process knows that it hears nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from sqlalchemy.engine import make_url

from engine import nudge
from engine.db import Database
from engine.nudge import Nudge


class Wire:
    """A way to the server that can lose every packet, as a firewall does that has forgotten us."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url)
        self._carries = asyncio.Event()
        self._carries.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    async def lay(self) -> str:
        """The URL by this wire."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        url = self._url.set(host="127.0.0.1", port=port).difference_update_query(["host"])
        return url.render_as_string(hide_password=False)

    def lose(self) -> None:
        self._carries.clear()

    def mend(self) -> None:
        self._carries.set()

    async def cut(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = self._url.query.get("host") or self._url.host, self._url.port or 5432
        if str(host).startswith("/"):
            far, out = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            far, out = await asyncio.open_connection(str(host), port)
        self._writers += [writer, out]
        for source, drain in ((reader, out), (far, writer)):
            self._tasks.add(asyncio.create_task(self._carry(source, drain)))

    async def _carry(self, source: asyncio.StreamReader, drain: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                await self._carries.wait()
                drain.write(data)
                await drain.drain()
        drain.close()


@pytest.fixture
async def wire(postgresql_url: str) -> AsyncIterator[Wire]:
    made = Wire(postgresql_url)
    yield made
    made.mend()
    await made.cut()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110  # what it waits for has no event
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("speaks", [True, False])
async def test_a_wire_that_went_dead_is_noticed(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, *, speaks: bool
) -> None:
    """Whether or not there is something to tell the others, it says since when it hears nobody, and hears
    them again by another connection."""
    monkeypatch.setattr(nudge, "ASK_EVERY", timedelta(milliseconds=100))
    monkeypatch.setattr(nudge, "ANSWER_WITHIN", timedelta(milliseconds=300))
    database = Database(await wire.lay())
    told = Nudge(database)
    await told.start()
    await until(lambda: told.lost_at is None)
    wire.lose()
    if speaks:
        told()
    await until(lambda: told.lost_at is not None)
    wire.mend()
    await until(lambda: told.lost_at is None)
    await told.stop()
    await database.close()


class Asking(Nudge):
    """Counts how often it looked for something to say."""

    asked = 0

    async def _said_within(self, pause: timedelta) -> bool:
        self.asked += 1
        return await super()._said_within(pause)


async def test_asking_wakes_nobody(postgresql_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """That a connection lives is asked of the server alone; a nudge is heard by the others."""
    monkeypatch.setattr(nudge, "ASK_EVERY", timedelta(milliseconds=20))
    database, woken = Database(postgresql_url), 0

    def wake() -> None:
        nonlocal woken
        woken += 1

    one, other = Asking(database), Asking(database)
    await one.start()
    await other.start()
    await until(lambda: one.lost_at is None and other.lost_at is None)
    other.subscribe(wake)
    asked = one.asked
    await until(lambda: one.asked > asked + 5)
    assert woken == 0
    one()
    await until(lambda: woken == 1)
    await one.stop()
    await other.stop()
    await database.close()
