"""The web on the real engine and both databases: what a sender sends is what the API shows."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
import pytest
import sqlalchemy as sa

from bot.web.parts import Phones, WebParts
from engine import db
from engine.contacts.contacts import Contacts
from engine.db import Database
from engine.intake.receive import Receiver
from engine.models import ORG, Method
from engine.nudge import Nudge
from engine.pager.respond import Responder
from engine.pager.views import Views
from engine.rota.roster import Roster
from engine.schema import contact_methods, deliveries
from engine.store import contacts, directory, keys, people, services
from engine.vault import Vault, hash_key
from tests.fakes import START, FakeClock
from tests.servers import Connections, run_on_server
from tests.web.conftest import AUTH_TOKEN, KEY, PHONE, PUBLIC_URL, TOKEN, Client, World
from tests.web.fakes import ANA, SERVICE
from tests.web.test_ingest import BEARER, PAYLOADS, SINGLE
from tests.web.test_phone import text

AUTH = {"Authorization": f"Bearer {TOKEN}"}


@dataclass
class Whole:
    parts: WebParts
    client: Client

    async def send(self, name: str, key: str = KEY) -> None:
        """Post a captured body where its sender would."""
        raw = next(PAYLOADS.glob(f"{name}_*.json")).read_bytes()
        if b"routing_key" in raw:
            body = {**json.loads(raw), "routing_key": key}
            answer = await self.client.post("/v2/enqueue", json=body)
        else:
            headers = {"Authorization": f"Bearer {key}"}
            answer = await self.client.post("/webhooks/alertmanager", data=raw, headers=headers)
        assert answer.status == 202, answer.text

    async def incidents(self, query: str = "") -> list[dict[str, Any]]:
        answer = await self.client.get(f"/v1/incidents?limit=100{query}", headers=AUTH)
        items: list[dict[str, Any]] = answer.json["items"]
        return items

    async def one(self) -> dict[str, Any]:
        (item,) = await self.incidents()
        return item


async def fill(database: Database, vault: Vault) -> None:
    async def unit(tx: Any) -> None:
        await services.save_service(tx, ORG, SERVICE)
        row = people.PersonRow("ana", "U1", "Europe/Berlin", True)
        await people.insert_person(tx, ORG, row, START)
        await contacts.save_method(
            tx, ORG, ANA.id, Method.SMS, PHONE, vault=vault, verified_by="test", now=START
        )
        await keys.insert_key(tx, ORG, SERVICE.id, hash_key(KEY), "", START)
        await keys.insert_token(tx, ORG, "ci", hash_key(TOKEN), "", None, START)

    await database.write(unit)


def wired(database: Database, clock: FakeClock) -> WebParts:
    vault = Vault("a secret of the tests")
    roster = Roster(database, clock, vault)
    nudge = Nudge(database)

    async def nothing(*_: Any) -> Any:
        return {}

    return WebParts(
        clock=clock,
        database=database,
        vault=vault,
        roster=roster,
        receiver=Receiver(database, clock, roster.directory, nudge),
        responder=Responder(database, clock, roster.directory, nudge, lambda calls: None),
        views=Views(database),
        contacts=Contacts(database, clock, vault, nudge),
        health=nothing,
        version="0.1.0",
        phones=Phones(AUTH_TOKEN, PUBLIC_URL, nothing),
    )


@pytest.fixture
async def whole(database: Database, clock: FakeClock, serve: Callable[..., Any]) -> AsyncIterator[Whole]:
    parts = wired(database, clock)
    await fill(database, parts.vault)
    yield Whole(parts, await serve(parts))
    await parts.receiver.stop()


# What is sent in order, and then: open incidents, alerts, firing alerts.
CAPTURED = [
    ("01 05", 1, 1, 1),
    ("01 10", 0, 1, 0),
    ("10", 0, 0, 0),
    ("02", 1, 4, 4),
    ("02 06", 1, 5, 4),
    ("02 06 08", 1, 5, 4),
    ("03", 1, 2, 2),
    ("03 07", 1, 2, 1),
    ("14", 1, 1, 1),
    ("15", 1, 500, 500),
    ("20 23", 0, 1, 0),
    ("20 20", 1, 1, 1),
    ("21", 1, 1, 1),
]


async def test_captured_bodies_become_the_incidents_they_should(whole: Whole) -> None:
    """The table beside the captured bodies, a service for each line, read back through the API."""
    for sent, open_incidents, alerts, firing in CAPTURED:
        key = await another_service(whole, sent)
        for name in sent.split():
            await whole.send(name, key)
        items = [item for item in await whole.incidents() if item["service"] == sent]
        assert len(items) <= 1, sent
        assert sum(item["status"] != "resolved" for item in items) == open_incidents, sent
        assert sum(item["alert_count"] for item in items) == alerts, sent
        assert sum(item["firing_count"] for item in items) == firing, sent


async def another_service(whole: Whole, name: str) -> str:
    """Its key."""

    async def unit(tx: Any) -> None:
        service_id = await services.save_service(tx, ORG, replace(SERVICE, name=name))
        await keys.insert_key(tx, ORG, service_id, hash_key(name), "", START)
        await directory.bump(tx, ORG)

    await whole.parts.database.write(unit)
    return name


async def test_the_same_alert_200_times_is_one_incident_and_a_count(whole: Whole) -> None:
    """Also when they arrive at once."""
    answers = await asyncio.gather(
        *(whole.client.post("/webhooks/alertmanager", data=SINGLE, headers=BEARER) for _ in range(200))
    )
    assert {answer.status for answer in answers} == {202}
    item = await whole.one()
    assert (item["number"], item["event_count"], item["alert_count"]) == (1, 200, 1)


async def test_fifty_problems_at_once_are_fifty_numbers(whole: Whole) -> None:
    """Nobody gets a 5xx, and each has a number of its own."""
    answers = await asyncio.gather(
        *(
            whole.client.post("/v1/events", json={"summary": "x", "dedup_key": f"k{n}"}, headers=BEARER)
            for n in range(50)
        )
    )
    assert {(answer.status, answer.json["status"]) for answer in answers} == {(202, "opened")}
    assert sorted(item["number"] for item in await whole.incidents()) == list(range(1, 51))


async def test_the_database_decides_who_opened_an_incident_by_hand(whole: Whole) -> None:
    """Ten at once for one key: one 201, and nine are given the one that is open."""
    body = {"service": "checkout", "title": "Shop is slow", "dedup_key": "shop"}
    answers = await asyncio.gather(
        *(whole.client.post("/v1/incidents", json=body, headers=AUTH) for _ in range(10))
    )
    assert sorted(answer.status for answer in answers) == [200] * 9 + [201]
    assert len({answer.json["id"] for answer in answers}) == 1


async def test_an_incident_goes_its_way_through_the_api(whole: Whole) -> None:
    """Acknowledged, resolved, and a late acknowledgement told so; the timeline has it all."""
    await whole.send("01")
    path = f"/v1/incidents/{(await whole.one())['id']}"
    acked = await whole.client.post(f"{path}/acknowledge", json={"user_id": ANA.id}, headers=AUTH)
    assert (acked.json["status"], acked.json["acknowledged_by"], acked.json["changed"]) == (
        "acknowledged",
        "ana",
        True,
    )
    resolved = await whole.client.post(f"{path}/resolve", headers=AUTH)
    assert (resolved.json["status"], resolved.json["changed"]) == ("resolved", True)
    late = await whole.client.post(f"{path}/acknowledge", headers=AUTH)
    assert (late.status, late.json["changed"]) == (200, False)
    assert "resolved" in late.json["reason"]
    shown = (await whole.client.get(path, headers=AUTH)).json
    assert {"acknowledged", "resolved"} <= {entry["kind"] for entry in shown["timeline"]}
    assert await whole.incidents("&status=triggered") == []


async def test_a_reply_from_a_phone_reaches_the_incident(whole: Whole) -> None:
    """4 acknowledges what was texted there, and a second 4 is told who was first."""
    await whole.send("01")
    incident_id = (await whole.one())["id"]
    assert await text(whole.client, "4") == "No open incident was texted to this number."

    async def texted(tx: Any) -> None:
        method_id = await tx.scalar(sa.select(contact_methods.c.id))
        await tx.execute(
            sa.insert(deliveries).values(
                org_id=ORG,
                incident_id=incident_id,
                kind="page",
                method="sms",
                person_id=ANA.id,
                method_id=method_id,
                round=1,
                level=0,
                step=0,
                idem_key="page:1",
                status="sent",
                attempts=1,
                body={},
                due_at=START,
                created_at=START,
                sent_at=START,
                **{"pass": 0},
            )
        )

    await whole.parts.database.write(texted)
    first, second = await text(whole.client, "4"), await text(whole.client, "ack 1")
    assert first is not None
    assert first.startswith("#1 acknowledged")
    assert second is not None
    assert "already" in second
    assert (await whole.one())["acknowledged_via"] == "sms"


async def test_senders_that_hang_up_block_nobody(whole: Whole) -> None:
    """A request whose client went away while it was committed leaves the database writable."""

    async def impatient(n: int) -> None:
        timeout = aiohttp.ClientTimeout(total=0.002 * (n % 5 + 1))
        event = {"summary": "x", "dedup_key": f"k{n}"}
        with contextlib.suppress(TimeoutError):
            await whole.client.post("/v1/events", json=event, headers=BEARER, timeout=timeout)

    await asyncio.gather(*(impatient(n) for n in range(30)))
    async with asyncio.timeout(3):
        await whole.send("01")
        assert (await whole.client.get("/readyz")).status == 200


async def test_a_locked_database_is_a_503_and_the_retry_succeeds(
    sqlite_url: str, clock: FakeClock, serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sender is told to come back; nothing was stored before, all of it after."""
    monkeypatch.setattr(db, "SQLITE_BUSY", db.SQLITE_BUSY / 50)
    database = Database(sqlite_url)
    parts = wired(database, clock)
    await fill(database, parts.vault)
    whole = Whole(parts, await serve(parts))
    intruder = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    intruder.execute("BEGIN IMMEDIATE")
    answer = await whole.client.post("/webhooks/alertmanager", data=SINGLE, headers=BEARER)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert (await whole.client.get("/readyz")).status == 503
    assert (await whole.client.get("/healthz")).status == 200
    intruder.execute("ROLLBACK")
    intruder.close()
    assert await whole.incidents() == []
    await whole.send("01")
    assert (await whole.one())["event_count"] == 1
    await database.close()


