"""What an edit changes: changed shifts, as long as can be, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.schedule import Schedule, parse_schedule, people_at
from engine.schedule.diff import Changed, diff

START = datetime(2026, 3, 2, 8, tzinfo=UTC)  # Monday, 09:00 in Berlin
DAY = timedelta(days=1)


def weekly(*users: str, **changes: Any) -> Schedule:
    layer = {"users": list(users), "start": "2026-03-02T09:00", "rotation": {"every": 1, "unit": "week"}}
    return parse_schedule({"timezone": "Europe/Berlin", "layers": [layer | changes]})


def test_a_new_order_changes_the_turns_that_are_swapped() -> None:
    """Each changed shift says when, from whom and to whom."""
    found = diff(weekly("ana", "ben", "cho"), weekly("ana", "cho", "ben"), START, START + 21 * DAY)
    assert found == [
        Changed(START + 7 * DAY, START + 14 * DAY, ("ben",), ("cho",)),
        Changed(START + 14 * DAY, START + 21 * DAY, ("cho",), ("ben",)),
    ]


def test_what_is_written_otherwise_and_means_the_same_changes_nothing() -> None:
    """A layer that began a whole cycle earlier, an other name, a person twice: nobody's shift changes."""
    earlier = weekly("ana", "ben", start="2026-02-16T09:00", name="renamed")
    assert diff(weekly("ana", "ben"), earlier, START, START + 28 * DAY) == []
    assert diff(weekly("ana", "ben"), weekly("ana", "ben", "ana", "ben"), START, START + 28 * DAY) == []


def test_nobody_is_somebody_to_whom_a_shift_may_go() -> None:
    """Taking the last layer away leaves nobody, and the line says so."""
    none = replace(weekly("ana"), layers=())
    assert diff(weekly("ana"), none, START, START + DAY) == [Changed(START, START + DAY, ("ana",), ())]


def test_an_override_hides_what_changes_below_it() -> None:
    """Where the same person takes over before and after, nothing changes for anybody."""
    taken = {"kind": "replace_all", "user": "dee", "start": START, "end": START + 3 * DAY}
    overrides = parse_schedule({"timezone": "UTC", "overrides": [taken]}).overrides
    before, after = weekly("ana"), weekly("ben")
    found = diff(
        replace(before, overrides=overrides), replace(after, overrides=overrides), START, START + 7 * DAY
    )
    assert found == [Changed(START + 3 * DAY, START + 7 * DAY, ("ana",), ("ben",))]


def test_a_handoff_that_moves_changes_only_the_hours_between() -> None:
    """From 09:00 to 12:00: three hours each week stay with whoever had the week before."""
    found = diff(
        weekly("ana", "ben"), weekly("ana", "ben", start="2026-03-02T12:00"), START, START + 14 * DAY
    )
    hours = timedelta(hours=3)
    assert found == [
        Changed(START, START + hours, ("ana",), ()),
        Changed(START + 7 * DAY, START + 7 * DAY + hours, ("ben",), ("ana",)),
    ]


PEOPLE = ["ana", "ben", "cho"]
schedules = st.builds(
    lambda users, unit, hour, zone: parse_schedule(
        {
            "timezone": zone,
            "layers": [
                {
                    "users": users,
                    "start": f"2026-03-27T{hour:02}:00",
                    "rotation": {"every": 1, "unit": unit},
                }
            ],
        }
    ),
    st.lists(st.sampled_from(PEOPLE), max_size=3),
    st.sampled_from(["hour", "day", "week"]),
    st.integers(0, 23),
    st.sampled_from(["Europe/Berlin", "UTC", "Australia/Lord_Howe"]),
)


@given(schedules, schedules)
def test_it_says_at_each_instant_what_the_resolver_says(before: Schedule, after: Schedule) -> None:
    """Over a change of the clock: inside a changed shift both answers are as told, outside they are equal."""
    a, b = datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 3, 30, tzinfo=UTC)
    found = diff(before, after, a, b)
    at = a
    while at < b:
        inside = [one for one in found if one.start <= at < one.end]
        old, new = people_at(before, at), people_at(after, at)
        assert [(one.before, one.after) for one in inside] == ([(old, new)] if old != new else [])
        at += timedelta(minutes=30)
    for one, following in pairwise(found):
        assert one.end < following.start or (one.before, one.after) != (following.before, following.after)
