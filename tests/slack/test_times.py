"""Durations and wall clocks as people type them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from bot.slack.times import read_clock, read_length, read_span
from engine.errors import BadCommand

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)  # a Monday, 10:00 in Berlin
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("words", "minutes"),
    [
        ("2h", 120), ("90m", 90), ("1h30m", 90), ("2 hours", 120), ("1 hour 30 minutes", 90), ("45 min", 45),
        ("1.5h", 90), ("1d", 1440), ("2 days and 3 hours", 3060), ("1w", 10080), ("an hour", 60),
        ("half an hour", 30), ("a day", 1440),
    ],
)  # fmt: skip
def test_a_length(words: str, minutes: int) -> None:
    """A length in any of the usual spellings."""
    assert read_length(words) == timedelta(minutes=minutes)


@pytest.mark.parametrize(
    "words", ["", "2", "h", "yesterday", "2x", "2hx", "-2h", "2h foo", "am", "ah", "2 h -"]
)
def test_no_length(words: str) -> None:
    """What is no length is not made one."""
    assert read_length(words) is None


@pytest.mark.parametrize(
    ("words", "local"),
    [
        ("18:00", "2026-03-02 18:00"),
        ("9:30", "2026-03-03 09:30"),
        ("10:00", "2026-03-03 10:00"),
        ("6pm", "2026-03-02 18:00"),
        ("12am", "2026-03-03 00:00"),
        ("6:30 pm", "2026-03-02 18:30"),
        ("noon", "2026-03-02 12:00"),
        ("midnight", "2026-03-03 00:00"),
        ("tomorrow 9:00", "2026-03-03 09:00"),
        ("tomorrow at 09:00", "2026-03-03 09:00"),
        ("tonight 22:00", "2026-03-02 22:00"),
        ("fri 18:00", "2026-03-06 18:00"),
        ("friday, 18:00", "2026-03-06 18:00"),
        ("mon 9:00", "2026-03-09 09:00"),
        ("monday 11:00", "2026-03-02 11:00"),
        ("2026-03-29 02:30", "2026-03-29 03:30"),
        ("2026-07-01t18:00", "2026-07-01 18:00"),
        ("2026-07-01", "2026-07-01 00:00"),
    ],
)
def test_a_wall_clock(words: str, local: str) -> None:
    """The next time the wall shows this, in the asker's zone; a gap takes the offset before it."""
    found = read_clock(words, NOW, BERLIN)
    assert found is not None
    assert f"{found.astimezone(BERLIN):%Y-%m-%d %H:%M}" == local


@pytest.mark.parametrize(
    "words", ["", "18", "25:00", "18:60", "13pm", "0am", "2026-02-30 09:00", "soon", "tonight"]
)
def test_no_wall_clock(words: str) -> None:
    """A time that is none, or that could be several, is not guessed."""
    assert read_clock(words, NOW, BERLIN) is None


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [
        ("2h", "10:00", "12:00"),
        ("for 2 hours", "10:00", "12:00"),
        ("until 18:00", "10:00", "18:00"),
        ("to 18:00", "10:00", "18:00"),
        ("from 18:00 to 22:00", "18:00", "22:00"),
        ("18:00-22:00", "18:00", "22:00"),
        ("today 18:00 - 22:00", "18:00", "22:00"),
        ("from 18:00 for 2h", "18:00", "20:00"),
        ("18:00 2h", "18:00", "20:00"),
        ("22:00-02:00", "22:00", "02:00"),
    ],
)
def test_a_span(words: str, start: str, end: str) -> None:
    """From when until when, on the asker's wall clock."""
    span = read_span(words, NOW, BERLIN)
    assert span is not None
    assert (f"{span.start.astimezone(BERLIN):%H:%M}", f"{span.end.astimezone(BERLIN):%H:%M}") == (start, end)


def test_a_span_on_a_named_day() -> None:
    """A weekday holds for the start, and the end follows it."""
    span = read_span("fri 18:00-22:00", NOW, BERLIN)
    assert span is not None
    assert span.end - span.start == timedelta(hours=4)
    assert span.start.astimezone(BERLIN).date().isoformat() == "2026-03-06"


@pytest.mark.parametrize("words", ["until 2020-01-01", "today 08:00-09:00", "400 days", "0m", "999999w"])
def test_a_span_that_cannot_be_meant_is_refused(words: str) -> None:
    """What is over, empty or absurdly long is refused with a reason."""
    with pytest.raises(BadCommand):
        read_span(words, NOW, BERLIN)


@pytest.mark.parametrize("words", ["", "yesterday", "until", "until whenever", "from 18:00", "payments 2h"])
def test_no_span(words: str) -> None:
    """Words around a time are not swallowed."""
    assert read_span(words, NOW, BERLIN) is None
