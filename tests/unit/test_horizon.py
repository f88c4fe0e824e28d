"""What a lane knows by heart: learned from looks that may be stale, and never worked twice for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.known import FAIR, PATIENCE, Known, Share
from engine.models import ORG, Rank, Timer, TimerKind
from engine.schema import EPOCH
from tests.fakes import START


def timer(one: int, due_in: float = 0.0, *, rank: Rank = Rank.PAGE, rev: int = 1) -> Timer:
    due_at = START + timedelta(seconds=due_in)
    return Timer(one, ORG, TimerKind.DELIVER, one, due_at, rank, 0, rev, 0)


def known(*timers: Timer) -> Known:
    made = Known()
    for one in timers:
        made.learn(one, START)
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
    made.learn(timer(1), START)
    assert made.take(START, 10) == []
    made.put_down(taken)
    made.learn(timer(1), START)  # the look that was under way saw it before it was gone
    assert made.take(START, 10) == []


def test_the_next_look_finds_what_was_left() -> None:
    """What is still due when a look begins was not worked: it is learned anew."""
    made = known(timer(1))
    made.put_down(made.take(START, 10))
    made.look_begins()
    made.learn(timer(1), START)
    assert ids(made.take(START, 10)) == [1]


def test_armed_again_it_has_a_new_time() -> None:
    """The newest revision counts, also while the old one is in hand; the old time wakes nobody."""
    made = known(timer(1, 5))
    made.learn(timer(1, 2, rev=2), START)
    assert made.next_due == START + timedelta(seconds=2)
    made.learn(timer(1, 9, rev=3), START)
    assert made.next_due == START + timedelta(seconds=9)
    (taken,) = made.take(START + timedelta(seconds=10), 10)
    assert taken.rev == 3
    made.learn(timer(1, 11, rev=4), START)
    assert made.next_due == START + timedelta(seconds=11)


def test_after_a_failure_the_same_are_taken_again() -> None:
    """Nobody knows what became of them, so nobody waits for the next look."""
    made = known(timer(1), timer(2))
    made.put_back(made.take(START, 10))
    assert ids(made.take(START, 10)) == [1, 2]


def test_what_a_look_does_not_find_any_more_is_forgotten() -> None:
    """Only in the part of the queue that it read; what is in hand stays there."""
    made = known(timer(1, -3), timer(2, -2), timer(3, -1), timer(4, -2, rank=Rank.NOTICE))
    (first,) = made.take(START, 1)
    made.forget(Rank.PAGE, (EPOCH, 0), (timer(2, -2).due_at, 2), set())
    assert ids(made.take(START, 10)) == [3, 4]
    made.put_back([first])
    assert ids(made.take(START, 10)) == [1]


# --- shares ------------------------------------------------------------------------------------------------


def theirs(share: Share, count: int = 1) -> list[int]:
    """The first ids that are not in this share."""
    return [one for one in range(1, 100) if not share.has(one)][:count]


def test_who_works_what_is_late_is_behind() -> None:
    """Late timers of ours count until they are worked, in hand too; those of others do not count."""
    made = known(timer(1))
    late = START + PATIENCE
    assert (made.is_behind(START), made.is_behind(late)) == (False, True)
    taken = made.take(late, 10)
    assert made.is_behind(late)
    made.put_down(taken)
    assert not made.is_behind(late)
    made.learn(timer(1, rev=2), late)
    made.share = Share(1 - Share(0, 2).index_of(1), 2)
    assert not made.is_behind(late)


def test_shares_leave_out_nothing_and_overlap_nowhere() -> None:
    """Each timer is of one share, also when ids come in steps, and shares are alike in size."""
    for of in (1, 2, 3, 4):
        shares = [Share(index, of) for index in range(of)]
        for step in (1, 2, 3, 4):
            sizes = [sum(share.has(step * n) for n in range(4_000)) for share in shares]
            assert sum(sizes) == 4_000
            assert min(sizes) > 0.9 * 4_000 / of


def test_a_timer_of_another_share_is_left_alone_until_it_is_overdue() -> None:
    """Nobody wakes for it; a moment after it was due we look again, and take it if it is still there."""
    share = Share(0, 2)
    (one,) = theirs(share)
    made = Known()
    made.share = share
    made.learn(timer(one), START)
    assert (made.next_due, made.take(START + 2 * PATIENCE, 10)) == (None, [])
    assert made.doubt_at is not None
    assert START + PATIENCE <= made.doubt_at < START + 2 * PATIENCE
    made.learn(timer(one), made.doubt_at)
    made.doubts_end(made.doubt_at)
    assert ids(made.take(START + 2 * PATIENCE, 10)) == [one]
    assert made.doubt_at is None


def test_whoever_is_behind_takes_its_own_first() -> None:
    """Others may have theirs in hand; what is late by a second comes in line, and a page before notices."""
    share, late = Share(0, 2), START + 2 * PATIENCE
    other, page, old = theirs(share, 3)
    own = next(n for n in range(1, 100) if share.has(n))
    made = Known()
    made.share = share
    notice = timer(own, rank=Rank.NOTICE)
    for one in (notice, timer(other, rank=Rank.NOTICE), timer(page)):
        made.learn(one, late)
    made.learn(replace(timer(old, rank=Rank.NOTICE), due_at=late - FAIR), late)
    taken = made.take(late, 10)
    assert ids(taken) == [page, old, own]
    made.put_down(taken)
    assert ids(made.take(late, 10)) == [other]


@dataclass
class Hand:
    """One worker: what it knows, and the share it believes in."""

    known: Known = field(default_factory=Known)
    look_at: datetime = START
    alive: bool = True

    def look(self, rows: dict[int, Timer], now: datetime, few: int) -> None:
        until = now + timedelta(seconds=3)
        found = sorted((t for t in rows.values() if t.due_at <= until), key=lambda t: (t.due_at, t.id))[:few]
        end = (found[-1].due_at, found[-1].id) if len(found) == few else (until, 10**9)
        self.known.look_begins()
        self.known.forget(Rank.PAGE, (EPOCH, 0), end, {t.id for t in found})
        for one in found:
            self.known.learn(one, now)
        self.known.doubts_end(now)
        self.look_at = now + timedelta(seconds=1)

    def live(self, rows: dict[int, Timer], now: datetime, few: int) -> list[Timer]:
        """What it works now; the row decides, as always."""
        doubt = self.known.doubt_at
        if self.look_at <= now or (doubt is not None and doubt <= now):
            self.look(rows, now, few)
        taken = self.known.take(now, 2)
        worked = [one for one in taken if rows.get(one.id) == one]
        for one in worked:
            del rows[one.id]
        self.known.put_down(taken)
        return worked


shares = st.builds(lambda index, of: Share(index % of, of), st.integers(0, 3), st.integers(1, 4))
moves = st.one_of(
    st.tuples(st.just("arm"), st.integers(1, 6), st.integers(-500, 4_000)),
    st.tuples(st.just("pass"), st.just(0), st.integers(1, 1_500)),
    st.tuples(st.just("share"), st.integers(0, 2), shares),
    st.tuples(st.just("die"), st.integers(1, 2), st.just(0)),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(moves, max_size=25), st.integers(2, 6))
def test_a_wrong_count_of_workers_loses_no_timer(
    played: Sequence[tuple[str, int, int | Share]], few: int
) -> None:
    """Whatever each believes, whoever dies, however small a slice: the one that is left works everything, and
    nothing before its time."""
    hands, rows, now, rev = [Hand(), Hand(), Hand()], dict[int, Timer](), START, 0
    for kind, which, value in played:
        if kind == "arm" and isinstance(value, int):
            rev += 1
            rows[which] = replace(timer(which, rev=rev), due_at=now + timedelta(milliseconds=value))
        elif kind == "share" and isinstance(value, Share):
            hands[which].known.share = value
        elif kind == "die":
            hands[which].alive = False
        elif isinstance(value, int):
            now += timedelta(milliseconds=value)
        for hand in (one for one in hands if one.alive):
            assert all(one.due_at <= now for one in hand.live(rows, now, few))
    armed, began = {*rows}, now
    worked: list[int] = []
    while rows and now - began < timedelta(seconds=15):
        now += timedelta(milliseconds=20)
        worked += ids(hands[0].live(rows, now, few))
    assert sorted(worked) == sorted(armed)


@settings(deadline=None, max_examples=60)
@given(shares, st.lists(st.integers(0, 2_000), min_size=1, max_size=20))
def test_what_the_others_left_is_late_by_a_moment(share: Share, dues: Sequence[int]) -> None:
    """A worker that is alone, and does not know it, works each timer within two moments."""
    hand, now = Hand(), START
    hand.known.share = share
    rows = {n: timer(n, due / 1_000) for n, due in enumerate(dues)}
    step, late = timedelta(milliseconds=10), timedelta()
    while rows:
        late = max([late, *(now - one.due_at for one in hand.live(rows, now, 100))])
        now += step
    assert late <= 2 * PATIENCE + len(dues) * step
