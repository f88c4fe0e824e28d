"""Answer links: a click on their page answers one incident as one person, and nothing else does."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.app import _web_parts
from bot.web import answer_page
from bot.web.answer_page import Shown
from engine.errors import Unavailable
from engine.links import Links
from engine.models import IncidentStatus, Link, Page, Via
from engine.notify.render import answer_link
from tests.fakes import FakeClock
from tests.notify.values import alert, view
from tests.scenario.harness import Pager
from tests.web.conftest import PUBLIC_URL, Answered, Client


@dataclass
class Door:
    """A whole pager and its answer page."""

    pager: Pager
    client: Client
    links: Links

    async def paged(self) -> str:
        """Alice is paged about a new incident; the path of her link."""
        await self.pager.alert()
        await self.pager.advance(seconds=1)
        return self.path(self.pager.expect_page("alice"))

    def path(self, page: Page) -> str:
        url = answer_link(page, self.links, self.pager.clock.now())
        assert url is not None
        return url.removeprefix(PUBLIC_URL)

    async def press(self, path: str, verb: str, seen: int | str | None = None) -> Answered:
        """Open the page and press one of its buttons, as a browser does."""
        if seen is None:
            found = re.search(r'name="seen" value="(\d+)"', (await self.client.get(path)).text)
            seen = found[1] if found else ""
        return await self.client.post(path, data={"do": verb, "seen": str(seen)})

    async def status(self) -> IncidentStatus:
        return (await self.pager.incident()).status


@pytest.fixture
async def door(sqlite_url: str, clock: FakeClock, serve: Callable[..., Any]) -> AsyncIterator[Door]:
    pager = await Pager(sqlite_url, clock).start()
    parts = replace(_web_parts(pager.app), public_url=PUBLIC_URL)
    yield Door(pager, await serve(parts), Links(pager.app.vault.link_key, PUBLIC_URL))
    await pager.close()


def told(answer: Answered) -> str:
    """What became of the click."""
    found = re.search(r'role="status">([^<]*)<', answer.text)
    return found[1] if found else ""


def buttons(answer: Answered) -> list[str]:
    return re.findall(r'<button[^>]* value="(\w+)"', answer.text)


async def test_a_link_shows_the_incident_and_changes_nothing(door: Door) -> None:
    """However often it is fetched, by GET or HEAD: scanners of mail open every link."""
    path = await door.paged()
    for _ in range(3):
        shown = await door.client.get(path)
        assert (await door.client("HEAD", path)).status == 200
    assert shown.status == 200
    assert "<h1>#1 FIRING: db-1 is down</h1>" in shown.text
    assert "You answer as alice." in shown.text
    assert buttons(shown) == ["acknowledge", "resolve", "escalate"]
    assert await door.status() is IncidentStatus.TRIGGERED


async def test_a_click_acknowledges_as_the_person_who_was_paged(door: Door) -> None:
    """The card says who and by which way, the page says that it is done, and paging ends."""
    answer = await door.press(await door.paged(), "acknowledge")
    assert (answer.status, told(answer)) == (200, "Acknowledged.")
    incident = await door.pager.incident()
    assert (incident.status, incident.acknowledged_by) == (IncidentStatus.ACKNOWLEDGED, "alice")
    assert incident.acknowledged_via is Via.WEB
    await door.pager.advance(minutes=30)
    door.pager.expect_silence()


async def test_a_click_resolves(door: Door) -> None:
    """And there is nothing left to press but one's own mistake."""
    answer = await door.press(await door.paged(), "resolve")
    assert await door.status() is IncidentStatus.RESOLVED
    assert "<h1>#1 RESOLVED: db-1 is down</h1>" in answer.text
    assert buttons(answer) == ["reopen"]


