"""The REST API: what a token may see and do, and how it is told no."""

from __future__ import annotations

import io

import pytest

from engine.errors import Unavailable
from engine.models import IncidentStatus, Via
from tests.fakes import START
from tests.web.conftest import ANAS_TOKEN, PHONE, REVOKED_TOKEN, TOKEN, Client, World
from tests.web.fakes import ANA, BEN, GONE, incident, sms_to
from tests.web.test_ingest import is_a_problem

AUTH = {"Authorization": f"Bearer {TOKEN}"}
AS_ANA = {"Authorization": f"Bearer {ANAS_TOKEN}"}


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {REVOKED_TOKEN}"},
        {"Authorization": "Bearer unknown"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": "Bearer \udcff"},
    ],
)
async def test_missing_unknown_and_revoked_tokens_get_the_same_answer(
    client: Client, headers: dict[str, str]
) -> None:
    """401, one body for all, on every route of the API."""
    nobody = await client.get("/v1/incidents")
    for path in ("/v1/incidents", "/v1/incidents/1", "/v1/schedules/oncall"):
        answer = await client.get(path, headers=headers)
        assert is_a_problem(answer, 401)
        assert answer.text == nobody.text
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


async def test_incidents_are_listed_newest_first_in_pages(client: Client, world: World) -> None:
    """Each page names the next by a cursor; the last names none."""
    world.pager.add(*(incident(n) for n in range(1, 6)))
    numbers, cursor = [], ""
    for expected_next in (True, True, False):
        page = (await client.get(f"/v1/incidents?limit=2{cursor}", headers=AUTH)).json
        numbers += [item["number"] for item in page["items"]]
        assert (page["next"] is not None) is expected_next
        cursor = f"&cursor={page['next']}"
    assert numbers == [5, 4, 3, 2, 1]


async def test_an_incident_is_listed_with_what_people_look_for(client: Client, world: World) -> None:
    """Number, status, title, service, urgency, severity, times and counts."""
    world.pager.add(incident(42, acknowledged_by="ana", acknowledged_at=START, acknowledged_via=Via.SMS))
    (item,) = (await client.get("/v1/incidents", headers=AUTH)).json["items"]
    assert item["number"] == 42
    assert item["opened_at"] == "2026-03-02T09:00:00Z"
    assert (item["acknowledged_by"], item["acknowledged_via"]) == ("ana", "sms")
    assert {"id", "status", "title", "service", "urgency", "severity", "alert_count", "event_count"} <= set(
        item
    )


@pytest.mark.parametrize("query", ["status=acknowledged,resolved", "status=acknowledged&status=resolved"])
async def test_incidents_are_filtered_by_status(client: Client, world: World, query: str) -> None:
    """Several statuses may be given, with commas or repeated."""
    for number, status in enumerate(IncidentStatus):
        world.pager.add(incident(number, status))
    items = (await client.get(f"/v1/incidents?{query}", headers=AUTH)).json["items"]
    assert {item["status"] for item in items} == {"acknowledged", "resolved"}


@pytest.mark.parametrize(
    "query",
    ["status=broken", "limit=0", "limit=1000", "limit=x", "cursor=x", "cursor=-1", "cursor=" + "9" * 30],
)
async def test_a_query_that_cannot_be_meant_is_a_422_without_an_echo(client: Client, query: str) -> None:
    """The place and the reason, never the value."""
    answer = await client.get(f"/v1/incidents?{query}", headers=AUTH)
    assert is_a_problem(answer, 422)
    name, _, value = query.partition("=")
    (error,) = answer.json["errors"]
    assert error["at"].startswith(f"query.{name}")
    assert len(value) < 6 or value not in answer.text


async def test_one_incident_has_its_timeline_and_deliveries_without_addresses(
    client: Client, world: World
) -> None:
    """Who was told, how and when; a phone number is nobody's business."""
    view = incident(42)
    world.pager.add(view)
    world.pager.sent.append(sms_to(ANA, view))
    answer = await client.get(f"/v1/incidents/{view.id}", headers=AUTH)
    assert answer.json["timeline"][0]["kind"] == "opened"
    (delivery,) = answer.json["deliveries"]
    assert (delivery["person"], delivery["method"], delivery["status"]) == ("ana", "sms", "sent")
    assert PHONE not in answer.text


