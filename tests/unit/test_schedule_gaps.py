"""Gaps: when nobody will be on call and why, also where a clock change is what makes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings

from engine.schedule import Schedule, gaps, parse_schedule, people_at
from engine.schedule.skipped import Skipped
from tests.unit.test_schedule_laws import questions

EVERY_DAY = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
SPRING = datetime(2027, 3, 27, 12, tzinfo=UTC)  # in Berlin the night after it has no 02:00 to 03:00
TWO_DAYS = timedelta(days=2)


def layer(name: str, opens: str, closes: str, days: list[str] | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "users": [name],
        "start": "2027-01-01T00:00",
        "rotation": {"every": 1, "unit": "week"},
        "restrictions": [{"days": days or EVERY_DAY, "from": opens, "to": closes}],
    }


def berlin(*layers: dict[str, Any], **more: Any) -> Schedule:
    return parse_schedule({"timezone": "Europe/Berlin", "layers": list(layers), **more})


def test_a_gap_has_its_bounds_and_its_reason() -> None:
    """From the close of one window to the opening of the next nobody is on call, and why is said."""
    found = gaps(berlin(layer("days", "08:00", "18:00")), SPRING, SPRING + TWO_DAYS)
    assert [(f"{gap.start:%d %H:%M}", f"{gap.end:%d %H:%M}") for gap in found] == [
        ("27 17:00", "28 06:00"),
        ("28 16:00", "29 06:00"),
    ]
    assert found[0].reason == "layer days is outside its hours, and there is no fallback"
    assert found[0].skipped == ()


def test_a_window_that_the_clock_jumps_over_is_told_ahead_of_time() -> None:
    """Whoever is on call from two to three each night is not in the night without that hour."""
    found = gaps(berlin(layer("backup", "02:00", "03:00")), SPRING, SPRING + TWO_DAYS)
    opens = datetime.fromisoformat("2027-03-28T02:00")
    assert [gap.skipped for gap in found] == [(Skipped("backup", opens, opens + timedelta(hours=1)),), ()]
    usual = gaps(berlin(layer("backup", "02:00", "03:00")), SPRING - TWO_DAYS, SPRING)
    assert all(gap.skipped == () for gap in usual)


@pytest.mark.parametrize(
    ("opens", "closes"), [("02:00", "03:00"), ("02:30", "03:15"), ("02:30", "03:30"), ("02:15", "02:15")]
)
def test_each_way_to_lose_a_window_is_seen(opens: str, closes: str) -> None:
    """In the gap, from within it to its end or just after; a window of a whole day is only shorter."""
    (gap, *_) = gaps(berlin(layer("backup", opens, closes, ["sun"])), SPRING, SPRING + TWO_DAYS) or (None,)
    assert bool(gap and gap.skipped) is (opens != closes)


def test_a_lost_window_where_somebody_is_on_call_is_no_gap() -> None:
    """Neighbours meet, or a lower layer or the fallback takes it: nothing is missing."""
    window, rest = layer("backup", "02:00", "03:00"), layer("rest", "03:00", "02:00")
    assert gaps(berlin(window, rest), SPRING, SPRING + TWO_DAYS) == []
    assert gaps(berlin(window, fallback="ana"), SPRING, SPRING + TWO_DAYS) == []


def test_no_time_has_no_gaps() -> None:
    """A window that ends where it begins, or before, is asked about in vain."""
    assert gaps(berlin(), SPRING, SPRING) == []
    assert gaps(berlin(), SPRING + TWO_DAYS, SPRING) == []


@given(questions())
@settings(max_examples=50, deadline=None)
def test_gaps_are_exactly_when_nobody_is_on_call(question: tuple[Schedule, datetime, list[datetime]]) -> None:
    """At each instant asked about somebody is on call or it lies in one gap, which gives a reason."""
    schedule, _, instants = question
    found = gaps(schedule, instants[0], instants[-1])
    for t in instants[:-1]:
        around = [gap for gap in found if gap.start <= t < gap.end]
        assert bool(around) is (people_at(schedule, t) == ())
        assert all(gap.reason and not gap.reason.startswith("nobody") for gap in around)
