"""One started product for the tests of a module; each test leaves it as it found it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.e2e.team import Team
from tests.product import product
from tests.servers import database_url, new_database, run_on_server


@pytest.fixture
async def postgresql_url_empty(postgresql_server: str) -> AsyncIterator[str]:
    """A database without any table."""
    name = await new_database(postgresql_server)
    yield database_url(postgresql_server, name)
    await run_on_server(postgresql_server, f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def assembled(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Team]:
    async with product(tmp_path_factory.mktemp("product")) as midwatch:
        team = Team(midwatch)
        await team.assemble()
        yield team


@pytest_asyncio.fixture(loop_scope="module")
async def team(assembled: Team) -> AsyncIterator[Team]:
    yield assembled
    await assembled.all_clear()
