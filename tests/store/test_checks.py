"""What must be so before Midwatch starts on a database, and how it refuses."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from engine import checks, schema
from engine.clock import SystemClock
from engine.db import Database
from engine.errors import Unsound
from engine.migrate import current
from engine.models import ORG
from engine.store import hosts

CLOCK = SystemClock()


async def test_a_sound_database_is_started_on(database: Database) -> None:
    """Both kinds pass, again and again, and nothing in it is changed."""

    async def counters() -> set[tuple[Any, ...]]:
        async with database.snapshot() as tx:
            return {tuple(row) for row in await tx.execute(sa.select(schema.counters))}

    before = await counters()
    for _ in range(2):
        await checks.start_checks(database, CLOCK)
    assert await checks.faults(database) == []
    assert await counters() == before


async def test_an_empty_file_is_started_on(tmp_path: Path) -> None:
    """The checks come before the tables, and make none."""
    database = Database(f"sqlite:///{tmp_path / 'new.sqlite3'}")
    await checks.start_checks(database, CLOCK)
    assert await current(database) is None
    await database.close()


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
async def test_a_file_on_a_network_share_is_refused(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    """One sentence with what to do, before anything is written (F-19)."""
    table = tmp_path / "mountinfo"
    table.write_text(f"1 0 0:1 / / rw - {kind} nas:/export rw\n")
    monkeypatch.setattr(checks, "MOUNTS", table)
    database = Database(sqlite_url)
    with pytest.raises(Unsound, match=rf"network share \({kind}\).*local disk"):
        await checks.start_checks(database, CLOCK)
    await database.close()


async def test_commits_that_a_power_cut_could_take_back_are_refused(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`synchronous` is FULL on the connection that writes, or nothing starts (F-18)."""
    database = Database(sqlite_url)

    @event.listens_for(database.writer_engine.sync_engine, "connect")
    def like_other_programs(connection: Any, _record: Any) -> None:
        connection.cursor().execute("PRAGMA synchronous=NORMAL")

    with pytest.raises(Unsound, match="synchronous is not as it must be"):
        await checks.start_checks(database, CLOCK)
    await database.close()


@pytest.mark.parametrize(("name", "value"), [("OLDEST_SQLITE", (99, 0)), ("OLDEST_POSTGRESQL", 990_000)])
async def test_an_old_database_is_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    """The version that is missing is named."""
    monkeypatch.setattr(checks, name, value)
    if database.is_sqlite is not (name == "OLDEST_SQLITE"):
        await checks.start_checks(database, CLOCK)
        return
    with pytest.raises(Unsound, match=r"too old|older than"):
        await checks.start_checks(database, CLOCK)


async def test_a_second_host_on_the_file_is_refused(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another host leaves word on the file nobody else starts on it, whatever its clock (F-19)."""
    monkeypatch.setattr(checks, "ASK_AGAIN", timedelta(milliseconds=20))
    here, there = Database(sqlite_url), Database(sqlite_url)
    away = CLOCK.now() - timedelta(minutes=7)

    async def works() -> None:
        for n in range(10_000):
            at = away + n * timedelta(milliseconds=1)
            await there.write(lambda tx, at=at: hosts.see(tx, ORG, "another", at))  # type: ignore[misc]  # bound now
            await asyncio.sleep(0.01)

    task = asyncio.create_task(works())
    while True:
        async with here.snapshot() as tx:
            if await hosts.seen(tx, ORG):
                break
    with pytest.raises(Unsound, match="another host works on this SQLite file"):
        await checks.start_checks(here, CLOCK)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await here.close()
    await there.close()


async def test_a_host_that_is_gone_is_waited_for_and_forgotten(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash and a move of the file the new host starts, a little later; the old word is gone."""
    monkeypatch.setattr(checks, "SEEN_EVERY", timedelta(milliseconds=20))
    monkeypatch.setattr(checks, "ASK_AGAIN", timedelta(milliseconds=10))
    database = Database(sqlite_url)
    await database.write(lambda tx: hosts.see(tx, ORG, "another", CLOCK.now()))
    await checks.start_checks(database, CLOCK)
    async with database.snapshot() as tx:
        assert await hosts.seen(tx, ORG) == {}
    await database.close()


@pytest.mark.parametrize(("ahead", "goes_on"), [(60, True), (300, False), (-60, False)])
async def test_a_clock_set_back_while_we_were_down_goes_on(
    sqlite_url: str, ahead: int, goes_on: bool
) -> None:
    """Timers of before the restart wait no hour; a clock that was days ahead was simply wrong (F-25)."""
    database, clock = Database(sqlite_url), SystemClock()
    seen = clock.now() + timedelta(minutes=ahead)
    await database.write(lambda tx: hosts.see(tx, ORG, checks.this_host(), seen))
    await checks.start_checks(database, clock)
    assert (clock.now() >= seen) is (goes_on or ahead < 0)
    assert clock.now() - seen < timedelta(minutes=1) or ahead < 0
    await database.close()


async def test_the_skew_is_that_of_the_two_clocks(database: Database) -> None:
    """None on one host, and what it is otherwise (F-23)."""
    assert abs(await checks.skew(database, CLOCK)) < timedelta(seconds=2)


async def test_hosts_are_seen_twelve_times_on_one_connection(any_database_url: str) -> None:
    """The upsert is repeated under PostgreSQL's generic plan, and the last word counts."""
    database = Database(any_database_url, pool_size=1)
    for n in range(12):
        at = CLOCK.now() + n * timedelta(seconds=1)
        await database.write(lambda tx, at=at: hosts.see(tx, ORG, "h", at))  # type: ignore[misc]  # bound now
    async with database.snapshot() as tx:
        assert await hosts.seen(tx, ORG) == {"h": at}
    await database.close()
