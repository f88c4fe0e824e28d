"""The pace of messages: one interval between two starts, first come first served, nobody starves."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.notify import pacing
from engine.notify.pacing import Pace

NOW = datetime(2026, 11, 5, 14, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_the_first_message_starts_at_once_and_the_others_in_turn() -> None:
    """Three messages to one channel start a second apart, another channel's starts now."""
    pace = Pace(SECOND)
    assert [pace.admit("#payments", NOW, n) for n in (1, 2, 3)] == [NOW, NOW + SECOND, NOW + 2 * SECOND]
    assert pace.admit("#search", NOW, 4) == NOW


def test_who_waited_keeps_its_place() -> None:
    """A message that comes back for its place starts then, before one that came later."""
    pace = Pace(SECOND)
    pace.admit("#payments", NOW, 1)
    place = pace.admit("#payments", NOW, 2)
    assert pace.admit("#payments", NOW + SECOND / 2, 3) == NOW + 2 * SECOND
    assert pace.admit("#payments", place, 2) == place


def test_an_idle_line_costs_nothing() -> None:
    """After a pause the next message starts at once, though places were given and never used."""
    pace = Pace(SECOND)
    for holder in range(5):
        pace.admit("#payments", NOW, holder)
    later = NOW + timedelta(minutes=1)
    assert pace.admit("#payments", later, 99) == later


def test_a_throttle_moves_the_whole_line() -> None:
    """After `Retry-After: 7` nobody of that channel starts for 7 s, then everyone in the old order."""
    pace = Pace(SECOND)
    for holder in (1, 2, 3):
        pace.admit("#payments", NOW, holder)
    until = NOW + 7 * SECOND
    pace.hold("#payments", until)
    assert pace.admit("#payments", NOW + SECOND, 2) == until
    assert pace.admit("#payments", NOW + 2 * SECOND, 3) == until + SECOND
    assert pace.admit("#payments", until, 2) == until


def test_whoever_never_came_back_moves_nobody() -> None:
    """A place that was given to a page which was cancelled does not stretch a throttle hours later."""
    pace = Pace(SECOND)
    assert [pace.admit("ana", NOW, n) for n in (1, 2)] == [NOW, NOW + SECOND]  # 2 is never sent
    later = NOW + timedelta(hours=3)
    assert pace.admit("ana", later, 3) == later
    pace.hold("ana", later + 20 * SECOND)
    assert pace.admit("ana", later, 4) <= later + 22 * SECOND


def test_a_throttle_of_an_unknown_line_holds_too() -> None:
    """The first that is heard of a channel may be a throttle of another process's message."""
    pace = Pace(SECOND)
    pace.hold("#payments", NOW + 7 * SECOND)
    assert pace.admit("#payments", NOW, 1) == NOW + 7 * SECOND


def test_a_clock_that_is_set_back_holds_nothing() -> None:
    """An hour back: the next message starts now, not in an hour."""
    pace = Pace(SECOND)
    pace.admit("#payments", NOW, 1)
    earlier = NOW - timedelta(hours=1)
    assert pace.admit("#payments", earlier, 2) == earlier


def test_it_stays_small() -> None:
    """A million channels and a crowd in one line do not fill the memory."""
    pace = Pace(SECOND)
    for n in range(pacing.MAX_LINES + 10):
        pace.admit(f"#{n}", NOW + n * SECOND, n)
    for holder in range(pacing.MAX_PLACES + 10):
        pace.admit("#crowd", NOW + 20_000 * SECOND, holder)
    assert len(pace._lines) <= pacing.MAX_LINES + 1
    assert len(pace._lines["#crowd"].places) == pacing.MAX_PLACES


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=40))
def test_no_two_starts_are_closer_than_the_interval(arrivals: list[int]) -> None:
    """However they arrive, and coming back when told, all start, each a second after the last."""
    pace = Pace(SECOND)
    waiting = sorted((NOW + timedelta(milliseconds=at), holder) for holder, at in enumerate(arrivals))
    starts: list[datetime] = []
    rounds = 0
    while waiting:
        at, holder = waiting.pop(0)
        admitted = pace.admit("#payments", at, holder)
        if admitted == at:
            starts.append(at)
        else:
            waiting = sorted([*waiting, (admitted, holder)])
        rounds += 1
    assert rounds <= 2 * len(arrivals)
    assert all(b - a >= SECOND for a, b in itertools.pairwise(starts))
