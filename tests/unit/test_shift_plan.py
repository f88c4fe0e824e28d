"""What is due of a schedule's shifts at an instant, as a pure function of what was told last."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.rota.shift_plan import Due, Plan, Reminder, Told, plan
from engine.schedule import (
    OverrideKind,
    Schedule,
    ScheduleOverride,
    parse_schedule,
    shifts,
    with_overrides,
)

MONDAY = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ANA, BEN, CHO = 1, 2, 3


def schedule(*users: int | list[int], every: int = 1, unit: str = "week", **layer: Any) -> Schedule:
    turns = [str(one) if isinstance(one, int) else [str(each) for each in one] for one in users]
    plain = {
        "name": "all",
        "users": turns,
        "start": "2026-01-05T09:00",
        "rotation": {"every": every, "unit": unit},
        **layer,
    }
    return parse_schedule({"timezone": "UTC", "layers": [plain]})


def told(at: datetime, *people: int) -> Told:
    return Told(frozenset(people), at)


def said(found: Plan) -> set[tuple[str, int]]:
    return {(due.kind.value, due.person) for due in found.reminders}


def walk(of: Schedule, start: datetime, end: datetime) -> Iterator[tuple[datetime, Plan]]:
    """From one look to the next, as the timer does."""
    at, last = start, None
    while at <= end:
        found = plan(of, last, at)
        yield at, found
        assert found.again_at > at
        at, last = found.again_at, found.told


def test_a_week_of_reminders_in_their_order() -> None:
    """Each is due to the instant: a day before, an hour before, at the start; the end of the other's."""
    heard = [
        (at, due.kind, due.person)
        for at, found in walk(schedule(BEN, ANA), MONDAY, MONDAY + 8 * DAY)
        for due in found.reminders
    ]
    change = MONDAY + 7 * DAY
    assert heard == [
        (change - DAY, Reminder.DAY, ANA),
        (change - HOUR, Reminder.HOUR, ANA),
        (change, Reminder.START, ANA),
        (change, Reminder.END, BEN),
    ]


def test_the_first_look_announces_nothing() -> None:
    """A schedule that was just written, or an upgrade, tells nobody what is so already."""
    found = plan(schedule(BEN, ANA), None, MONDAY + 7 * DAY - HOUR / 2)
    assert (found.reminders, found.handing) == ((), None)
    assert found.told.people == {BEN}


def test_a_shift_says_how_long_it_lasts() -> None:
    """To the end of the person's time, not to the next change of somebody else's."""
    of = with_overrides(
        schedule(BEN, ANA),
        [ScheduleOverride(OverrideKind.ADD, str(CHO), MONDAY + 8 * DAY, MONDAY + 9 * DAY)],
    )
    found = plan(of, told(MONDAY + 6 * DAY - HOUR, BEN), MONDAY + 6 * DAY)
    assert found.reminders == (Due(Reminder.DAY, ANA, MONDAY + 7 * DAY, MONDAY + 14 * DAY),)


def test_late_over_four_changes_it_is_one_handoff() -> None:
    """Down for days of a daily rotation: who is on call now takes over from who was on call then."""
    found = plan(schedule(ANA, BEN, CHO, unit="day"), told(MONDAY, CHO), MONDAY + 4 * DAY + HOUR / 2)
    assert found.handing is not None
    assert found.handing.at == MONDAY + 4 * DAY
    assert (set(found.handing.came), set(found.handing.left)) == ({ANA}, {CHO})
    assert said(found) == {("start", ANA), ("end", CHO), ("day", BEN)}


def test_down_over_a_shift_of_somebody_else_nothing_is_handed_over() -> None:
    """Whoever is on call again was on call before we fell asleep, and takes over from nobody."""
    found = plan(schedule(ANA, BEN, unit="day"), told(MONDAY, ANA), MONDAY + 2 * DAY)
    assert found.handing is None
    assert said(found) == {("day", BEN)}


