"""The server around the routes: unknown addresses, headers, slow clients, what is not wired."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from bot.web import server
from tests.web.conftest import Client, World
from tests.web.test_ingest import is_a_problem


@pytest.mark.parametrize(
    "path", ["/nothing", "/v1", "/slack/events", "/demo/next", "/v1/incidents/1/x", "/%00"]
)
async def test_an_unknown_address_is_a_problem_document(client: Client, path: str) -> None:
    """404 as JSON; without Slack over HTTP or a demo, theirs are unknown addresses too."""
    assert is_a_problem(await client.get(path), 404)


async def test_the_front_page_says_where_things_are(client: Client) -> None:
    """Somebody who opens the address in a browser finds the way."""
    answer = await client.get("/")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert "/webhooks/alertmanager" in answer.text


@pytest.mark.parametrize("path", ["/", "/healthz", "/nothing", "/metrics"])
async def test_every_answer_has_safe_headers(client: Client, path: str) -> None:
    """Nothing may be framed, sniffed, loaded or kept."""
    headers = (await client.get(path)).headers
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


async def test_slack_over_http_is_passed_to_its_handler(world: World, serve: Callable[..., Any]) -> None:
    """The web knows Slack only as a handler that it was given."""

    async def slack(request: web.Request) -> web.Response:
        return web.Response(text=(await request.text()).upper())

    client = await serve(world.parts, slack_http=slack)
    answer = await client.post("/slack/events", data=b"hello")
    assert (answer.status, answer.text) == (200, "HELLO")


async def test_without_phones_there_are_no_callbacks(world: World, serve: Callable[..., Any]) -> None:
    """No Twilio, no address of Twilio's."""
    client = await serve(world.parts, phones=None)
    assert is_a_problem(await client.post("/webhooks/twilio/sms"), 404)


@pytest.mark.parametrize("sent", [b"", b"POST /webhooks/alertmanager HTTP/1.1\r\nHost: x\r\nX: "])
async def test_a_client_that_never_finishes_its_head_is_let_go(
    world: World, serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    """Idle and dribbling connections are closed after their time; others are served meanwhile."""
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.2)
    client = await serve(world.parts)
    address = urlsplit(client.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(sent)
    assert (await client.get("/")).status == 200
    async with asyncio.timeout(5):
        assert await reader.read() == b""
    writer.close()


async def test_bytes_that_are_no_http_get_a_400(client: Client) -> None:
    """Garbage ends its own connection and nothing else."""
    address = urlsplit(client.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(b"\x16\x03\x01 not http\r\n\r\n")
    async with asyncio.timeout(5):
        assert (await reader.read()).startswith(b"HTTP/1.0 400 ")
    writer.close()
    assert (await client.get("/")).status == 200
