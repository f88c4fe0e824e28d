"""`midwatch calendar` on a configured install: links made, listed and revoked, a calendar followed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.scenario.test_setup_commands import Terminal, configured, terminal

__all__ = ["configured", "terminal"]  # the fixtures of the command line

BODY = (
    b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART:20200101T000000Z\r\n"
    b"DTEND:20400101T000000Z\r\nSUMMARY:cho\r\nEND:VEVENT\r\nBEGIN:VEVENT\r\nUID:2\r\n"
    b"DTSTART:20200101T000000Z\r\nDTEND:20400101T000000Z\r\nSUMMARY:Team lunch\r\n"
    b"END:VEVENT\r\nEND:VCALENDAR\r\n"
)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/team.ics"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_link_is_made_listed_and_revoked(configured: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each link that is made here stands beside the others, and is shown once."""
    monkeypatch.setenv("MIDWATCH_PUBLIC_URL", "https://pager.example.com")
    first = configured("calendar", "link", "--schedule", "payments-primary")
    second = configured.json("calendar", "link", "--person", "@ana")["url"]
    assert first.startswith("https://pager.example.com/calendar/mwc_")
    listed = configured("calendar", "list")
    assert first.strip() not in listed
    assert second not in listed
    assert "schedule payments-primary" in listed
    assert configured("calendar", "revoke", "1") == "Link 1 opens nothing any more.\n"
    assert [one["id"] for one in configured.json("calendar", "list")["links"]] == [2]


def test_what_cannot_be_linked_is_a_sentence(configured: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """No public URL, neither or both, nobody of that name, no such link."""
    configured("calendar", "link", "--person", "ana")
    assert (configured.code, "MIDWATCH_PUBLIC_URL" in configured.errors) == (2, True)
    monkeypatch.setenv("MIDWATCH_PUBLIC_URL", "https://pager.example.com")
    configured("calendar", "link")
    assert (configured.code, "Name one of them" in configured.errors) == (2, True)
    configured("calendar", "link", "--person", "anna")
    assert (configured.code, "ana" in configured.errors) == (1, True)
    configured("calendar", "revoke", "7")
    assert (configured.code, "no link 7" in configured.errors) == (1, True)


def test_a_calendar_is_followed_and_left(
    configured: Terminal, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """Whom it names is on call; a private address only where that is allowed."""
    configured("calendar", "follow", "payments-primary", url)
    assert (configured.code, "its address is private" in configured.errors) == (2, True)
    monkeypatch.setenv("MIDWATCH_CALENDAR_PRIVATE", "1")
    said = configured("calendar", "follow", "payments-primary", url)
    assert "1 shifts of it were read" in said
    assert "'Team lunch' names nobody here" in said
    assert configured.json("who", "payments-primary")[0]["people"] == ["cho"]
    assert "payments-primary" in configured("calendar", "list")
    assert "any more" in configured("calendar", "unfollow", "payments-primary")
    assert configured.json("who", "payments-primary")[0]["people"] != ["cho"]