@pytest.mark.parametrize("path", ["/v1/incidents/7", "/v1/incidents/7/acknowledge", "/v1/schedules/x/oncall"])
async def test_what_is_not_there_is_a_404(client: Client, path: str) -> None:
    """An unknown incident or schedule is a problem document too."""
    answer = await client("POST" if path.endswith("acknowledge") else "GET", path, headers=AUTH)
    assert is_a_problem(answer, 404)


@pytest.mark.parametrize("incident_id", ["x", "0", "-1", str(2**63), "1" * 40])
async def test_an_id_that_is_none_is_a_422(client: Client, incident_id: str) -> None:
    """No number reaches the database that it could not hold."""
    answer = await client.get(f"/v1/incidents/{incident_id}", headers=AUTH)
    assert is_a_problem(answer, 422)


async def test_another_organisations_incident_is_not_there(client: Client, world: World) -> None:
    """Its id answers as an unknown one does."""
    theirs = incident(1, org_id=2)
    world.pager.add(theirs)
    assert is_a_problem(await client.get(f"/v1/incidents/{theirs.id}", headers=AUTH), 404)
    assert is_a_problem(await client.post(f"/v1/incidents/{theirs.id}/resolve", headers=AUTH), 404)
    assert (await client.get("/v1/incidents", headers=AUTH)).json["items"] == []


async def test_an_incident_is_acknowledged_for_a_person_and_then_resolved(
    client: Client, world: World
) -> None:
    """The answer is the incident as it is now, and whether this call changed it."""
    view = incident(42)
    world.pager.add(view)
    path = f"/v1/incidents/{view.id}"
    first = (await client.post(f"{path}/acknowledge", json={"user_id": BEN.id}, headers=AUTH)).json
    again = (await client.post(f"{path}/acknowledge", headers=AUTH)).json
    closed = (await client.post(f"{path}/resolve", headers=AS_ANA)).json
    late = (await client.post(f"{path}/acknowledge", json={}, headers=AUTH)).json
    assert (first["status"], first["changed"]) == ("acknowledged", True)
    assert (again["changed"], again["reason"]) == (False, "already acknowledged")
    assert (closed["status"], closed["changed"]) == ("resolved", True)
    assert (late["status"], late["changed"], late["reason"]) == ("resolved", False, "already resolved")
    actors = [(actor.name, actor.person_id, actor.via) for _, _, actor in world.pager.acts]
    assert actors[0] == ("ben", BEN.id, Via.API)
    assert actors[1][1:] == (None, Via.API)
    assert actors[2] == ("ana", ANA.id, Via.API)


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        (AUTH, {"user_id": 99}, 422),
        (AUTH, {"user_id": GONE.id}, 422),
        (AUTH, {"user_id": "x"}, 422),
        (AUTH, {"user": 1}, 422),
        (AUTH, [], 422),
        (AS_ANA, {"user_id": BEN.id}, 403),
    ],
)
async def test_nobody_acts_for_strangers(
    client: Client, world: World, headers: dict[str, str], body: object, status: int
) -> None:
    """Unknown and deactivated people, mistyped fields and other people's names change nothing."""
    view = incident(42)
    world.pager.add(view)
    answer = await client.post(f"/v1/incidents/{view.id}/acknowledge", json=body, headers=headers)
    assert is_a_problem(answer, status)
    assert world.pager.acts == []


async def test_an_incident_is_opened_by_hand_once_per_key(client: Client, world: World) -> None:
    """201 for a new one, 200 with the one that is open for the key."""
    body = {"service": "checkout", "title": "Shop is slow", "dedup_key": "shop"}
    first = await client.post("/v1/incidents", json=body, headers=AUTH)
    second = await client.post("/v1/incidents", json={**body, "title": "Shop is very slow"}, headers=AUTH)
    assert (first.status, first.json["title"]) == (201, "Shop is slow")
    assert (second.status, second.json["id"]) == (200, first.json["id"])


