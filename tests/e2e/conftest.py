"""One started product for the tests of a module; each test leaves it as it found it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.e2e.team import Team
from tests.product import product


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
