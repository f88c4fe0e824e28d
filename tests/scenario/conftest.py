"""A pager on each database, configured and waiting for alerts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from engine.db import Database
from tests.fakes import FakeClock
from tests.scenario.harness import Pager
from tests.scenario.locks import Locks
from tests.scenario.receiving import Receiving


@pytest.fixture(autouse=True)
def locks() -> Iterator[Locks]:
    """No transaction of any scenario takes its locks against the order: so none deadlocks with another."""
    made = Locks()
    with made.watched():
        yield made
    assert made.against == []


@pytest.fixture
async def pager(any_database_url: str, clock: FakeClock) -> AsyncIterator[Pager]:
    made = await Pager(any_database_url, clock).start()
    yield made
    await made.close()
    made.silence_ops()
    made.expect_silence()


@pytest.fixture
async def receiving(database: Database, clock: FakeClock) -> Receiving:
    """A Receiver alone, for one service without a policy."""
    return await Receiving.start(database, clock)


# What `make test` leaves out on one database: PostgreSQL in stories, SQLite in races.
LEFT_OUT = {True: "sqlite", False: "postgresql"}
ALWAYS_ON_BOTH = ("test_main_job", "test_worker_poison")
# Each reading of a calendar is a process of its own: one story in `make test`, all in `make check`.
DEAR, ONE_OF_THEM = "test_calendar_imports", "is_on_call_and_paged[sqlite"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Stories are told on SQLite and races run on PostgreSQL, where two transactions are at work at once;
    CI (`make check`) has each on both. The statements they run are tested on both always, in tests/store."""
    for item in items:
        own = "tests/scenario/" in item.nodeid
        left_out = LEFT_OUT["races" in item.nodeid]
        if own and left_out in item.nodeid and not any(word in item.nodeid for word in ALWAYS_ON_BOTH):
            item.add_marker(pytest.mark.slow)
        if own and DEAR in item.nodeid and ONE_OF_THEM not in item.nodeid:
            item.add_marker(pytest.mark.slow)