@pytest.mark.parametrize(
    ("body", "status", "place"),
    [
        ({"service": "unknown", "title": "x"}, 404, None),
        ({"title": "x"}, 422, "body.service"),
        ({"service": "checkout", "title": "   "}, 422, "body.title"),
        ({"service": "checkout", "title": 7}, 422, "body.title"),
        ({"service": "checkout", "title": "x", "dedup_kye": "k"}, 422, "body.dedup_kye"),
        ([], 422, "body"),
    ],
)
async def test_an_incident_that_cannot_be_meant_is_not_opened(
    client: Client, world: World, body: object, status: int, place: str | None
) -> None:
    """What is wrong is said with its place."""
    answer = await client.post("/v1/incidents", json=body, headers=AUTH)
    assert is_a_problem(answer, status)
    assert [error["at"] for error in answer.json.get("errors", [])] == ([] if place is None else [place])
    assert world.pager.acts == []


async def test_a_body_that_is_missing_or_too_long_is_said_so(client: Client) -> None:
    """400 without a body where one is needed, 413 beyond 1 MiB, 400 for what is not JSON."""
    assert is_a_problem(await client.post("/v1/incidents", headers=AUTH), 400, "JSON body")
    assert is_a_problem(await client.post("/v1/incidents", data=b"{", headers=AUTH), 400)
    long = io.BytesIO(b'{"title": "' + b"x" * 1024 * 1024 + b'"}')
    assert is_a_problem(await client.post("/v1/incidents", data=long, headers=AUTH), 413)


async def test_what_cannot_be_stored_is_a_503(client: Client, world: World) -> None:
    """A click that was not applied is said not to be."""
    view = incident(42)
    world.pager.add(view)
    world.pager.fails = Unavailable()
    answer = await client.post(f"/v1/incidents/{view.id}/acknowledge", headers=AUTH)
    assert is_a_problem(answer, 503)
    assert answer.headers["Retry-After"] == "5"


async def test_a_failure_of_ours_is_a_500_with_a_reference_only(client: Client, world: World) -> None:
    """Nothing of the inside is shown."""
    view = incident(42)
    world.pager.add(view)
    world.pager.fails = RuntimeError("a secret of the inside")
    answer = await client.post(f"/v1/incidents/{view.id}/acknowledge", headers=AUTH)
    assert is_a_problem(answer, 500, "reference")
    assert "inside" not in answer.text


async def test_who_is_on_call_now_and_at_an_instant(client: Client, world: World) -> None:
    """Every schedule, or one by its name; `at` needs a zone."""
    (now,) = (await client.get("/v1/schedules/oncall", headers=AUTH)).json["items"]
    assert (now["schedule"], now["people"]) == ("primary", [{"id": ANA.id, "name": "ana"}])
    assert (now["next_people"], now["until"]) == ([{"id": BEN.id, "name": "ben"}], "2026-03-02T15:00:00Z")
    path = "/v1/schedules/primary/oncall"
    at = await client.get(f"{path}?at=2026-03-05T10:00:00%2B02:00", headers=AUTH)
    assert at.json["since"] == "2026-03-05T02:00:00Z"
    for odd in ("2026-03-05T10:00:00", "0001-01-01T00:00:00%2B23:00", "9999-12-31T23:59:59-23:00", "soon"):
        assert is_a_problem(await client.get(f"{path}?at={odd}", headers=AUTH), 422)


async def test_an_incident_is_merged_and_taken_out_again(client: Client, world: World) -> None:
    """By ids; the answer names the other by its number."""
    one, two = incident(41), incident(42)
    world.pager.add(one, two)
    path = f"/v1/incidents/{two.id}"
    merged = (await client.post(f"{path}/merge", json={"into": one.id}, headers=AUTH)).json
    assert (merged["status"], merged["merged_into"], merged["changed"]) == ("resolved", 41, True)
    back = (await client.post(f"{path}/unmerge", json={"user_id": BEN.id}, headers=AUTH)).json
    assert (back["status"], back["merged_into"], back["changed"]) == ("triggered", None, True)
    for body, status in (({"into": 7}, 404), ({}, 422), ({"into": one.id, "user_id": 99}, 422)):
        assert is_a_problem(await client.post(f"{path}/merge", json=body, headers=AUTH), status)
    acts = [(verb, incident_id, actor.person_id) for verb, incident_id, actor in world.pager.acts]
    assert acts == [("merge", two.id, None), ("unmerge", two.id, BEN.id)]