async def test_a_database_that_is_gone_is_a_503(
    world: World, clock: FakeClock, serve: Callable[..., Any]
) -> None:
    """Nobody listens where PostgreSQL should be: the sender keeps its alert."""
    gone = Database("postgresql://nobody@127.0.0.1:1/nothing")
    parts = replace(wired(gone, clock), database=gone)
    client: Client = await serve(parts)
    for path in ("/webhooks/alertmanager", "/v1/events"):
        answer = await client.post(path, data=SINGLE, headers=BEARER)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert (await client.get("/readyz")).status == 503
    assert (await client.get("/healthz")).status == 200
    await gone.close()


async def test_a_database_that_is_locked_for_a_while_is_waited_for(whole: Whole) -> None:
    """Another process writes for a moment: the sender waits, and hears that it is stored (F-12)."""
    if not whole.parts.database.is_sqlite:
        return  # PostgreSQL locks rows, not the file
    path = str(sa.make_url(whole.parts.database.url).database)
    intruder = sqlite3.connect(path, isolation_level=None)
    intruder.execute("BEGIN IMMEDIATE")
    sending = asyncio.create_task(whole.send("01"))
    await asyncio.wait({sending}, timeout=1)
    assert not sending.done()
    intruder.execute("ROLLBACK")
    intruder.close()
    await asyncio.wait_for(sending, 10)
    assert (await whole.one())["event_count"] == 1


