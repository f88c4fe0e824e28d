"""When a failed attempt is made again."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backoff import next_try
from engine.models import Retry

DOWN = Retry("provider is down")


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 30), (2, 60), (3, 120)])
def test_delays_double_and_are_spread_by_a_tenth(attempt: int, seconds: int) -> None:
    """Half a minute, one, two; ten per cent to both sides, and never more."""
    assert next_try(attempt, DOWN, 0) == timedelta(seconds=seconds)
    assert next_try(attempt, DOWN, 1) == next_try(attempt, DOWN, 5) == timedelta(seconds=seconds * 1.1)
    assert next_try(attempt, DOWN, -1) == next_try(attempt, DOWN, -5) == timedelta(seconds=seconds * 0.9)


@pytest.mark.parametrize("attempt", [4, 5, 1000])
def test_the_fourth_failure_is_the_last(attempt: int) -> None:
    """After three more tries it is dead, whatever the provider asks for."""
    assert next_try(attempt, Retry("later", timedelta(seconds=1)), 0) is None


@given(st.integers(1, 3), st.floats(-1, 1), st.timedeltas(timedelta(0), timedelta(hours=1)))
def test_a_wish_of_the_provider_makes_it_later_never_earlier(
    attempt: int, jitter: float, after: timedelta
) -> None:
    """The delay is the longer of ours and theirs."""
    delay = next_try(attempt, Retry("busy", after), jitter)
    usual = next_try(attempt, DOWN, jitter)
    assert delay is not None
    assert usual is not None
    assert delay == max(usual, after)
