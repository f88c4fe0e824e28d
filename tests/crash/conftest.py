"""Stages for the runs of a test, on each database."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from engine.notify import pipeline, recorder
from tests.crash.stage import Stage


async def _stage(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    stage = Stage(url)
    # Why: a process that hangs for a minute of the run hangs for a minute of its watchdogs, too.
    monkeypatch.setattr(pipeline, "monotonic", stage.monotonic)
    monkeypatch.setattr(recorder, "RECORD_AGAIN", (0.0, 0.0, 0.0))
    await stage.set_up()
    yield stage
    await stage.close()


@pytest.fixture
async def stage(any_database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    async for made in _stage(any_database_url, monkeypatch):
        yield made


@pytest.fixture
async def sqlite_stage(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    async for made in _stage(sqlite_url, monkeypatch):
        yield made


@pytest.fixture
async def postgresql_stage(postgresql_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    async for made in _stage(postgresql_url, monkeypatch):
        yield made
