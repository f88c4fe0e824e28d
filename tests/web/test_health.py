"""Alive, ready and measured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import sqlalchemy as sa

from bot.web import health
from engine.db import Database
from engine.errors import Unavailable
from engine.schema import counters
from tests.web.conftest import Client, World
from tests.web.test_ingest import is_a_problem


async def test_alive_says_the_details_that_people_need(client: Client) -> None:
    """What the wiring reports is shown as it is."""
    answer = await client.get("/healthz")
    assert (answer.status, answer.json) == (200, {"status": "ok", "slack": "connected", "queue": 0})


async def test_ready_means_that_a_commit_succeeded(client: Client, world: World) -> None:
    """The probe writes; a flood of probes within a second shares one commit."""
    for _ in range(5):
        assert (await client.get("/readyz")).status == 200
    async with world.database.snapshot() as tx:
        value = await tx.scalar(sa.select(counters.c.value).where(counters.c.name == health.COUNTER))
    assert value in {1, 2}


class Stuck(Database):
    """A database whose commits hang until they are let go, or fail."""

    def __init__(self, error: Exception | None = None) -> None:
        self.let_go = asyncio.Event()
        self._error = error

    async def write(self, unit: Any, *, rank: Any = None) -> Any:
        if self._error is not None:
            raise self._error
        await self.let_go.wait()


@pytest.mark.parametrize("error", [Unavailable(), RuntimeError("disk is gone")])
async def test_a_database_that_takes_no_commits_is_not_ready(
    world: World, serve: Callable[..., Any], error: Exception
) -> None:
    """503 with Retry-After, whatever the reason."""
    client = await serve(world.parts, database=Stuck(error))
    answer = await client.get("/readyz")
    assert is_a_problem(answer, 503)
    assert answer.headers["Retry-After"] == "5"


async def test_a_database_that_hangs_is_not_ready_in_time(
    world: World, serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe is answered within its time, though the commit is still waited for."""
    monkeypatch.setattr(health, "READY_WITHIN", health.READY_WITHIN / 100)
    database = Stuck()
    client = await serve(world.parts, database=database)
    assert is_a_problem(await client.get("/readyz"), 503)
    database.let_go.set()


async def test_an_outage_of_slack_is_a_detail(world: World, serve: Callable[..., Any]) -> None:
    """Slack being down makes nothing unready."""

    async def down() -> Mapping[str, Any]:
        return {"slack": "down"}

    client = await serve(world.parts, health=down)
    assert (await client.get("/healthz")).json["slack"] == "down"
    assert (await client.get("/readyz")).status == 200


async def test_metrics_are_in_prometheus_text(client: Client) -> None:
    """The pager's own registry is what is scraped."""
    answer = await client.get("/metrics")
    assert answer.status == 200
    assert "# TYPE midwatch_events_total counter" in answer.text


async def test_a_process_whose_clock_is_wrong_is_not_ready(world: World, serve: Callable[..., Any]) -> None:
    """503 with the reason, though commits work: its leases and deadlines would be wrong (F-23)."""
    apart = "This host's clock and the database's are 90 s apart."
    client = await serve(world.parts, unready=lambda: apart)
    answer = await client.get("/readyz")
    assert is_a_problem(answer, 503, apart)
    assert (await client.get("/healthz")).status == 200