@pytest.mark.parametrize(
    ("late", "expected"),
    [
        (timedelta(), {("day", ANA)}),
        (10 * HOUR, {("day", ANA)}),  # late, and still worth something
        (23 * HOUR, {("hour", ANA)}),  # the nearer one says the same
        (23.9 * HOUR, {("hour", ANA)}),
        (24 * HOUR, {("start", ANA), ("end", BEN)}),  # past its sense
        (24.9 * HOUR, {("start", ANA), ("end", BEN)}),
        (27 * HOUR, {("start", ANA)}),  # nobody needs to hear that their shift ended long ago
    ],
)
def test_a_late_look_says_what_still_makes_sense(late: timedelta, expected: set[tuple[str, int]]) -> None:
    """One message of each kind of news, whatever piled up."""
    due = MONDAY + 6 * DAY
    assert said(plan(schedule(BEN, ANA), told(due - HOUR, BEN), due + late)) == expected


def test_whom_the_lead_finds_on_call_is_not_reminded() -> None:
    """Alone with office hours one is told each morning, and a day ahead only over the weekend."""
    hours = [{"days": ["mon", "tue", "wed", "thu", "fri"], "from": "09:00", "to": "17:00"}]
    heard = [
        (at, due.kind)
        for at, found in walk(schedule(ANA, restrictions=hours), MONDAY - HOUR * 2, MONDAY + 6 * DAY)
        for due in found.reminders
        if due.kind in {Reminder.DAY, Reminder.HOUR}
    ]
    mornings = [(MONDAY + day * DAY - HOUR, Reminder.HOUR) for day in range(5)]
    assert heard == [*mornings, (MONDAY + 6 * DAY, Reminder.DAY)]


def test_an_override_that_was_set_a_moment_ago_hands_over_now() -> None:
    """Nothing lies between the last look and now; the people are others all the same."""
    now = MONDAY + DAY
    of = with_overrides(
        schedule(ANA), [ScheduleOverride(OverrideKind.REPLACE_ALL, str(BEN), now - HOUR, now + HOUR)]
    )
    found = plan(of, told(now, ANA), now)
    assert found.handing is not None
    assert found.handing.at == now
    assert (set(found.handing.came), set(found.handing.left)) == ({BEN}, {ANA})
    assert found.again_at == now + HOUR


def test_somebody_less_is_no_handoff_and_nobody_left_is_one() -> None:
    """With two on call one may go; when the last one goes there is a gap, and the channel must know."""
    both = plan(schedule([ANA, BEN]), told(MONDAY, ANA, BEN, CHO), MONDAY + HOUR)
    assert both.handing is None
    assert said(both) == {("end", CHO)}
    gap = plan(schedule(ANA, until="2026-03-02T10:00"), told(MONDAY, ANA), MONDAY + HOUR)
    assert gap.handing is not None
    assert (set(gap.handing.present), set(gap.handing.left)) == (set(), {ANA})


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"])
@pytest.mark.parametrize("month", [3, 10])
def test_each_change_is_handed_over_once_over_the_clock_changes(zone: str, month: int) -> None:
    """Walking from timer to timer finds every change of the resolver, at its instant, and no other."""
    layer = {
        "name": "all",
        "users": ["1", "2", "3"],
        "start": "2026-01-05T02:30",
        "rotation": {"every": 1, "unit": "day"},
    }
    of = parse_schedule({"timezone": zone, "layers": [layer]})
    start = datetime(2026, month, 1, tzinfo=UTC)
    handed = [found.handing.at for _, found in walk(of, start, start + 31 * DAY) if found.handing]
    changes = [one.start for one in shifts(of, start, start + 31 * DAY)[1:]]
    assert handed == changes


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 4 * 24 * 60), min_size=1, max_size=12))
def test_looking_more_often_says_nothing_twice(extra: list[int]) -> None:
    """Whenever else it looks, the same things are said once each."""
    of = schedule(ANA, BEN, CHO, unit="day")
    end = MONDAY + 4 * DAY
    alone = {due for _, found in walk(of, MONDAY, end) for due in found.reminders}
    moments = sorted({at for at, _ in walk(of, MONDAY, end)} | {MONDAY + timedelta(minutes=m) for m in extra})
    last: Told | None = None
    heard: list[Due] = []
    for at in moments:
        found = plan(of, last, at)
        heard += found.reminders
        last = found.told
    assert len(heard) == len(set(heard))
    assert set(heard) == alone
