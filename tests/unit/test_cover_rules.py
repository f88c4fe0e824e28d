"""The rules of cover: until when one waits, in which order people are asked, and what may be taken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from engine.parts import Part
from engine.rota.cover_rules import ends_at, head_start, takeable

NOW = datetime(2026, 3, 6, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def part(start: float, end: float) -> Part:
    return Part(NOW + start * HOUR, NOW + end * HOUR)


@pytest.mark.parametrize(
    ("whole", "hours"),
    [
        (part(48, 52), 47),  # an hour before the shift there is time to ask somebody by phone
        (part(1, 5), 0.5),  # half of the time that is left
        (part(-1, 5), 0.25),  # on already: a quarter of an hour
        (part(-1, 0.2), 0.1),  # or half of what is left of it
    ],
)
def test_the_asker_is_warned_before_the_shift(whole: Part, hours: float) -> None:
    """A request ends while the asker can still do something."""
    assert ends_at(NOW, whole) == NOW + hours * HOUR


@pytest.mark.parametrize("people", [1, 2, 7, 60])
@pytest.mark.parametrize("start", [-1, 0.5, 2, 3, 12, 500])
def test_everybody_is_asked_in_the_first_half_of_the_time(people: int, start: float) -> None:
    """The head start shrinks with the crowd and with the time; near the shift there is none."""
    whole = part(start, start + 4)
    gap = head_start(NOW, whole, people)
    assert NOW + people * gap <= NOW + (ends_at(NOW, whole) - NOW) / 2
    assert gap <= timedelta(minutes=10)
    assert (gap == timedelta()) is (start < 2)


def test_only_what_is_free_is_taken() -> None:
    """All means all that is left; a part must lie in it whole; what is over is left out."""
    left = [part(1, 2), part(4, 6)]
    assert takeable(left, None, NOW) == tuple(left)
    assert takeable(left, part(4, 5), NOW) == (part(4, 5),)
    assert takeable(left, part(3, 5), NOW) == ()
    assert takeable(left, part(1, 6), NOW) == ()
    assert takeable([part(-2, 1), part(-4, -3)], None, NOW) == (part(0, 1),)
    assert takeable([part(-2, 1)], part(-2, 1), NOW) == (part(0, 1),)
    assert takeable([part(-2, 1)], part(-2, -1), NOW) == ()
