"""A database that passes its boundaries on, in the place of the pager's own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.crash.world import Watched


@pytest.fixture
async def watched(any_database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    database = Watched(any_database_url)
    monkeypatch.setattr("bot.app.Database", lambda _url: database)
    yield database
    database.boundaries = None
    await database.close()


@pytest.fixture
async def watched_sqlite(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    database = Watched(sqlite_url)
    monkeypatch.setattr("bot.app.Database", lambda _url: database)
    yield database
    database.boundaries = None
    await database.close()
