"""Stretches of time in words: every message says them in the same way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from engine.clockwords import between, span

FRIDAY = datetime(2026, 3, 6, 18, tzinfo=UTC)


@pytest.mark.parametrize(
    ("lasting", "said"),
    [
        (timedelta(hours=4), "Fri 06 Mar 18:00 to 22:00"),
        (timedelta(hours=6), "Fri 06 Mar 18:00 to Sat 00:00"),
        (timedelta(days=2, hours=15), "Fri 06 Mar 18:00 to Mon 09:00"),
        (timedelta(days=6), "Fri 06 Mar 18:00 to Thu 12 Mar 18:00"),
        (timedelta(days=365), "Fri 06 Mar 18:00 to Sat 06 Mar 18:00"),
    ],
)
def test_no_more_of_the_end_is_said_than_it_takes(lasting: timedelta, said: str) -> None:
    """The clock on the same day, the weekday within a week, the date beyond that."""
    assert span(FRIDAY, FRIDAY + lasting, "UTC") == said


def test_the_reader_s_own_clock_says_whether_it_is_the_same_day() -> None:
    """What crosses midnight in one zone does not in another, and each says its zone."""
    end = FRIDAY + timedelta(hours=4)
    assert between(FRIDAY, end, "Asia/Tokyo") == "Sat 07 Mar 03:00 to 07:00 Asia/Tokyo"
    assert between(FRIDAY, end, "Africa/Nairobi") == "Fri 06 Mar 21:00 to Sat 01:00 Africa/Nairobi"


def test_what_has_no_end_is_open() -> None:
    """A shift that nothing ends names only its beginning."""
    assert between(FRIDAY, None, "UTC") == "from Fri 06 Mar 18:00 UTC on"
