"""Alerts on the wire: accepted when they can be used, refused with a reason, never lost, never 5xx."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from structlog.testing import capture_logs

from bot.web import bodies
from bot.web.problems import CONTENT_TYPE
from engine.clock import monotonic
from engine.db import Tx
from engine.errors import Unavailable
from engine.models import Action
from tests.web.conftest import KEY, Client, World

PAYLOADS = Path(__file__).parent.parent / "cases" / "payloads"
SINGLE = (PAYLOADS / "01_firing_single.json").read_bytes()
BEARER = {"Authorization": f"Bearer {KEY}"}


def is_a_problem(answer: object, status: int, *words: str) -> bool:
    document = answer.json  # type: ignore[attr-defined]  # an Answered
    assert answer.status == status == document["status"], document  # type: ignore[attr-defined]  # likewise
    assert answer.headers["Content-Type"].startswith(CONTENT_TYPE)  # type: ignore[attr-defined]  # likewise
    assert set(document) >= {"type", "title", "detail"}
    assert all(word in document["detail"] for word in words), document
    return True


@pytest.mark.parametrize(
    "name", [p.name for p in sorted(PAYLOADS.glob("*.json")) if p.name[:2] in {"01", "02", "03", "14", "15"}]
)
async def test_real_alertmanager_bodies_are_accepted(client: Client, world: World, name: str) -> None:
    """Every event of a captured body reaches the receiver, in one call, before 202."""
    raw = (PAYLOADS / name).read_bytes()
    answer = await client.post("/webhooks/alertmanager", data=raw, headers=BEARER)
    assert answer.status == 202
    ((org_id, service_id, body),) = world.pager.bodies
    assert (org_id, service_id) == (1, 1)
    assert answer.json == {"status": "accepted", "events": len(json.loads(raw)["alerts"])}
    assert len(body.events) == len(json.loads(raw)["alerts"])


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/webhooks/alertmanager", {"Authorization": f"Integration-Key {KEY}"}),
        ("/webhooks/alertmanager", {"Authorization": f"integration-key  {KEY} "}),
        ("/webhooks/alertmanager", BEARER),
        ("/webhooks/alertmanager", {"Authorization": "Basic bWlkd2F0Y2g6bXdfa2V5X2NoZWNrb3V0"}),
        (f"/webhooks/alertmanager?key={KEY}", {}),
        (f"/webhooks/alertmanager/{KEY}", {}),
        (f"/webhooks/alertmanager/{KEY}/", {}),
        ("/webhooks/alertmanager/", BEARER),
        (f"/webhooks/alertmanager/{KEY}", {"Authorization": "Basic cHJveHk6cHJveHk="}),
    ],
)
async def test_the_key_is_taken_in_every_form(
    client: Client, world: World, path: str, headers: dict[str, str]
) -> None:
    """Header, Basic password, query or path; a trailing slash is no redirect."""
    answer = await client.post(path, data=SINGLE, headers=headers)
    assert answer.status == 202
    assert len(world.pager.bodies) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer mw_key_unknown"},
        {"Authorization": "Bearer mw_key_revoked"},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic !!!"},
        {"Authorization": "Basic /////w=="},
        {"Authorization": f"Digest {KEY}"},
        {"Authorization": "Bearer ключ"},
    ],
)
async def test_missing_unknown_and_revoked_keys_get_the_same_answer(
    client: Client, world: World, headers: dict[str, str]
) -> None:
    """401, one body for all, and nothing stored."""
    answer = await client.post("/webhooks/alertmanager", data=SINGLE, headers=headers)
    nobody = await client.post("/webhooks/alertmanager", data=SINGLE)
    assert is_a_problem(answer, 401)
    assert answer.text == nobody.text
    assert world.pager.bodies == []


async def test_unknown_and_revoked_keys_do_the_same_work(world: World, client: Client) -> None:
    """Each is looked up every time; only keys that open something are remembered."""
    asked = _count_looks(world)
    for key in ("mw_key_unknown", "mw_key_revoked", ""):
        before = len(asked)
        for _ in range(2):
            await client.post("/v1/events", data=b"{}", headers={"Authorization": f"Bearer {key}"})
        assert len(asked) == before + 2


async def test_a_flood_of_unknown_keys_leaves_connections_to_the_pager(client: Client, world: World) -> None:
    """Fifty keys at once, each another: never more than two of them hold what pages are read by."""
    held, most, look = 0, 0, world.database.look

    @asynccontextmanager
    async def counting() -> AsyncIterator[Tx]:
        nonlocal held, most
        held += 1
        most = max(most, held)
        async with look() as tx:
            yield tx
        held -= 1

    world.database.look = counting  # type: ignore[method-assign,assignment]  # counts and passes on
    keys = [{"Authorization": f"Bearer mw_key_{n}"} for n in range(50)]
    posts = (client.post("/v1/events", data=b"{}", headers=key) for key in keys)
    assert {answer.status for answer in await asyncio.gather(*posts)} == {401}
    assert most <= 2


async def test_a_known_key_is_looked_up_once_and_stops_within_ten_seconds(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeats ask no database for the key; ten seconds after its revocation it opens nothing."""
    now = [100.0]
    monkeypatch.setattr("bot.web.keys.monotonic", lambda: now[0])
    asked = _count_looks(world)
    for _ in range(3):
        assert (await client.post("/webhooks/alertmanager", data=SINGLE, headers=BEARER)).status == 202
    assert len(asked) == 1
    await world.revoke(1)
    now[0] += 10
    answer = await client.post("/webhooks/alertmanager", data=SINGLE, headers=BEARER)
    assert answer.status == 401


