"""A real server on a real port, a real database for keys and people, and the pager in memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from bot.web.parts import Phones, WebParts
from bot.web.server import build_web, runner
from engine.contacts.contacts import Contacts
from engine.db import Database
from engine.models import ORG, Method
from engine.nudge import Nudge
from engine.store import contacts, keys, people, services
from engine.vault import Vault, hash_key, hint
from tests.fakes import START, FakeClock
from tests.web.fakes import ANA, BEN, GONE, SERVICE, FakePager, FakeRoster

KEY = "mw_key_checkout"
REVOKED = "mw_key_revoked"
TOKEN = "mw_token"
ANAS_TOKEN = "mw_token_of_ana"
REVOKED_TOKEN = "mw_token_revoked"
PHONE = "+12025550143"
AUTH_TOKEN = "twilio-secret"
PUBLIC_URL = "https://pager.example.com"


@dataclass
class World:
    """The web's parts, and what they did."""

    parts: WebParts
    pager: FakePager
    roster: FakeRoster
    statuses: list[tuple[str, str, str | None, int | None]] = field(default_factory=list)

    @property
    def database(self) -> Database:
        return self.parts.database

    async def revoke(self, key_id: int) -> None:
        await self.database.write(lambda tx: keys.revoke_key(tx, ORG, key_id, START))


class Client:
    """An HTTP client of one server."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def __call__(self, method: str, path: str, **options: Any) -> Answered:
        async with self.session.request(method, self.url + path, allow_redirects=False, **options) as answer:
            return Answered(answer.status, answer.headers.copy(), await answer.text())

    async def get(self, path: str, **options: Any) -> Answered:
        return await self("GET", path, **options)

    async def put(self, path: str, **options: Any) -> Answered:
        return await self("PUT", path, **options)

    async def patch(self, path: str, **options: Any) -> Answered:
        return await self("PATCH", path, **options)

    async def delete(self, path: str, **options: Any) -> Answered:
        return await self("DELETE", path, **options)

    async def post(self, path: str, **options: Any) -> Answered:
        return await self("POST", path, **options)


@dataclass(frozen=True)
class Answered:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@pytest.fixture
async def web_database(sqlite_url: str) -> AsyncIterator[Database]:
    database = Database(sqlite_url)
    vault = Vault("a secret of the tests")

    async def fill(tx: Any) -> None:
        await services.save_service(tx, ORG, SERVICE)
        for person in (ANA, BEN, GONE):
            row = people.PersonRow(person.name, person.slack_user_id, person.timezone, person.admin)
            person_id = await people.insert_person(tx, ORG, row, START)
            assert person_id == person.id
        await people.deactivate_person(tx, ORG, GONE.id, START)
        await contacts.save_method(
            tx, ORG, ANA.id, Method.SMS, PHONE, vault=vault, verified_by="test", now=START
        )
        for key in (KEY, REVOKED):
            key_id = await keys.insert_key(tx, ORG, SERVICE.id, hash_key(key), hint(key), START)
        await keys.revoke_key(tx, ORG, key_id or 0, START)
        await keys.insert_token(tx, ORG, "ci", hash_key(TOKEN), "", None, START)
        await keys.insert_token(tx, ORG, "ana", hash_key(ANAS_TOKEN), "", ANA.id, START)
        revoked = await keys.insert_token(tx, ORG, "old", hash_key(REVOKED_TOKEN), "", None, START)
        await keys.revoke_token(tx, ORG, revoked or 0, START)

    await database.write(fill)
    yield database
    await database.close()


@pytest.fixture
def world(web_database: Database, clock: FakeClock) -> World:
    pager, roster = FakePager(), FakeRoster()
    statuses: list[tuple[str, str, str | None, int | None]] = []

    async def health() -> Mapping[str, Any]:
        return {"slack": "connected", "queue": 0}

    async def provider_status(ref: str, status: str, error_code: str | None, delivery_id: int | None) -> None:
        if pager.fails is not None:
            raise pager.fails
        statuses.append((ref, status, error_code, delivery_id))

    parts = WebParts(
        clock=clock,
        database=web_database,
        vault=Vault("a secret of the tests"),
        roster=roster,  # type: ignore[arg-type]  # a fake with state
        receiver=pager,  # type: ignore[arg-type]  # likewise
        responder=pager,  # type: ignore[arg-type]  # likewise
        views=pager,  # type: ignore[arg-type]  # likewise
        contacts=Contacts(web_database, clock, Vault("a secret of the tests"), Nudge(web_database)),
        health=health,
        version="0.1.0",
        public_url=PUBLIC_URL,
        phones=Phones(AUTH_TOKEN, PUBLIC_URL, provider_status),
    )
    return World(parts, pager, roster, statuses)


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Any]]:
    """Start a server of these parts on a free port, and give a client of it."""
    runners: list[web.AppRunner] = []
    async with aiohttp.ClientSession() as session:

        async def start(parts: WebParts, **changes: Any) -> Client:
            started = runner(build_web(replace(parts, **changes)))
            runners.append(started)
            await started.setup()
            site = web.TCPSite(started, "127.0.0.1", 0)
            await site.start()
            host, port = started.addresses[0][:2]
            return Client(session, f"http://{host}:{port}")

        yield start
    for started in runners:
        await started.cleanup()


@pytest.fixture
async def client(world: World, serve: Callable[..., Any]) -> Client:
    made: Client = await serve(world.parts)
    return made