async def made_read_only(database: Database, server: str) -> None:
    """As a standby is, or a file system that was mounted again without writing."""
    await database.writer_engine.dispose()
    if not database.is_sqlite:
        name = sa.make_url(database.url).database
        await run_on_server(server, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        return

    @sa.event.listens_for(database.writer_engine.sync_engine, "connect")
    def read_only(connection: Any, _record: Any) -> None:
        connection.cursor().execute("PRAGMA query_only=ON")


async def test_a_database_that_is_read_only_is_a_503(whole: Whole, request: pytest.FixtureRequest) -> None:
    """No alert is accepted and the process is not ready; both while nothing can be stored (F-17)."""
    database = whole.parts.database
    server = "" if database.is_sqlite else request.getfixturevalue("postgresql_server")
    await made_read_only(database, server)
    answer = await whole.client.post("/webhooks/alertmanager", data=SINGLE, headers=BEARER)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert (await whole.client.get("/readyz")).status == 503
    assert await whole.incidents() == []


async def test_a_full_disk_is_a_503(sqlite_url: str, clock: FakeClock, serve: Callable[..., Any]) -> None:
    """SQLite finds no room for another page: the sender keeps its alert (F-17)."""
    database = Database(sqlite_url)
    parts = wired(database, clock)
    await fill(database, parts.vault)
    await database.writer_engine.dispose()

    @sa.event.listens_for(database.writer_engine.sync_engine, "connect")
    def full(connection: Any, _record: Any) -> None:
        connection.cursor().execute("PRAGMA max_page_count=1")

    whole = Whole(parts, await serve(parts))
    big = next(PAYLOADS.glob("15_*.json")).read_bytes()
    answer = await whole.client.post("/webhooks/alertmanager", data=big, headers=BEARER)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert await whole.incidents() == []
    await database.close()


async def test_a_restart_of_postgresql_costs_no_alert(
    postgresql_url: str, postgresql_server: str, clock: FakeClock, serve: Callable[..., Any]
) -> None:
    """Every connection is cut between two requests: the second is stored like the first (F-15, B116)."""
    database = Database(postgresql_url)
    parts = wired(database, clock)
    with Connections() as connections:
        await fill(database, parts.vault)
        whole = Whole(parts, await serve(parts))
        await whole.send("01")
        await connections.cut(postgresql_server)
    await whole.send("02")
    assert {item["event_count"] for item in await whole.incidents()} == {1, 4}
    await database.close()
