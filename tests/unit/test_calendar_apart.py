"""A calendar of a stranger's is read where it can be stopped."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from engine.calendar.apart import read_apart
from engine.calendar.fetch import fetcher
from engine.calendar.read import read_calendar
from engine.errors import BadCalendar

BERLIN = ZoneInfo("Europe/Berlin")
A = datetime(2026, 3, 2, tzinfo=UTC)
B = A + timedelta(days=60)


def ics(rule: str) -> bytes:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", "UID:1", "SUMMARY:Änne"]
    lines += ["ATTENDEE:mailto:ana@example.com", "DTSTART:20260302T090000", "DURATION:PT8H", rule]
    return "\r\n".join([*lines, "END:VEVENT", "END:VCALENDAR", ""]).encode()


async def test_what_is_read_apart_is_what_is_read_here() -> None:
    body = ics("RRULE:FREQ=WEEKLY")
    assert await read_apart(body, A, B, BERLIN) == read_calendar(body, A, B, BERLIN)


@pytest.mark.parametrize("often", ["DAILY", "HOURLY"])
async def test_a_rule_that_never_comes_true_is_stopped(often: str) -> None:
    """Counted here it would take minutes, and the thread that counts could never be stopped."""
    reading = read_apart(ics(f"RRULE:FREQ={often};BYMONTH=2;BYMONTHDAY=30"), A, B, BERLIN, within_s=1.5)
    with pytest.raises(BadCalendar, match="too long"):
        await asyncio.wait_for(reading, 30)


@pytest.mark.parametrize("interval", ["0", "-1"])
async def test_a_rule_without_a_step_is_refused(interval: str) -> None:
    with pytest.raises(BadCalendar, match="repeats"):
        read_calendar(ics(f"RRULE:FREQ=DAILY;INTERVAL={interval}"), A, B, BERLIN)


async def test_what_is_no_calendar_is_refused_apart_too() -> None:
    with pytest.raises(BadCalendar):
        await read_apart(b"<html>", A, B, BERLIN)


HOSTS = ("127。0。0。1", "①②⑦.0.0.1", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]")


@pytest.mark.parametrize("host", HOSTS)
async def test_no_spelling_of_a_private_address_is_fetched(host: str) -> None:
    """What an address is written like is not what is connected to."""
    with pytest.raises(BadCalendar, match="private"):
        await fetcher(allow_private=False)(f"http://{host}:9/a.ics", None)


async def test_what_lies_where_midwatch_was_started_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of that folder may be called like a module that is needed."""
    (tmp_path / "icalendar.py").write_text("raise SystemExit(1)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert len((await read_apart(ics("RRULE:FREQ=WEEKLY"), A, B, BERLIN)).events) == 9