async def test_a_click_escalates_once(door: Door) -> None:
    """The next level is paged; the same button pressed twice, or a page loaded again, pages no third."""
    path = await door.paged()
    epoch = (await door.pager.incident()).epoch
    first = await door.press(path, "escalate", epoch)
    assert told(first).startswith("Escalated by alice")
    again = await door.press(path, "escalate", epoch)
    assert told(again).startswith("Not done: it has changed since you looked")
    await door.pager.advance(seconds=1)
    door.pager.expect_page("bob")
    door.pager.expect_silence()


async def test_an_acknowledgement_is_taken_back(door: Door) -> None:
    """Undo pages again, once."""
    path = await door.paged()
    assert buttons(await door.press(path, "acknowledge")) == ["resolve", "escalate", "unacknowledge"]
    epoch = (await door.pager.incident()).epoch
    assert told(await door.press(path, "unacknowledge", epoch)) == "Unacknowledged by alice."
    assert await door.status() is IncidentStatus.TRIGGERED
    await door.pager.advance(seconds=1)
    door.pager.expect_page("alice")
    await door.press(path, "acknowledge")
    assert told(await door.press(path, "unacknowledge", epoch)).startswith("Not done")


async def test_a_resolve_by_mistake_is_taken_back_by_who_made_it(door: Door) -> None:
    """Of somebody else's resolve the link does nothing."""
    path = await door.paged()
    await door.press(path, "resolve")
    await door.press(path, "reopen")
    assert await door.status() is IncidentStatus.TRIGGERED
    await door.pager.resolve(by="bob")
    assert buttons(await door.client.get(path)) == []


async def test_late_clicks_are_told_the_truth(door: Door) -> None:
    """Who was first, and that it is over; a second click of the same person changes nothing."""
    path = await door.paged()
    await door.pager.ack(by="bob")
    shown = await door.client.get(path)
    assert buttons(shown) == ["acknowledge", "resolve", "escalate", "unacknowledge"]
    assert "Acknowledged by: bob" in shown.text
    assert told(await door.press(path, "acknowledge")).startswith("Already acknowledged by bob")
    await door.pager.resolve(by="bob")
    for verb in ("acknowledge", "resolve"):
        answer = await door.press(path, verb)
        assert answer.status == 200
        assert "resolved" in told(answer).lower()
    assert (await door.pager.incident()).resolved_by == "bob"


