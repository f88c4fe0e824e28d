"""Who may start on a line, and whose place is when: urgency, then age, and never faster than its pace."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.models import Delivery, DeliveryKind, DeliveryStatus, Method
from engine.notify.paces import Asking, Pace, Paces, admit, held, is_spent
from engine.store.paces import FRESH

NOW = datetime(2026, 11, 5, 14, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
STRICT = Pace(SECOND)


def new(one: int, *, high: bool = False, since: datetime = NOW) -> Asking:
    return Asking((one,), high=high, waited=False, since=since)


def back(one: int, *, high: bool = False, since: datetime = NOW) -> Asking:
    return Asking((one,), high=high, waited=True, since=since)


def seconds(places: dict[int, datetime], now: datetime = NOW) -> dict[int, float]:
    return {one: (at - now).total_seconds() for one, at in places.items()}


def test_the_first_starts_at_once_and_the_others_in_turn() -> None:
    """Three at once start a second apart, the oldest first."""
    asking = [new(1, since=NOW - SECOND), new(2, since=NOW - 3 * SECOND), new(3, since=NOW - 2 * SECOND)]
    line, places = admit(FRESH, asking, NOW, STRICT)
    assert seconds(places) == {2: 0, 3: 1, 1: 2}
    assert line.free_at == NOW + SECOND


def test_who_came_back_starts_before_who_came_later() -> None:
    """At its place it starts, and whoever came meanwhile has the place behind all others."""
    line, places = admit(FRESH, [new(1), new(2), new(3)], NOW, STRICT)
    place = places[2]
    line, places = admit(line, [new(4, since=place), back(2)], place, STRICT)
    assert places[2] == place
    assert seconds(places)[4] == 3


def test_a_new_page_of_high_urgency_passes_the_queue() -> None:
    """Ten thousand wait: it starts at once, and who would have started then comes next."""
    line, _ = admit(FRESH, [new(n) for n in range(10_000)], NOW, STRICT)
    now = NOW + SECOND / 2
    line, places = admit(line, [new(10_001, high=True, since=now)], now, STRICT)
    assert places[10_001] == now
    _, places = admit(line, [back(1)], NOW + SECOND, STRICT)
    assert places[1] == NOW + 2 * SECOND


def test_who_passes_leaves_half_of_the_pace_to_those_who_wait() -> None:
    """Pages of high urgency that keep coming do not keep one that waits from ever starting."""
    line, places = admit(FRESH, [new(0, high=True), new(1, high=True)], NOW, STRICT)
    waits_until, now, started = places[1], NOW, []
    for n in range(2, 60):
        now += SECOND / 4
        asking = [new(n, high=True, since=now)] + ([back(1, high=True)] if now >= waits_until else [])
        line, places = admit(line, asking, now, STRICT)
        waits_until = places.get(1, waits_until)
        started += [one for one, at in places.items() if at == now]
        if 1 in started:
            break
    assert 1 in started
    assert now <= NOW + 4 * SECOND


def test_low_urgency_gives_way() -> None:
    """What is of high urgency has the next places, what is of low urgency those behind."""
    line, _ = admit(FRESH, [new(0, high=True)], NOW, STRICT)
    _, places = admit(line, [new(1), new(2, high=True), new(3, high=True), new(4, high=True)], NOW, STRICT)
    at = seconds(places)
    assert at[2] == 0  # passes
    assert at[3] < at[4] < at[1]


def test_what_goes_in_one_message_counts_once() -> None:
    """Fifty incidents for one telephone are one text, and all of them start with it."""
    line, places = admit(FRESH, [Asking(tuple(range(50)), high=False, waited=False, since=NOW)], NOW, STRICT)
    assert {*places.values()} == {NOW}
    assert line.free_at == NOW + SECOND


def test_after_a_pause_a_few_start_together() -> None:
    """A burst, and from then on the pace; a pause of hours makes it no longer."""
    pace = Pace(SECOND, burst=3)
    later = NOW + timedelta(hours=3)
    _, places = admit(FRESH, [new(n, since=later) for n in range(5)], later, pace)
    assert [*seconds(places, later).values()] == [0, 0, 0, 1, 2]


def test_a_throttle_holds_the_line_and_high_urgency_too() -> None:
    """Retry-After: 7 is seven seconds for everybody there, in the old order (F-41)."""
    line, _ = admit(FRESH, [new(1), new(2), new(3)], NOW, STRICT)
    line = held(line, NOW + 7 * SECOND)
    now = NOW + SECOND
    line, places = admit(line, [back(2, since=NOW), new(4, high=True, since=now)], now, STRICT)
    assert places[2] >= NOW + 7 * SECOND
    assert places[4] == NOW + 7 * SECOND
    until = NOW + 7 * SECOND
    _, places = admit(line, [back(4, high=True), back(2), back(3)], until, STRICT)
    assert [at for _, at in sorted(seconds(places, until).items())] == [1, 2, 0]


def test_a_shorter_throttle_shortens_none() -> None:
    """Of two that overlap the later end counts."""
    assert held(held(FRESH, NOW + 9 * SECOND), NOW + 2 * SECOND).held_until == NOW + 9 * SECOND


def test_a_clock_that_is_set_back_holds_nothing() -> None:
    """An hour back: the next message starts now, not in an hour; so after a throttle too."""
    line, _ = admit(FRESH, [new(1)], NOW, STRICT)
    earlier = NOW - timedelta(hours=1)
    for one in (line, held(line, NOW + 7 * SECOND)):
        _, places = admit(one, [new(2, since=earlier)], earlier, STRICT)
        assert places[2] == earlier


def test_a_line_is_a_channel_in_slack_and_a_sender_by_telephone() -> None:
    """A second between two messages to one person in Slack; all SMS share our number's pace."""
    paces = Paces.per_second(sms=2, calls=1)

    def delivery(method: Method, person: int) -> Delivery:
        return Delivery(
            id=person,
            org_id=1,
            incident_id=7,
            kind=DeliveryKind.PAGE,
            method=method,
            person_id=person,
            method_id=None,
            address=None,
            round=1,
            pass_=0,
            level=0,
            step=0,
            status=DeliveryStatus.QUEUED,
            idem_key="k",
            due_at=NOW,
            created_at=NOW,
            attempts=0,
            reason="",
            provider="",
            provider_ref="",
            body={},
            sent_at=None,
            ended_at=None,
        )

    lines = [paces.line_of(delivery(method, n)) for method in (Method.SLACK, Method.SMS) for n in (1, 2)]
    assert lines == ["slack:1", "slack:2", "sms", "sms"]
    assert paces.line_of(delivery(Method.EMAIL, 1)) is None
    assert (paces.pace_of("sms").interval, paces.pace_of("slack:1")) == (SECOND / 2, Pace(SECOND))


