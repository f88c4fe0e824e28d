"""GET /v1/schedules/{name}/shifts on the real engine: what Slack says of the same shifts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from engine.config.parse import parse_config
from engine.db import Database
from engine.models import ORG
from engine.pager.setup import Setup
from engine.store import keys
from engine.vault import hash_key
from tests.fakes import START, FakeClock
from tests.web.conftest import TOKEN, Client
from tests.web.test_whole import AUTH, wired

CONFIG = """
people:
  - {name: ana, slack: U0ANA, timezone: Europe/Berlin}
  - {name: ben, slack: U0BEN, timezone: Europe/Berlin}
schedules:
  - name: office
    timezone: UTC
    layers:
      - name: days
        users: [ana, ben]
        start: "2026-03-02T09:00"
        rotation: {every: 1, unit: day}
        restrictions: [{days: [mon, tue, wed, thu, fri], from: "09:00", to: "17:00"}]
"""


@dataclass
class Office:
    client: Client
    database: Database

    async def get(self, query: str, name: str = "office") -> Any:
        return await self.client.get(f"/v1/schedules/{name}/shifts?{query}", headers=AUTH)


@pytest.fixture
async def office(database: Database, clock: FakeClock, serve: Callable[..., Any]) -> AsyncIterator[Office]:
    parts = wired(database, clock)
    await Setup(database, clock, parts.vault).apply(parse_config(CONFIG))
    await database.write(lambda tx: keys.insert_token(tx, ORG, "ci", hash_key(TOKEN), "", None, START))
    yield Office(await serve(parts), database)
    await parts.receiver.stop()


async def test_shifts_with_their_gaps(office: Office) -> None:
    """One after the other without a break; a gap has no people."""
    answer = await office.get("from=2026-03-03T08:00:00Z&to=2026-03-04T12:00:00%2B01:00")
    assert answer.json["schedule"] == "office"
    assert [
        (item["start"], item["end"], [person["name"] for person in item["people"]])
        for item in answer.json["items"]
    ] == [
        ("2026-03-03T08:00:00Z", "2026-03-03T09:00:00Z", []),
        ("2026-03-03T09:00:00Z", "2026-03-03T17:00:00Z", ["ben"]),
        ("2026-03-03T17:00:00Z", "2026-03-04T09:00:00Z", []),
        ("2026-03-04T09:00:00Z", "2026-03-04T11:00:00Z", ["ana"]),
    ]


async def test_the_coming_two_weeks_are_the_default(office: Office) -> None:
    """From now on, as long as `/oncall shifts` shows."""
    items = (await office.get("")).json["items"]
    assert (items[0]["start"], items[-1]["end"]) == ("2026-03-02T09:00:00Z", "2026-03-16T09:00:00Z")


@pytest.mark.parametrize(
    ("query", "name", "status"),
    [
        ("from=2026-03-03T08:00:00", "office", 422),
        ("from=soon", "office", 422),
        ("from=2026-03-03T08:00:00Z&to=2026-03-03T08:00:00Z", "office", 422),
        ("from=2026-03-03T08:00:00Z&to=2026-03-02T08:00:00Z", "office", 422),
        ("from=2026-03-03T08:00:00Z&to=2030-03-02T08:00:00Z", "office", 422),
        ("", "attic", 404),
    ],
)
async def test_no_such_stretch_or_schedule(office: Office, query: str, name: str, status: int) -> None:
    """An end before its beginning, no zone, or a name nobody gave is a problem, and says which (B081)."""
    assert (await office.get(query, name)).status == status


async def test_before_the_first_version_there_is_nothing(office: Office) -> None:
    """The past is answered from what was in force then."""
    answer = await office.get("from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z")
    assert answer.json["items"] == []