async def test_a_click_that_was_not_stored_is_told_so(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """503, NOT applied, and the buttons to try again."""
    path = await door.paged()

    async def away(*_: object, **__: object) -> None:
        raise Unavailable

    monkeypatch.setattr(door.pager.app.database, "write", away)
    answer = await door.press(path, "acknowledge")
    assert answer.status == 503
    assert told(answer).startswith("NOT applied")
    assert "acknowledge" in buttons(answer)


async def test_a_link_that_does_not_work_says_nothing(door: Door) -> None:
    """Forged, unknown, of yesterday, of another incident, of somebody who left: one page, no detail."""
    path = await door.paged()
    now = door.pager.clock.now()
    incident = await door.pager.incident()
    unknown = door.links.url(10**9, incident.id, 1, now).removeprefix(PUBLIC_URL)
    nobody = await door.client.get("/answer/none")
    assert nobody.status == 404
    assert "This link does not work" in nobody.text

    async def refused(path: str) -> None:
        for method in ("GET", "POST"):
            answer = await door.client(method, path, data={"do": "resolve"} if method == "POST" else None)
            assert (answer.status, answer.text) == (404, nobody.text)

    for one in (unknown, path[:-1] + ("A" if path[-1] != "A" else "B"), path + "A", path.lower()):
        await refused(one)
    door.pager.clock.move(hours=24)
    await refused(path)
    assert await door.status() is IncidentStatus.TRIGGERED


async def test_a_link_of_somebody_who_left_does_not_work(door: Door) -> None:
    """At once, though it is not a day old."""
    path = await door.paged()
    alice = await door.pager.person("alice")
    assert alice.person_id is not None
    await door.pager.app.setup.deactivate(alice.person_id)
    assert (await door.press(path, "resolve", 1)).status == 404
    assert await door.status() is IncidentStatus.TRIGGERED


async def test_a_link_answers_its_own_incident_only(door: Door) -> None:
    """The form cannot name another one."""
    path = await door.paged()
    await door.pager.alert("db-2 is down")
    await door.client.post(path, data={"do": "resolve", "seen": "1", "incident": "2", "number": "2"})
    assert await door.status() is IncidentStatus.RESOLVED
    assert (await door.pager.incident(2)).status is IncidentStatus.TRIGGERED


@pytest.mark.parametrize(
    "fields", [{}, {"do": ""}, {"do": "snooze"}, {"do": "__init__"}, {"do": "escalate", "seen": "x"}]
)
async def test_an_odd_form_changes_nothing(door: Door, fields: dict[str, str]) -> None:
    """An unknown button, none at all, and one that saw nothing."""
    path = await door.paged()
    assert (await door.client.post(path, data=fields)).status == 200
    assert (await door.client.post(path, data=b"\xff\xfe")).status == 200
    assert await door.status() is IncidentStatus.TRIGGERED
    assert (await door.pager.incident()).level == 0


async def test_the_page_is_kept_and_indexed_nowhere_and_loads_nothing(door: Door) -> None:
    """No store, no index, no referrer, no script; the one style sheet is named by its hash."""
    shown = await door.client.get(await door.paged())
    assert shown.headers["Cache-Control"] == "no-store"
    assert shown.headers["Referrer-Policy"] == "no-referrer"
    assert "noindex" in shown.headers["X-Robots-Tag"]
    assert shown.headers["X-Content-Type-Options"] == "nosniff"
    sheet = re.search(r"<style>(.*?)</style>", shown.text, re.DOTALL)
    assert sheet is not None
    digest = base64.b64encode(hashlib.sha256(sheet[1].encode()).digest()).decode()
    policy = shown.headers["Content-Security-Policy"]
    assert f"style-src 'sha256-{digest}'" in policy
    for word in ("default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert word in policy
    assert "<script" not in shown.text
    assert 'name="viewport"' in shown.text
    assert "prefers-color-scheme: dark" in shown.text


async def test_no_token_is_logged(door: Door) -> None:
    """Neither when it works nor when it does not."""
    path = await door.paged()
    with capture_logs() as logs:
        await door.press(path, "acknowledge")
        await door.client.get(path + "x")
        await door.client.get(f"{path}?utm=1")
    assert path.rpartition("/")[2] not in str(logs)
    assert {entry.get("path") for entry in logs if "path" in entry} == {"/answer/•••", "/answer/•••?utm=1"}


def test_no_alert_adds_a_tag_or_a_link() -> None:
    """Every text is escaped, and `javascript:` becomes no link (S-28)."""
    evil = '<script>alert(1)</script>"><b>'
    links = (
        Link("javascript:alert(1)", evil),
        Link("data:text/html,x", "d"),
        Link('https://evil.example/"><b>', "bank.example"),
    )
    shown = view(
        title=evil,
        service=evil,
        raw_severity=evil,
        severity=None,
        acknowledged_by=evil,
        status=IncidentStatus.ACKNOWLEDGED,
        alerts=(alert(summary=evil, links=links),),
    )
    page = answer_page.incident_page(Shown(shown, evil, evil))
    assert "<script" not in page
    assert "<b>" not in page
    assert 'href="javascript' not in page
    assert 'href="data' not in page
    assert ">bank.example</a> (evil.example)" in page
    assert "javascript:alert(1)" in page


def test_what_no_document_can_hold_is_left_out() -> None:
    """Control characters and overrides of direction of an alert are gone from its page."""
    page = answer_page.incident_page(Shown(view(title="down\x00\x07\ud800 \u202enow", alerts=()), "ana"))
    assert "#42 FIRING: down now</h1>" in page
