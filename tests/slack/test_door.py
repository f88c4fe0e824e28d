"""HTTP mode: only what Slack signed gets in, and odd bytes are refused without a traceback."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import io
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import aiohttp
import pytest
from aiohttp import web

from bot.slack.door import BODY_TIMEOUT, LIMIT
from bot.slack.signature import is_signed
from engine.models import IncidentStatus
from tests.slack.conftest import Desk
from tests.slack.test_actions import a_click

BODY = b"payload=%7B%7D"
SIGNED = "v0=63e1372e8b7ddbce08bddc4ff4d403a15d2d69f718d33f5a2d9e0bc5720a56c6"
AT = datetime.fromtimestamp(1700000000, UTC)


def test_a_signature_is_known() -> None:
    """A known vector passes, and each part of it counts."""
    assert is_signed("s3cret", "1700000000", SIGNED, BODY, AT)
    assert not is_signed("other", "1700000000", SIGNED, BODY, AT)
    assert not is_signed("s3cret", "1700000001", SIGNED, BODY, AT)
    assert not is_signed("s3cret", "1700000000", SIGNED, BODY + b"x", AT)
    assert not is_signed("", "1700000000", SIGNED, BODY, AT)


@pytest.mark.parametrize("minutes", [-6, 6])
def test_an_old_signature_is_refused(minutes: int) -> None:
    """A replay of more than five minutes, or one from the future, is not taken."""
    assert not is_signed("s3cret", "1700000000", SIGNED, BODY, AT + timedelta(minutes=minutes))


@pytest.mark.parametrize(
    "timestamp", ["", "abc", "170000000", "-700000000", "１７００００００００", "1700000000\n"]
)
@pytest.mark.parametrize(
    "signature", ["", "v0=", SIGNED.upper(), SIGNED + "0", "v0=" + "é" * 64, "v1" + SIGNED[2:]]
)
def test_odd_headers_are_unsigned(timestamp: str, signature: str) -> None:
    """Nothing raises, whatever stands in the headers."""
    assert not is_signed("s3cret", timestamp, SIGNED, BODY, AT)
    assert not is_signed("s3cret", "1700000000", signature, BODY, AT)


@pytest.fixture
async def door(desk: Desk) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/slack/events", desk.slack.handle_http)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    await runner.cleanup()


def headers(desk: Desk, body: bytes) -> dict[str, str]:
    timestamp = str(int(desk.clock.now().timestamp()))
    base = b"v0:" + timestamp.encode() + b":" + body
    digest = hmac.new(b"demo", base, hashlib.sha256).hexdigest()
    return {
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": f"v0={digest}",
        "Content-Type": "application/x-www-form-urlencoded",
    }


async def test_a_signed_click_is_done(desk: Desk, door: str) -> None:
    """The same click as by the socket, by HTTP."""
    incident = await desk.open()
    body = urlencode({"payload": json.dumps(a_click(f"{incident.id}.{incident.epoch}"))}).encode()
    async with (
        aiohttp.ClientSession() as http,
        http.post(door, data=body, headers=headers(desk, body)) as answer,
    ):
        assert answer.status == 200
    assert (await desk.view(incident.id)).status is IncidentStatus.ACKNOWLEDGED


async def test_a_signed_command_is_answered(desk: Desk, door: str) -> None:
    """The answer to a command is in the response itself."""
    form = {"command": "/oncall", "text": "", "team_id": "T0SANDBOX", "user_id": "U0ANA", "channel_id": "C1"}
    body = urlencode(form).encode()
    async with (
        aiohttp.ClientSession() as http,
        http.post(door, data=body, headers=headers(desk, body)) as answer,
    ):
        assert "payments-primary" in (await answer.json())["text"]


async def test_slack_can_verify_the_url(desk: Desk, door: str) -> None:
    """The challenge is echoed."""
    body = json.dumps({"type": "url_verification", "challenge": "c"}).encode()
    given = headers(desk, body) | {"Content-Type": "application/json"}
    async with aiohttp.ClientSession() as http, http.post(door, data=body, headers=given) as answer:
        assert (await answer.json())["challenge"] == "c"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 200),
        ({"X-Slack-Signature": ""}, 401),
        ({"X-Slack-Request-Timestamp": "abc"}, 401),
        ({"X-Slack-Signature": "v0=" + "é" * 64}, 401),
        ({"X-Slack-Request-Timestamp": "1700000000"}, 401),
    ],
)
async def test_an_unsigned_request_is_refused(
    desk: Desk, door: str, change: dict[str, str], status: int
) -> None:
    """401 for a missing, odd or old signature."""
    body = b"command=%2Foncall&team_id=T0SANDBOX&user_id=U0ANA"
    given = headers(desk, body) | change
    async with aiohttp.ClientSession() as http, http.post(door, data=body, headers=given) as answer:
        assert answer.status == status


async def in_chunks(*chunks: bytes) -> AsyncIterator[bytes]:
    """A body whose length nobody says beforehand."""
    for chunk in chunks:
        yield chunk


async def test_what_is_longer_than_anything_of_slack_is_not_read(desk: Desk, door: str) -> None:
    """413 with and without a Content-Length; a megabyte itself is still looked at."""
    for body in (io.BytesIO(b" " * (LIMIT + 1)), in_chunks(b" " * LIMIT, b" ")):
        async with aiohttp.ClientSession() as http, http.post(door, data=body) as answer:
            assert answer.status == 413
    async with aiohttp.ClientSession() as http, http.post(door, data=in_chunks(b" " * LIMIT)) as answer:
        assert answer.status == 401


async def test_a_body_that_stops_is_let_go(desk: Desk, door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender that never finishes gets 408, whoever it is."""
    monkeypatch.setattr("bot.slack.door.BODY_TIMEOUT", BODY_TIMEOUT / 100)
    never = asyncio.Event()

    async def stops() -> AsyncIterator[bytes]:
        yield b"payload="
        await never.wait()

    async with aiohttp.ClientSession() as http, http.post(door, data=stops()) as answer:
        assert answer.status == 408


@pytest.mark.parametrize("body", [b"\xff\xfe", b"", b"payload=%00", b"payload=[", b"{", b"[]", b"null"])
async def test_signed_nonsense_is_no_error_of_ours(desk: Desk, door: str, body: bytes) -> None:
    """Signed but unreadable: an answer below 500."""
    for content_type in ("application/json", "application/x-www-form-urlencoded"):
        given = headers(desk, body) | {"Content-Type": content_type}
        async with aiohttp.ClientSession() as http, http.post(door, data=body, headers=given) as answer:
            assert answer.status < 500
