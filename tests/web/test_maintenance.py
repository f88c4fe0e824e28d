"""Maintenance windows by the API: what a script may hold back, for how long, and how it ends that."""

from __future__ import annotations

import pytest

from tests.web.conftest import Client
from tests.web.fakes import BEN
from tests.web.test_api import AS_ANA, AUTH
from tests.web.test_ingest import is_a_problem

LATER = "2026-03-02T11:00:00Z"  # two hours after the tests begin


async def listed(client: Client) -> list[dict[str, object]]:
    items: list[dict[str, object]] = (await client.get("/v1/maintenance", headers=AUTH)).json["items"]
    return items


async def test_a_window_is_started_listed_and_ended(client: Client) -> None:
    """Of one service from now on, with who did it and why; ended, it is listed no more."""
    body = {"service": "checkout", "end_at": LATER, "reason": "new switches"}
    started = await client.post("/v1/maintenance", json=body, headers=AS_ANA)
    assert started.status == 201
    assert await listed(client) == [started.json]
    assert started.json == {
        "id": 1,
        "service": "checkout",
        "start_at": "2026-03-02T09:00:00Z",
        "end_at": LATER,
        "reason": "new switches",
        "created_by": "ana",
    }
    ended = await client.post("/v1/maintenance/1/end", json={"user_id": BEN.id}, headers=AUTH)
    assert (ended.status, ended.json["id"], await listed(client)) == (200, 1, [])
    assert is_a_problem(await client.post("/v1/maintenance/1/end", headers=AUTH), 404)


async def test_all_services_tonight(client: Client) -> None:
    """Null in place of a service means all of them; a window may be planned."""
    body = {"service": None, "start_at": "2026-03-02T20:00:00+01:00", "end_at": "2026-03-02T22:00:00Z"}
    assert (await client.post("/v1/maintenance", json=body, headers=AUTH)).status == 201
    (window,) = await listed(client)
    assert (window["service"], window["start_at"]) == (None, "2026-03-02T19:00:00Z")


async def test_all_services_are_never_meant_by_leaving_one_out(client: Client) -> None:
    """A script that forgets the service must not hold back every page; the refusal says what to send."""
    refused = await client.post("/v1/maintenance", json={"end_at": LATER}, headers=AUTH)
    assert is_a_problem(refused, 422)
    assert refused.json["errors"] == [
        {"at": "body", "reason": "service: name it, or send null for all services"}
    ]
    assert await listed(client) == []
    shape = (await client.get("/v1/openapi.json")).json["components"]["schemas"]["NewWindow"]
    assert shape["required"] == ["service", "end_at"]
    assert {"type": "null"} in shape["properties"]["service"]["anyOf"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"service": "nosuch", "end_at": LATER}, 404),
        ({"service": "checkout"}, 422),
        ({"service": "checkout", "end_at": "2026-03-02T11:00:00"}, 422),
        ({"service": "checkout", "end_at": "2026-03-02T08:00:00Z"}, 400),
        ({"service": "checkout", "end_at": "2026-03-03T09:00:01Z"}, 400),
        ({"service": "checkout", "end_at": LATER, "until": LATER}, 422),
        ({"service": "checkout", "end_at": LATER, "user_id": 99}, 422),
    ],
)
async def test_a_window_that_cannot_be_is_refused(
    client: Client, body: dict[str, object], status: int
) -> None:
    """An unknown service, no end, one in the past, more than a day: nothing is held back (S-27)."""
    assert is_a_problem(await client.post("/v1/maintenance", json=body, headers=AUTH), status)
    assert await listed(client) == []
