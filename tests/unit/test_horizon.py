"""What a lane knows by heart: learned from looks that may be stale, and never worked twice for it."""

from __future__ import annotations

from datetime import timedelta

from engine.horizon import Known
from engine.models import ORG, Rank, Timer, TimerKind
from tests.fakes import START


def timer(one: int, due_in: float = 0.0, *, rank: Rank = Rank.PAGE, rev: int = 1) -> Timer:
    due_at = START + timedelta(seconds=due_in)
    return Timer(one, ORG, TimerKind.DELIVER, one, due_at, rank, 0, rev, 0)


def known(*timers: Timer) -> Known:
    made = Known()
    for one in timers:
        made.learn(one)
    return made


def ids(timers: list[Timer]) -> list[int]:
    return [one.id for one in timers]


def test_what_is_due_comes_by_rank_and_then_the_oldest_first() -> None:
    """A notice that has waited for a minute does not stand before a page; what is not due stays."""
    notice, late, now = timer(1, -60, rank=Rank.NOTICE), timer(2, -5), timer(3)
    made = known(timer(4, 1), now, notice, late)
    assert ids(made.take(START, 10)) == [2, 3, 1]
    assert made.next_due == START + timedelta(seconds=1)


def test_no_more_is_taken_than_there_is_room_for() -> None:
    """The rest stays known, in its order."""
    made = known(*(timer(n, -n) for n in range(1, 6)))
    assert ids(made.take(START, 2)) == [5, 4]
    assert len(made) == 3
    assert ids(made.take(START, 10)) == [3, 2, 1]


def test_what_is_in_hand_is_not_learned_again() -> None:
    """A look that sees a timer while it is being worked does not make it known twice."""
    made = known(timer(1))
    taken = made.take(START, 10)
    made.learn(timer(1))
    assert made.take(START, 10) == []
    made.put_down(taken)
    made.learn(timer(1))  # the look that was under way saw it before it was gone
    assert made.take(START, 10) == []


def test_the_next_look_finds_what_was_left() -> None:
    """What is still due when a look begins was not worked: it is learned anew."""
    made = known(timer(1))
    made.put_down(made.take(START, 10))
    made.look_begins()
    made.learn(timer(1))
    assert ids(made.take(START, 10)) == [1]


def test_armed_again_it_has_a_new_time() -> None:
    """The newest revision counts, also while the old one is in hand; the old time wakes nobody."""
    made = known(timer(1, 5))
    made.learn(timer(1, 2, rev=2))
    assert made.next_due == START + timedelta(seconds=2)
    made.learn(timer(1, 9, rev=3))
    assert made.next_due == START + timedelta(seconds=9)
    (taken,) = made.take(START + timedelta(seconds=10), 10)
    assert taken.rev == 3
    made.learn(timer(1, 11, rev=4))
    assert made.next_due == START + timedelta(seconds=11)


def test_after_a_failure_the_same_are_taken_again() -> None:
    """Nobody knows what became of them, so nobody waits for the next look."""
    made = known(timer(1), timer(2))
    made.put_back(made.take(START, 10))
    assert ids(made.take(START, 10)) == [1, 2]
