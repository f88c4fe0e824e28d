"""A day of random faults ends with nothing lost, nothing stuck and nobody told what they should not be."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from engine.db import Database
from engine.notify import death
from tests.crash import invariants
from tests.crash.day import Day
from tests.crash.history import History

pytestmark = pytest.mark.crash

FULL = os.environ.get("MIDWATCH_SWEEP") == "full"
LENGTH = timedelta(hours=24 if FULL else 4)
SEED = int(os.environ.get("MIDWATCH_SEED", str(datetime.now(UTC).date().toordinal())))


async def history_of_a_day(url: str, seed: int) -> History:
    day, database = Day(url, seed), Database(url)
    try:
        await day.live(LENGTH)
        return await day.history(database)
    finally:
        await database.close()
        await day.close()


@pytest.mark.parametrize("seed", [SEED + n for n in range(5 if FULL else 1)])
async def test_a_day_of_random_faults_breaks_no_promise(any_database_url: str, seed: int) -> None:
    """I1 to I12 hold after it, whatever the day was like (another each day; MIDWATCH_SEED repeats one)."""
    told = await history_of_a_day(any_database_url, seed)
    assert len(told["incidents"]) > 3, "a day in which nothing happens proves nothing"
    assert len(told.ledger) > 10
    assert invariants.check(told) == []


async def test_a_pager_whose_dead_messages_are_silent_is_caught(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checker that finds nothing has looked: the same kind of day with a pager that breaks I10."""

    async def silent(*_: object) -> None:
        return None

    monkeypatch.setattr(death, "_raise_alarms", silent)
    told = await history_of_a_day(sqlite_url, 1)
    assert any(words.startswith("I10") for words in invariants.check(told))