def _count_looks(world: World) -> list[None]:
    asked: list[None] = []
    look = world.database.look

    def counting() -> object:
        asked.append(None)
        return look()

    world.database.look = counting  # type: ignore[method-assign,assignment]  # counts and passes on
    return asked


async def test_an_unknown_source_is_told_the_known_ones(client: Client) -> None:
    """404 with a list that a person can choose from."""
    answer = await client.post("/webhooks/nagios", data=b"{}", headers=BEARER)
    assert is_a_problem(answer, 404, "alertmanager", "generic")


async def test_a_get_on_ingest_is_a_405(client: Client) -> None:
    """A browser that opens the address is told which method it takes, not redirected."""
    answer = await client.get("/webhooks/alertmanager")
    assert is_a_problem(answer, 405, "POST")
    assert answer.headers["Allow"] == "POST"


BAD_BODIES = [
    b"",
    b"not json",
    b"null",
    b"7",
    b'"text"',
    b"[]",
    b"{}",
    b'{"alerts": null}',
    b'{"alerts": "x"}',
    b'{"alerts": {"a": 1}}',
    b'{"alerts": [7]}',
    b'{"alerts": [{"labels": 7, "status": []}]}',
    b'{"alerts": []}',
    '{"alerts": []}'.encode("utf-16"),
    b'\xef\xbb\xbf{"alerts": []}',
    b'{"alerts": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    b'{"alerts": [], "truncatedAlerts": ' + b"9" * 5000 + b"}",
]
USABLE_BODIES = [
    b'{"alerts": [{"status": "firing", "labels": {"a": "x\\u0000\\ud800"}, "fingerprint": "f"}]}',
    b'{"alerts": [{"status": "firing", "labels": {"a": "x\x00\xff"}, "fingerprint": "f"}]}',
    b'{"alerts": [{"status": "firing", "labels": {"a": NaN}, "startsAt": 1e999, "fingerprint": "f"}]}',
]


@pytest.mark.parametrize("path", ["/webhooks/alertmanager", "/webhooks/generic", "/v1/events"])
async def test_bad_bodies_are_refused_with_a_reason_or_accepted(client: Client, path: str) -> None:
    """400 and why, or 202; never a 5xx."""
    for raw in BAD_BODIES:
        answer = await client.post(path, data=raw, headers=BEARER)
        assert answer.status == 202 or is_a_problem(answer, 400), raw[:80]


async def test_an_alert_with_odd_characters_or_numbers_is_kept(client: Client, world: World) -> None:
    """NUL, half a surrogate pair, a broken byte, NaN: cleaned, and the alert is taken."""
    for raw in USABLE_BODIES:
        answer = await client.post("/webhooks/alertmanager", data=raw, headers=BEARER)
        assert (answer.status, answer.json["events"]) == (202, 1), raw
    events = [event for _, _, body in world.pager.bodies for event in body.events]
    assert len(events) == len(USABLE_BODIES)
    for event in events:
        str(event).encode()
        assert "\x00" not in str(event)


async def test_an_empty_list_of_alerts_asks_for_nothing(client: Client, world: World) -> None:
    """`alerts: []` is accepted and stores nothing."""
    answer = await client.post("/webhooks/alertmanager", data=b'{"alerts": []}', headers=BEARER)
    assert (answer.status, answer.json["events"]) == (202, 0)
    assert world.pager.bodies == []


async def test_ten_thousand_levels_are_answered_in_less_than_50_ms(client: Client) -> None:
    """Nesting costs the sender an error and nobody else any time."""
    raw = b"[" * 10_000 + b"]" * 10_000
    await client.post("/webhooks/alertmanager", data=b"{}", headers=BEARER)  # the key is known now
    begun = monotonic()
    answer = await client.post("/webhooks/alertmanager", data=raw, headers=BEARER)
    assert answer.status == 400
    assert monotonic() - begun < 0.05


async def test_a_body_beyond_16_mib_is_refused_by_its_length(client: Client) -> None:
    """413 from the header alone: nothing of the body is waited for."""
    length = str(bodies.INGEST_LIMIT + 1)
    head = await _raw(client, f"Authorization: Bearer {KEY}\r\nContent-Length: {length}", b"")
    assert head.startswith(b"HTTP/1.1 413 ")


async def test_a_body_beyond_16_mib_is_refused_without_a_length_too(client: Client, world: World) -> None:
    """Chunks are counted as they come; the 413 is said at the first byte too many."""
    chunk = b"%x\r\n" % bodies.MIB + b" " * bodies.MIB + b"\r\n"
    head = await _raw(
        client, f"Authorization: Bearer {KEY}\r\nTransfer-Encoding: chunked", chunk * 16 + b"1\r\n \r\n"
    )
    assert head.startswith(b"HTTP/1.1 413 ")
    assert world.pager.bodies == []


async def test_a_body_of_exactly_16_mib_is_read(client: Client, world: World) -> None:
    """The limit itself is allowed: 60,000 alerts at once are an incident, not an attack."""
    raw = SINGLE.rstrip() + b" " * (bodies.INGEST_LIMIT - len(SINGLE.rstrip()))
    answer = await client.post("/webhooks/alertmanager", data=io.BytesIO(raw), headers=BEARER)
    assert answer.status == 202
    assert len(world.pager.bodies) == 1


@pytest.mark.parametrize("path", ["/v1/events", "/v2/enqueue", "/v2/change/enqueue"])
@pytest.mark.parametrize("key", [KEY, "mw_key_unknown"])
async def test_one_event_may_be_as_long_as_1_mib(client: Client, world: World, path: str, key: str) -> None:
    """What holds one event needs no more, and two of the three are read before their key is known."""
    long = b'{"summary": "%s"}' % (b"x" * bodies.LIMIT)
    answer = await client.post(path, data=io.BytesIO(long), headers={"Authorization": f"Bearer {key}"})
    is_a_problem(answer, 401 if (path, key) == ("/v1/events", "mw_key_unknown") else 413)
    assert world.pager.bodies == []


async def _raw(client: Client, headers: str, body: bytes) -> bytes:
    """Send a request as it is, and return the head of the answer."""
    address = urlsplit(client.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(f"POST /webhooks/alertmanager HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n".encode() + body)
    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    return head


async def test_a_compressed_body_is_refused_uninflated(client: Client, world: World) -> None:
    """415: a few kilobytes never become half a gigabyte here."""
    raw = gzip.compress(SINGLE)
    headers = {**BEARER, "Content-Encoding": "gzip"}
    answer = await client.post("/webhooks/alertmanager", data=raw, headers=headers)
    assert is_a_problem(answer, 415)
    identity = {**BEARER, "Content-Encoding": "identity"}
    assert (await client.post("/webhooks/alertmanager", data=SINGLE, headers=identity)).status == 202


async def test_a_body_that_stops_is_answered_after_its_time(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sender that never finishes is let go."""
    monkeypatch.setattr(bodies, "BODY_TIMEOUT", bodies.BODY_TIMEOUT / 1000)
    head = await _raw(client, f"Authorization: Bearer {KEY}\r\nContent-Length: 100", b'{"al')
    assert head.startswith(b"HTTP/1.1 408 ")


async def test_what_cannot_be_stored_is_a_503_and_the_retry_succeeds(client: Client, world: World) -> None:
    """The sender is told to come back in five seconds, and is then heard."""
    world.pager.fails = Unavailable()
    answer = await client.post("/webhooks/alertmanager", data=SINGLE, headers=BEARER)
    assert is_a_problem(answer, 503)
    assert answer.headers["Retry-After"] == "5"
    world.pager.fails = None
    assert (await client.post("/webhooks/alertmanager", data=SINGLE, headers=BEARER)).status == 202


async def test_an_unexpected_failure_of_ours_is_a_503_with_a_reference(client: Client, world: World) -> None:
    """It may be a real alert, so it is never refused for our mistake; the log has no secret of it."""
    world.pager.fails = RuntimeError(f"broken by {KEY}")
    with capture_logs() as logs:
        answer = await client.post(f"/webhooks/alertmanager/{KEY}", data=SINGLE)
    assert is_a_problem(answer, 503)
    (failed,) = [entry for entry in logs if entry["event"] == "web.failed"]
    assert failed["ref"] in answer.json["detail"]
    assert failed["error"] == "RuntimeError"
    assert KEY not in str(logs)


async def test_the_access_log_has_refusals_without_keys(client: Client) -> None:
    """What was refused can be read, with its key masked; accepted alerts are metrics, not lines."""
    with capture_logs() as logs:
        await client.post(f"/webhooks/alertmanager/{KEY}", data=SINGLE)
        await client.post(f"/webhooks/alertmanager/{KEY}", data=b"x")
    assert [(entry["event"], entry["status"]) for entry in logs] == [("web.answered", 400)]
    assert KEY not in str(logs)


async def test_our_own_form_answers_key_and_status(client: Client) -> None:
    """`/v1/events` says the dedup key, also one we made, and that a repeat was one."""
    event = {"action": "trigger", "summary": "db down", "dedup_key": "db-1"}
    first = await client.post("/v1/events", json=event, headers=BEARER)
    second = await client.post("/v1/events", json=event, headers=BEARER)
    made = await client.post("/v1/events", json={"summary": "x"}, headers=BEARER)
    assert (first.status, first.json) == (202, {"dedup_key": "db-1", "status": "opened"})
    assert second.json == {"dedup_key": "db-1", "status": "repeat", "deduplicated": True}
    assert len(made.json["dedup_key"]) == 32


@pytest.mark.parametrize(
    "name", ["20_pd_v2_trigger.json", "21_pd_v2_trigger_bad_severity.json", "23_pd_v2_resolve.json"]
)
async def test_pagerduty_bodies_are_answered_as_pagerduty_answers(
    client: Client, world: World, name: str
) -> None:
    """Senders built for PagerDuty find the three fields they look for."""
    body = json.loads((PAYLOADS / name).read_bytes())
    answer = await client.post("/v2/enqueue", json={**body, "routing_key": KEY})
    assert answer.status == 202
    expected = {"status": "success", "message": "Event processed", "dedup_key": body["dedup_key"]}
    assert answer.json == expected
    assert world.pager.bodies[0][2].events[0].dedup_key == body["dedup_key"]


@pytest.mark.parametrize("name", ["30_pagerduty_py_client.json", "31_pdpyras_client.json"])
async def test_what_pagerdutys_python_clients_send_is_understood(
    client: Client, world: World, name: str
) -> None:
    """Trigger, repeat, acknowledge, resolve and change of both clients, byte for byte but for the key."""
    for sent in json.loads((PAYLOADS / name).read_bytes()):
        if not sent["path"].startswith("/v2/"):
            continue
        body = sent["body"].replace("0123456789abcdef0123456789abcdef", KEY)
        answer = await client.post(sent["path"], data=body, headers={"Content-Type": "application/json"})
        if json.loads(body)["routing_key"] != KEY:
            assert answer.status == 401
        elif "change" in sent["path"]:
            assert (answer.status, answer.json["status"]) == (202, "success")
        else:
            assert answer.status == 202
            assert answer.json["dedup_key"]
    actions = [event.action for _, _, body in world.pager.bodies for event in body.events]
    assert {Action.TRIGGER, Action.ACKNOWLEDGE, Action.RESOLVE} <= set(actions)


@pytest.mark.parametrize("path", ["/v2/enqueue", "/v2/change/enqueue"])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"event_action": "trigger"}, 401),
        ({"routing_key": "unknown"}, 401),
        ({"routing_key": None}, 401),
        ({"routing_key": {"a": 1}}, 401),
        ([], 401),
        ({"routing_key": KEY, "payload": 7}, 400),
    ],
)
async def test_pagerduty_bodies_without_a_key_of_ours_are_refused(
    client: Client, path: str, body: object, status: int
) -> None:
    """No key, another's key or a wrong form: 4xx with a reason."""
    assert is_a_problem(await client.post(path, json=body), status)
