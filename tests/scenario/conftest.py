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


ALWAYS_ON_BOTH = ("test_main_job", "races", "test_worker_poison")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Stories are told on SQLite; CI (`make check`) tells them on PostgreSQL too. The statements they
    run are tested on both always, in tests/store, and so are the races."""
    for item in items:
        own = "tests/scenario/" in item.nodeid
        if own and "postgresql" in item.nodeid and not any(word in item.nodeid for word in ALWAYS_ON_BOTH):
            item.add_marker(pytest.mark.slow)
