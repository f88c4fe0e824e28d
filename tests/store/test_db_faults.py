"""A store that fails: units are run again, whole, or said to be Unavailable; nothing is half done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
import sqlalchemy as sa
import structlog
from sqlalchemy.engine import make_url
from structlog.testing import LogCapture

from engine import db, schema
from engine.db import Database, Tx
from engine.errors import Unavailable
from engine.models import ORG
from engine.store import counts
from tests.fakes import START
from tests.servers import Connections, run_on_server

READERS = db.PEOPLE["pool_size"]  # as many as are kept


@pytest.fixture
async def postgresql(postgresql_url: str) -> Database:
    return Database(postgresql_url)


@pytest.fixture
def logs() -> LogCapture:
    capture = LogCapture()
    structlog.configure(processors=[capture])
    return capture


def remember(key: str) -> sa.Insert:
    return sa.insert(schema.inbound).values(org_id=ORG, source="test", external_id=key, at=START)


async def remembered(database: Database) -> list[str]:
    async with database.snapshot() as tx:
        return sorted(await tx.scalars(sa.select(schema.inbound.c.external_id)))


def raising(code: str, times: int, tries: list[int]) -> Callable[[Tx], Awaitable[None]]:
    """A unit that stores something and then fails with this SQLSTATE, as often as told."""

    async def unit(tx: Tx) -> None:
        tries.append(len(tries))
        await tx.execute(remember(f"try-{len(tries)}"))
        if len(tries) <= times:
            await tx.execute(sa.text(f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END $$"))

    return unit


@pytest.mark.parametrize("code", ["40001", "40P01", "57014"])
async def test_a_unit_that_lost_is_run_again_whole(postgresql: Database, code: str) -> None:
    """Serialization failure, deadlock, statement timeout: nothing of the lost try is left (F-16)."""
    tries: list[int] = []
    await postgresql.write(raising(code, 2, tries))
    assert len(tries) == 3
    assert await remembered(postgresql) == ["try-3"]
    await postgresql.close()


@pytest.mark.parametrize(
    ("code", "tried"), [("40001", 3), ("57014", 3), ("55P03", 1), ("25006", 1), ("53100", 1), ("57P01", 1)]
)
async def test_a_unit_that_cannot_be_stored_now_is_unavailable(
    postgresql: Database, code: str, tried: int
) -> None:
    """Three tries at most, and none where it is no use; then 503, never lost (F-16, F-17)."""
    tries: list[int] = []
    with pytest.raises(Unavailable):
        await postgresql.write(raising(code, 99, tries))
    assert len(tries) == tried
    assert await remembered(postgresql) == []
    await postgresql.close()


async def test_a_statement_that_takes_too_long_is_given_up(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends it, three times; then the sender is told to come back (F-16)."""
    monkeypatch.setattr(db, "STATEMENT_TIMEOUT", db.STATEMENT_TIMEOUT / 100)
    database, tries = Database(postgresql_url), []

    async def unit(tx: Tx) -> None:
        tries.append(1)
        await tx.execute(sa.text("SELECT pg_sleep(60)"))

    async with asyncio.timeout(30):
        with pytest.raises(Unavailable):
            await database.write(unit)
    assert len(tries) == 3
    await database.close()


async def test_a_backend_that_is_killed_under_a_unit_costs_nothing(
    postgresql: Database, postgresql_server: str
) -> None:
    """The unit is run again on another connection, and is stored once (F-15, B116)."""
    killed: list[int] = []

    async def unit(tx: Tx) -> None:
        await tx.execute(remember("once"))
        if not killed:
            killed.append(int(await tx.scalar(sa.text("SELECT pg_backend_pid()")) or 0))
            await run_on_server(postgresql_server, f"SELECT pg_terminate_backend({killed[0]})")
        await tx.execute(sa.text("SELECT 1"))

    await postgresql.write(unit)
    assert await remembered(postgresql) == ["once"]
    await postgresql.close()