def run(arrivals: Sequence[tuple[int, bool]], pace: Pace) -> list[tuple[datetime, int]]:
    """Let them all come, and come back when they are told; (start, who)."""
    line, starts = FRESH, []
    waiting = {n: (NOW + timedelta(milliseconds=at), False) for n, (at, _) in enumerate(arrivals)}
    while waiting:
        now = min(at for at, _ in waiting.values())
        asking = [
            Asking((n,), arrivals[n][1], waited, NOW + timedelta(milliseconds=arrivals[n][0]))
            for n, (at, waited) in waiting.items()
            if at <= now
        ]
        line, places = admit(line, asking, now, pace)
        for n, at in places.items():
            if at <= now:
                starts.append((now, n))
                del waiting[n]
            else:
                waiting[n] = (at, True)
    return starts


@given(st.lists(st.tuples(st.integers(0, 5_000), st.booleans()), min_size=1, max_size=40), st.integers(1, 4))
def test_no_span_holds_more_than_its_share(arrivals: list[tuple[int, bool]], burst: int) -> None:
    """However they arrive all start, and no stretch of time has more than its pace, the burst, and the one
    that passes."""
    starts = run(arrivals, Pace(SECOND, burst))
    assert sorted(n for _, n in starts) == [*range(len(arrivals))]
    times = [at for at, _ in starts]
    for i, first in enumerate(times):
        for j in range(i, len(times)):
            assert j - i <= (times[j] - first) / SECOND + burst


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=40, unique=True))
def test_alike_in_urgency_they_start_by_age(arrivals: list[int]) -> None:
    """Of low urgency nobody is overtaken."""
    starts = run([(at, False) for at in sorted(arrivals)], STRICT)
    assert [n for _, n in starts] == [*range(len(arrivals))]


def test_a_days_messages_are_counted_over_its_whole_day_and_no_longer() -> None:
    """Each start counts, also after the clock was set back; midnight in UTC begins anew."""
    pace, line, now = Pace(SECOND, per_day=3), FRESH, NOW
    for number in range(3):
        assert not is_spent(line, now, pace)
        line, places = admit(line, [new(number)], now, pace)
        assert seconds(places, now) == {number: 0}
        now += SECOND
    assert is_spent(line, now, pace)
    line, _ = admit(line, [new(3)], NOW - timedelta(hours=1), pace)
    assert (line.begun, is_spent(line, NOW, pace)) == (4, True)
    assert not is_spent(line, NOW.replace(hour=0) + timedelta(days=1), pace)
    assert not is_spent(line, NOW, STRICT), "without a limit nothing is ever spent"
