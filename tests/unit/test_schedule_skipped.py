"""Hours that the clock jumps over: they are found ahead of time, and nothing else is."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from engine.schedule import parse_schedule
from engine.schedule.skipped import skipped_windows

YEAR = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def schedule(zone: str, opens: str, closes: str, **layer: Any) -> dict[str, Any]:
    return {
        "timezone": zone,
        "layers": [
            {
                "name": "night",
                "users": ["ana"],
                "start": "2000-01-01T00:00",
                "rotation": {"every": 1, "unit": "week"},
                "restrictions": [{"days": DAYS, "from": opens, "to": closes}],
            }
            | layer
        ],
        "overrides": [],
        "fallback": None,
    }


def found(raw: dict[str, Any], start: datetime = YEAR, days: int = 365) -> list[str]:
    return [
        f"{one.opens:%m-%d %H:%M}"
        for one in skipped_windows(parse_schedule(raw), start, start + timedelta(days))
    ]


@pytest.mark.parametrize(
    ("zone", "opens", "closes", "skipped"),
    [
        ("Europe/Berlin", "02:00", "03:00", ["03-29 02:00"]),
        ("Europe/Berlin", "02:15", "02:45", []),  # half an hour, an hour later
        ("Europe/Berlin", "02:30", "03:15", ["03-29 02:30"]),
        ("Europe/Berlin", "01:00", "03:00", []),
        ("America/New_York", "02:00", "03:00", ["03-08 02:00"]),
        ("Australia/Lord_Howe", "02:00", "02:30", ["10-04 02:00"]),
        ("Africa/Cairo", "00:00", "01:00", ["04-24 00:00"]),
        ("Asia/Kolkata", "02:00", "03:00", []),
        ("Europe/Berlin", "22:00", "06:00", []),
    ],
)
def test_a_window_in_the_jump_is_found(zone: str, opens: str, closes: str, skipped: list[str]) -> None:
    """In the night in which the clocks go ahead, once a year; where none go, never."""
    assert found(schedule(zone, opens, closes)) == skipped


def test_what_nobody_would_have_worked_is_no_loss() -> None:
    """A layer that has ended or not begun, has no people, or skips that day as a holiday."""
    for layer in ({"until": "2026-03-01T00:00"}, {"start": "2026-04-01T00:00"}, {"users": []}):
        assert found(schedule("Europe/Berlin", "02:00", "03:00", **layer)) == []
    off = schedule("Europe/Berlin", "02:00", "03:00", skip_holidays=True)
    off["holidays"] = [{"date": date(2026, 3, 29).isoformat(), "name": "a day off"}]
    assert found(off) == []
    off["layers"][0]["holidays"] = [{"date": "2026-12-25", "name": "another"}]
    assert found(off) == ["03-29 02:00"]  # its own holidays, and not the schedule's
    weekdays = [{"days": DAYS[:5], "from": "02:00", "to": "03:00"}]
    assert found(schedule("Europe/Berlin", "02:00", "03:00", restrictions=weekdays)) == []


def test_a_whole_day_that_there_was_not() -> None:
    """In Samoa there was no 30 December 2011; a window of 24 hours on it is empty."""
    raw = schedule("Pacific/Apia", "00:00", "00:00")
    assert found(raw, datetime(2011, 12, 20, tzinfo=UTC), 20) == ["12-30 00:00"]


def test_only_what_opens_in_the_question_is_answered() -> None:
    """From the first instant up to the last, half open."""
    at = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    raw = schedule("Europe/Berlin", "02:00", "03:00")
    assert found(raw, at, 1) == ["03-29 02:00"]
    assert found(raw, at - timedelta(days=1), 1) == []