async def test_a_cancelled_worker_keeps_no_lock(database: Database, any_database_url: str) -> None:
    """The row that it had locked is free within five seconds (B115)."""
    await database.write(lambda tx: counts.touch(tx, ORG, "row"))
    holding, cancelled = asyncio.Event(), asyncio.Event()

    async def unit(tx: Tx) -> None:
        await counts.touch(tx, ORG, "row")
        holding.set()
        await cancelled.wait()
        await counts.touch(tx, ORG, "row")

    worker = asyncio.create_task(database.write(unit))
    await holding.wait()
    worker.cancel()
    cancelled.set()
    other = Database(any_database_url)
    async with asyncio.timeout(5):
        await other.write(lambda tx: counts.touch(tx, ORG, "row"))
    with pytest.raises(asyncio.CancelledError):
        await worker
    await other.close()


async def test_read_then_write_loses_nothing_between_processes(any_database_url: str) -> None:
    """Two processes that read a number and write it plus one: SQLite waits, and no update is lost (B114)."""
    databases = [Database(any_database_url) for _ in range(2)]
    counter = schema.counters
    await databases[0].write(lambda tx: counts.touch(tx, ORG, "n"))

    async def unit(tx: Tx) -> None:
        row = sa.select(counter.c.value).where(counter.c.name == "n").with_for_update()
        value = await tx.scalar(row)
        await tx.execute(sa.update(counter).where(counter.c.name == "n").values(value=int(value or 0) + 1))

    await asyncio.gather(*(databases[n % 2].write(unit) for n in range(40)))
    async with databases[0].snapshot() as tx:
        assert await tx.scalar(sa.select(counter.c.value)) == 41
    for one in databases:
        await one.close()


async def test_an_outage_is_one_line_in_the_log(postgresql: Database, logs: LogCapture) -> None:
    """However often it is tried: when it begins, when its cause changes, and when it ends (F-13)."""
    for code in ("55P03", "55P03", "55P03", "53100", "53100"):
        with pytest.raises(Unavailable):
            await postgresql.write(raising(code, 99, []))
    for _ in range(2):
        await postgresql.write(lambda tx: counts.touch(tx, ORG, "x"))
    told = [(entry["event"], entry.get("code")) for entry in logs.entries if entry["event"].startswith("db.")]
    assert told == [("db.unavailable", "55P03"), ("db.unavailable", "53100"), ("db.available", None)]
    await postgresql.close()


async def test_a_reader_that_was_idle_is_tried_before_it_is_asked(
    postgresql: Database, postgresql_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection was cut while nobody used it: the next question is asked on a new one (B116)."""
    monkeypatch.setattr(db, "IDLE", timedelta())
    assert await remembered(postgresql) == []
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'"
    name = make_url(postgresql.url).database
    await run_on_server(postgresql_server, cut.format(name))
    assert await remembered(postgresql) == []
    await postgresql.close()


async def test_readers_that_were_cut_just_after_their_use_are_not_asked(
    postgresql: Database, postgresql_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All connections of the pool at once, used a moment ago: every question is asked on a new one (B116)."""
    monkeypatch.setattr(db, "IDLE", timedelta(hours=1))
    all_read = asyncio.Barrier(READERS)

    async def read() -> list[str]:
        async with postgresql.snapshot() as tx:
            found = sorted(await tx.scalars(sa.select(schema.inbound.c.external_id)))
            await all_read.wait()  # so each has a connection of its own
            return found

    with Connections() as connections:
        for cut in (READERS, READERS, 0):
            async with asyncio.timeout(10):
                assert await asyncio.gather(*(read() for _ in range(READERS))) == [[]] * READERS
            if cut:
                assert await connections.cut(postgresql_server) == cut
    await postgresql.close()


async def test_a_look_is_one_round_trip_and_changes_nothing(postgresql: Database) -> None:
    """No BEGIN and no ROLLBACK around what a page waits for; a write in it is refused all the same."""
    around = []
    with Connections() as connections:
        for reading in (postgresql.look, postgresql.snapshot):
            async with reading() as tx:
                said = connections.listen()
                await tx.execute(sa.select(schema.inbound.c.external_id))
            around.append(len(said))
    assert around == [0, 2]
    with pytest.raises(Unavailable):
        async with postgresql.look() as tx:
            await tx.execute(remember("written"))
    assert await remembered(postgresql) == []
    await postgresql.close()
