"""Fallback URLs and push through apprise, against a web hook on this machine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web

from engine.models import DeliveryKind, Method, Outcome, Page, Rejected, Retry, Sent, Urgency
from engine.notify.apprise_url import AppriseTransport, with_priority, with_timeouts
from tests.notify.phone_company import serving
from tests.notify.values import page, told, view

KEY = "sesame-key"

# apprise imports it where the language still has it
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")


@dataclass
class Hook:
    """Keeps what was posted to it."""

    got: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200
    silent: bool = False
    release: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    async def post(self, request: web.Request) -> web.Response:
        if self.silent:
            await self.release.wait()
        self.got.append(await request.json())
        return web.Response(status=self.status)


@asynccontextmanager
async def hook(key: str = KEY) -> AsyncIterator[Hook]:
    listening = Hook()
    app = web.Application()
    app.router.add_post(f"/{key}", listening.post)
    async with serving(app) as url:
        listening.url = f"{url.replace('http', 'json')}/{key}"
        try:
            yield listening
        finally:
            listening.release.set()


async def send(url: str, what: Page | None = None, **options: Any) -> Outcome:
    shown = what or page()
    target = Page(901, 1, shown.kind, Method.URL, url, incident=shown.incident, text=shown.text)
    return await AppriseTransport(**options).send(target)


async def test_a_page_is_handed_over() -> None:
    """Title and text arrive; there is no reference, so it is sent and never delivered."""
    async with hook() as listening:
        assert await send(listening.url) == Sent("", "apprise")
    [got] = listening.got
    assert got["title"] == "[Midwatch #42] checkout: db-1 is down"
    assert "#42 FIRING: db-1 is down" in got["message"]


LINK = "https://pager.example.com/answer/" + "t" * 36


async def test_a_push_message_is_short_and_has_the_link() -> None:
    """Its title says what is wrong; below are the state and the link, for a screen that is locked."""
    async with hook() as listening:
        target = page(method=Method.PUSH, address=listening.url, incident=view(firing_count=4))
        assert isinstance(await AppriseTransport(link_of=lambda _: LINK).send(target), Sent)
    [got] = listening.got
    assert got["title"] == "[Midwatch #42] checkout: db-1 is down"
    assert got["message"] == f"FIRING (+3 alerts)\n{LINK}"
    assert got["type"] == "failure"


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"kind": DeliveryKind.STATUS, "text": "acknowledged by ben"}, "info"),
        ({"incident": view(urgency=Urgency.LOW)}, "info"),
        ({"incident": None, "kind": DeliveryKind.OPS, "text": "a page is dead"}, "failure"),
        ({"incident": None, "kind": DeliveryKind.NOTICE, "text": "the night is yours"}, "info"),
        (
            {"incident": None, "kind": DeliveryKind.NOTICE, "body": {"loud": True}, "text": "a test"},
            "failure",
        ),
        ({"kind": DeliveryKind.RESPONDER, "text": "ana asks for your help"}, "failure"),
    ],
)
async def test_only_what_must_be_answered_is_loud(changes: dict[str, Any], kind: str) -> None:
    """News and low urgency come as information."""
    async with hook() as listening:
        await AppriseTransport().send(page(method=Method.PUSH, address=listening.url, **changes))
    assert listening.got[0]["type"] == kind


@pytest.mark.parametrize(
    ("url", "loud"),
    [
        ("ntfy://topic", "ntfy://topic?priority=high"),
        ("ntfy://topic?tags=night", "ntfy://topic?tags=night&priority=high"),
        ("ntfy://topic?priority=max", "ntfy://topic?priority=max"),
        ("gotify://host/tokenaaaaaaaaaa", "gotify://host/tokenaaaaaaaaaa?priority=high"),
        ("json://localhost", "json://localhost"),
        ("nothing://x", "nothing://x"),
    ],
)
def test_a_page_has_priority_where_the_service_knows_of_it(url: str, loud: str) -> None:
    """A priority that somebody chose is left."""
    assert with_priority(url) == loud


async def test_pages_are_not_kept_apart() -> None:
    """Three pages in a row go at once: apprise's own 5.5 s pause is for loaded objects only."""
    async with hook() as listening, asyncio.timeout(5):
        transport = AppriseTransport()
        target = Page(901, 1, DeliveryKind.PAGE, Method.URL, listening.url, incident=view())
        outcomes = await asyncio.gather(*(transport.send(target) for _ in range(3)))
    assert outcomes == [Sent("", "apprise")] * 3


async def test_braces_of_an_alert_are_text() -> None:
    """A template in an alert is not filled in and holds nothing back."""
    async with hook() as listening:
        outcome = await send(listening.url, page(incident=view(title="{{ secret }} \\n <b>")))
    assert isinstance(outcome, Sent)
    assert "{{ secret }} \\n <b>" in listening.got[0]["message"]


@pytest.mark.parametrize("status", [403, 404, 429, 500])
async def test_a_service_that_refuses_is_tried_again(status: int) -> None:
    """Apprise does not say why, so nothing is final."""
    async with hook() as listening:
        listening.status = status
        outcome = await send(listening.url, told("Slack is down"))
    assert outcome == Retry("json did not take it (failure)")


async def test_a_silent_service_is_not_waited_for() -> None:
    """Ours is the shorter patience."""
    async with hook() as listening:
        listening.silent = True
        outcome = await send(f"{listening.url}?rto=1", timeout=timedelta(milliseconds=100))
        assert outcome == Retry("json did not answer in time")
        listening.release.set()


@pytest.mark.parametrize("url", ["", "nothing", "nosuch://key@host", "json://"])
async def test_what_is_no_url_is_rejected(url: str) -> None:
    """A URL that apprise does not know never will be one."""
    assert await send(url) == Rejected("not a URL that apprise knows")


async def test_no_key_of_a_url_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """No log, of a library either, and no reason holds the URL: refused, unreachable or unknown."""
    caplog.set_level(logging.DEBUG)
    outcomes: list[Outcome] = []
    async with hook() as listening:
        outcomes.append(await send(listening.url))
        listening.status = 500
        outcomes.append(await send(listening.url))
    outcomes.append(await send(listening.url))
    outcomes.append(await send(f"nosuch://{KEY}@host"))
    said = f"{outcomes} {caplog.text}"
    assert KEY not in said


@pytest.mark.parametrize(
    ("url", "completed"),
    [
        ("ntfy://host/topic", "ntfy://host/topic?cto=3&rto=5"),
        ("ntfy://host/topic?priority=max", "ntfy://host/topic?priority=max&cto=3&rto=5"),
        ("ntfy://host/topic?rto=1", "ntfy://host/topic?rto=1&cto=3"),
    ],
)
def test_every_url_has_its_timeouts(url: str, completed: str) -> None:
    """Without them a thread of apprise would hang for as long as the service likes."""
    assert with_timeouts(url) == completed
