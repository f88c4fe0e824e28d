"""What is left of an interval, and its halves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.parts import WORTH_HALVING, Part, halves, rest

BEGIN = datetime(2026, 3, 6, 18, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def part(start: int, end: int) -> Part:
    return Part(BEGIN + start * MINUTE, BEGIN + end * MINUTE)


parts = st.tuples(st.integers(-60, 300), st.integers(1, 120)).map(lambda drawn: part(drawn[0], sum(drawn)))


@given(st.lists(parts, max_size=6))
def test_every_minute_is_either_taken_or_left(taken: list[Part]) -> None:
    """A minute of the whole is left exactly if nobody took it, and what is left is maximal and in order."""
    whole = part(0, 240)
    left = rest(whole, taken)
    for minute in range(240):
        at = BEGIN + minute * MINUTE
        gone = any(one.start <= at < one.end for one in taken)
        assert gone is not any(one.start <= at < one.end for one in left)
    assert all(one.end < other.start for one, other in pairwise(left))


@given(parts)
def test_two_halves_are_the_whole(whole: Part) -> None:
    """They meet at a quarter of an hour, and what is short is not shared."""
    two = halves(whole)
    if whole.length < WORTH_HALVING:
        assert two is None
        return
    assert two is not None
    first, second = two
    assert (first.start, first.end, second.end) == (whole.start, second.start, whole.end)
    assert first.end.minute % 15 == 0
    assert abs(first.length - second.length) <= 15 * MINUTE
