"""Shifts as a calendar: whole, with ids that stay, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from icalendar import Calendar

from engine.calendar import Entry, entries_of_person, entries_of_schedule, whole_shifts, write_calendar
from engine.schedule import Schedule, parse_schedule

A = datetime(2026, 3, 2, tzinfo=UTC)
B = datetime(2026, 4, 13, tzinfo=UTC)
NAMES = {"1": "ana", "2": "ben", "3": "cho"}


def weekly(*users: Any, zone: str = "Europe/Berlin", **more: Any) -> Schedule:
    layer = {
        "name": "week",
        "users": list(users),
        "start": "2026-01-05T09:00",
        "rotation": {"every": 1, "unit": "week"},
    }
    return parse_schedule({"timezone": zone, "layers": [layer], **more})


def entries(schedule: Schedule, a: datetime = A, b: datetime = B) -> list[Entry]:
    return entries_of_schedule(
        7, "payments", whole_shifts([(datetime(2026, 1, 1, tzinfo=UTC), schedule)], a, b), NAMES
    )


def test_a_shift_over_a_clock_change_ends_where_the_resolver_says() -> None:
    """The week of the change is written as the instants that it has, an hour shorter."""
    spring = [one for one in entries(weekly("1", "2")) if one.start == datetime(2026, 3, 23, 8, tzinfo=UTC)]
    assert [one.end for one in spring] == [datetime(2026, 3, 30, 7, tzinfo=UTC)]


def test_the_first_shift_is_whole_and_keeps_its_id_as_the_window_moves() -> None:
    """What began before the window has its real start, so tomorrow it is the same event."""
    today, tomorrow = entries(weekly("1", "2")), entries(weekly("1", "2"), A + timedelta(days=1))
    assert today[1].start < A + timedelta(days=7)
    assert {one.uid for one in tomorrow} <= {one.uid for one in today}
    assert today[0].start == datetime(2026, 2, 23, 8, tzinfo=UTC)


def test_a_shift_that_lasts_for_years_begins_with_the_window() -> None:
    """One person for ever is one event."""
    (only,) = entries(
        weekly("1", zone="UTC"), datetime(2028, 1, 1, tzinfo=UTC), datetime(2028, 2, 1, tzinfo=UTC)
    )
    assert only.start == datetime(2028, 1, 1, tzinfo=UTC)


def test_nobody_is_no_event() -> None:
    """A gap is left out."""
    found = whole_shifts([(A, parse_schedule({"timezone": "UTC", "layers": []}))], A, B)
    assert entries_of_schedule(7, "payments", found, NAMES) == []


def test_a_person_sees_one_shift_however_those_beside_change() -> None:
    """Ana with Ben and then Ana with Cho is one shift of Ana's, and says who else."""
    found = whole_shifts([(A, weekly(["1", "2"], ["1", "3"], zone="UTC"))], A, B)
    (own,) = entries_of_person("1", 7, "payments", found, NAMES)
    assert (own.summary, own.description) == ("On call: payments", "Together with ben and cho")
    assert len(entries_of_person("2", 7, "payments", found, NAMES)) == 3


def test_the_past_is_told_by_the_version_in_force_then() -> None:
    """An edit does not rewrite what was; where nobody changes, the shift goes on over it."""
    edited = datetime(2026, 3, 18, tzinfo=UTC)
    before, after = weekly("1", zone="UTC"), weekly("1", "2", zone="UTC")
    found = whole_shifts([(datetime(2026, 1, 1, tzinfo=UTC), before), (edited, after)], A, B)
    assert [shift.people for shift in found] == [("1",), ("2",), ("1",), ("2",), ("1",)][: len(found)]
    assert found[0].end == edited or found[0].people != found[1].people


def test_the_same_shifts_are_the_same_bytes() -> None:
    """Nothing in the file says when it was asked for."""
    made = [write_calendar("On call: payments", entries(weekly("1", "2")), A) for _ in range(2)]
    assert made[0] == made[1]


def test_it_is_a_calendar_that_others_can_read() -> None:
    """Times in UTC, a stamp, an id for each, and what people wrote escaped."""
    odd = Entry("x@midwatch", A, B, "ana; ben, cho\nBEGIN:VEVENT")
    read = Calendar.from_ical(write_calendar("payments", [odd], A))
    (event,) = read.walk("VEVENT")
    assert event["SUMMARY"] == "ana; ben, cho\nBEGIN:VEVENT"
    assert (event["DTSTART"].dt, event["DTEND"].dt, event["DTSTAMP"].dt) == (A, B, A)
    assert b"DTSTART:20260302T000000Z" in write_calendar("payments", [odd], A)
    assert read.errors == []
