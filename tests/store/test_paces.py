"""The rows of lines: made once, kept by one transaction at a time, forgotten when they are as good as new."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from engine.db import Database, Tx
from engine.models import ORG
from engine.notify.paces import Asking, Pace, admit, held
from engine.store import paces
from engine.store.paces import FRESH, Standing
from tests.fakes import START

SECOND = timedelta(seconds=1)


async def kept(database: Database, *lines: str) -> dict[str, Standing]:
    return await database.write(lambda tx: paces.keep(tx, ORG, lines))


async def test_lines_are_made_and_written_twelve_times_on_one_connection(any_database_url: str) -> None:
    """New ones begin free, whoever made them meanwhile; what is written is read, on every execution."""
    database = Database(any_database_url, pool_size=1)
    for n in range(12):
        lines = {"sms", "voice", f"slack:{n}"}
        assert (await kept(database, *lines))[f"slack:{n}"] == FRESH
        later = START + n * SECOND
        new = replace(
            held(Standing(later, *(later + i * SECOND for i in (1, 2, 3))), later), day=START, begun=n
        )
        await database.write(lambda tx, new=new: paces.store(tx, ORG, {"sms": new}))  # type: ignore[misc]  # mypy cannot see the default
        assert (await kept(database, "sms")) == {"sms": new}
        assert (await kept(database, "voice")) == {"voice": FRESH}
    assert await kept(database) == {}
    await database.close()


async def test_a_line_that_nobody_waits_on_is_forgotten(database: Database) -> None:
    """One that is held, or has places given away, stays."""
    old, new = START - timedelta(days=2), START
    lines = {
        "slack:1": Standing(old, old, old, old),
        "slack:2": Standing(old, old, old, new),
        "slack:3": held(Standing(old, old, old, old), new),
        "sms": Standing(new, new, new, new),
    }
    await kept(database, *lines)
    await database.write(lambda tx: paces.store(tx, ORG, lines))
    assert await database.write(lambda tx: paces.forget(tx, ORG, START - timedelta(days=1))) == 1
    assert (await kept(database, *lines))["slack:2"] == lines["slack:2"]


@pytest.mark.parametrize("workers", [4])
async def test_workers_that_ask_together_never_exceed_the_pace(any_database_url: str, workers: int) -> None:
    """Each has connections of its own; of all that ask at one instant exactly the burst starts."""
    each = [Database(any_database_url) for _ in range(workers)]
    pace = Pace(SECOND, burst=3)

    async def ask(database: Database, first: int, now: datetime) -> int:
        async def unit(tx: Tx) -> int:
            asking = [Asking((first + n,), False, False, START) for n in range(5)]
            standing = await paces.keep(tx, ORG, ["sms", "voice"])
            line, places = admit(standing["sms"], asking, now, pace)
            await paces.store(tx, ORG, {"sms": line})
            return sum(at <= now for at in places.values())

        return await database.write(unit)

    for later, expected in ((0, 3), (1, 1), (1.5, 0), (2, 1), (60, 3)):
        now = START + later * SECOND
        started = await asyncio.gather(*(ask(one, n * 10, now) for n, one in enumerate(each)))
        assert sum(started) == expected, later
    for one in each:
        await one.close()
