"""Calendars of others, as they come: who is on call by them, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from engine.calendar import match_events, matcher, read_calendar, spliced
from engine.calendar.read import MOST_EVENTS, Event
from engine.directory import ContactMethod, Person
from engine.errors import BadCalendar
from engine.models import Method
from engine.schedule import Shift

BERLIN = ZoneInfo("Europe/Berlin")
A = datetime(2026, 3, 2, tzinfo=UTC)
B = A + timedelta(days=60)


def person(id_: int, name: str, email: str = "", *, active: bool = True) -> Person:
    methods = (ContactMethod(id_, id_, Method.EMAIL, email, verified=True),) if email else ()
    return Person(id_, name, None, "UTC", False, active, methods)


ANA = person(1, "Ana", "Ana@Example.com")
BEN = person(2, "ben")
PEOPLE = (ANA, BEN, person(3, "Cho Tanaka"))


def ics(*events: str, head: str = "") -> bytes:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//EN", *head.splitlines()]
    for number, event in enumerate(events):
        lines += ["BEGIN:VEVENT", f"UID:{number}", *event.splitlines(), "END:VEVENT"]
    return "\r\n".join([*lines, "END:VCALENDAR", ""]).encode()


def read(body: bytes, a: datetime = A, b: datetime = B) -> list[Event]:
    return list(read_calendar(body, a, b, BERLIN).events)


def on_call(body: bytes) -> list[tuple[datetime, datetime, tuple[str, ...]]]:
    reading = read_calendar(body, A, B, BERLIN)
    found = match_events(reading.events, reading.unread, matcher(PEOPLE))
    return [(shift.start, shift.end, shift.people) for shift in found.shifts]


def at(day: int, hour: int, month: int = 3) -> datetime:
    return datetime(2026, month, day, hour, tzinfo=UTC)


def test_a_weekly_shift_keeps_its_wall_clock_over_the_change() -> None:
    """09:00 in Berlin is 08:00 in UTC before the change and 07:00 after it; an exception is left out."""
    found = read(
        ics(
            "DTSTART;TZID=Europe/Berlin:20260302T090000\nDTEND;TZID=Europe/Berlin:20260302T170000\n"
            "RRULE:FREQ=WEEKLY\nEXDATE;TZID=Europe/Berlin:20260316T090000\nSUMMARY:ben"
        )
    )
    starts = [event.start for event in found][:4]
    assert starts == [at(2, 8), at(9, 8), at(23, 8), at(30, 7)]


def test_one_occurrence_that_was_moved_is_moved() -> None:
    """RECURRENCE-ID replaces one of a series."""
    series = "DTSTART:20260302T090000Z\nDTEND:20260302T100000Z\nRRULE:FREQ=DAILY;COUNT=3\nSUMMARY:ben"
    body = ics(series).replace(
        b"END:VCALENDAR",
        b"BEGIN:VEVENT\r\nUID:0\r\nRECURRENCE-ID:20260303T090000Z\r\nDTSTART:20260303T200000Z\r\n"
        b"DTEND:20260303T210000Z\r\nSUMMARY:ben\r\nEND:VEVENT\r\nEND:VCALENDAR",
    )
    assert [event.start for event in read(body)] == [at(2, 9), at(3, 20), at(4, 9)]


def test_a_whole_day_is_from_local_midnight_to_local_midnight() -> None:
    """In the schedule's zone; 23 hours on the day of the change."""
    (event,) = read(ics("DTSTART;VALUE=DATE:20260329\nDTEND;VALUE=DATE:20260330\nSUMMARY:ben"))
    assert (event.start, event.end) == (at(28, 23), at(29, 22))


def test_a_time_without_a_zone_is_the_calendars_own() -> None:
    """X-WR-TIMEZONE if it is said, else the schedule's."""
    floating = "DTSTART:20260302T090000\nDTEND:20260302T100000\nSUMMARY:ben"
    assert read(ics(floating))[0].start == at(2, 8)
    assert read(ics(floating, head="X-WR-TIMEZONE:Asia/Tokyo"))[0].start == at(2, 0)


def test_folded_lines_a_byte_order_mark_and_bare_newlines_are_read() -> None:
    """(grafana/oncall#3603, #3002)"""
    body = ics("DTSTART:20260302T090000Z\nDTEND:20260302T100000Z\nSUMMARY:On call: Cho\n  Tanaka")
    for odd in (body, b"\xef\xbb\xbf" + body, body.replace(b"\r\n", b"\n")):
        assert on_call(odd) == [(at(2, 9), at(2, 10), ("3",))]


def test_an_event_means_those_it_invites_else_those_it_names() -> None:
    """By e-mail in any case; by name alone, behind "on call:", and beside others."""
    match = matcher(PEOPLE)

    def means(summary: str, *emails: str) -> tuple[str, ...]:
        return match(Event(A, B, summary, emails))

    assert means("whatever", "ana@example.com") == ("1",)
    assert means("ben", "ana@example.com") == ("1",)
    assert means("ben", "stranger@example.com") == ("2",)
    assert means("ana") == means("On call: Ana") == means("ANA (primary)") == means("@ana") == ("1",)
    assert means("Ana, ben & Cho Tanaka") == ("1", "2", "3")
    assert means("Anastasia") == means("") == means("Benjamin on call") == ()


def test_who_declined_a_room_and_what_was_cancelled_count_for_nobody() -> None:
    """Only people who come."""
    declined = (
        "ATTENDEE;PARTSTAT=DECLINED:mailto:ana@example.com\nATTENDEE;CUTYPE=ROOM:mailto:room@example.com"
    )
    times = "DTSTART:20260302T090000Z\nDTEND:20260302T100000Z"
    assert on_call(ics(f"{times}\nSUMMARY:ben\n{declined}")) == [(at(2, 9), at(2, 10), ("2",))]
    assert on_call(ics(f"{times}\nSUMMARY:ben\nSTATUS:CANCELLED")) == []


def test_events_at_once_put_both_on_call() -> None:
    """Stretches do not overlap, and neighbours with the same people are one."""
    found = on_call(
        ics(
            "DTSTART:20260302T090000Z\nDTEND:20260302T120000Z\nSUMMARY:ben",
            "DTSTART:20260302T120000Z\nDTEND:20260302T150000Z\nSUMMARY:ben",
            "DTSTART:20260302T110000Z\nDTEND:20260302T130000Z\nSUMMARY:ana",
        )
    )
    assert found == [
        (at(2, 9), at(2, 11), ("2",)),
        (at(2, 11), at(2, 13), ("1", "2")),
        (at(2, 13), at(2, 15), ("2",)),
    ]


def test_what_names_nobody_is_said() -> None:
    """Once for each title, with what could not be read; nobody is guessed."""
    reading = read_calendar(
        ics(
            "DTSTART:20260302T090000Z\nDTEND:20260302T100000Z\nSUMMARY:Team lunch",
            "DTSTART:20260303T090000Z\nDTEND:20260303T100000Z\nSUMMARY:Team lunch",
            "DTSTART:never\nSUMMARY:broken",
            "SUMMARY:without a start",
        ),
        A,
        B,
        BERLIN,
    )
    found = match_events(reading.events, reading.unread, matcher(PEOPLE))
    assert found.shifts == ()
    assert found.unmatched == ("Team lunch", "broken", "without a start")


def test_one_broken_event_costs_no_other() -> None:
    """The calendar is read on."""
    body = ics(
        "DTSTART:never\nSUMMARY:broken", "DTSTART:20260302T090000Z\nDTEND:20260302T100000Z\nSUMMARY:ben"
    )
    assert on_call(body) == [(at(2, 9), at(2, 10), ("2",))]


@pytest.mark.parametrize(
    "rule",
    ["FREQ=SECONDLY", "FREQ=MINUTELY", "FREQ=DAILY;BYMINUTE=0,1,2", "FREQ=DAILY;BYSECOND=0,1"],
)
def test_a_flood_of_events_is_refused_before_it_comes(rule: str) -> None:
    """No shift repeats so."""
    with pytest.raises(BadCalendar, match="too often"):
        read(ics(f"DTSTART:20260302T090000Z\nDTEND:20260302T090030Z\nRRULE:{rule}\nSUMMARY:ben"))


def test_more_events_than_a_schedule_has_are_refused() -> None:
    """Whatever they are made of."""
    hourly = "DTSTART:20260301T000000Z\nDTEND:20260301T003000Z\nRRULE:FREQ=HOURLY\nSUMMARY:ben"
    with pytest.raises(BadCalendar, match=str(MOST_EVENTS)):
        read(ics(*[hourly] * 4))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>log in</html>",
        b"BEGIN:VCALENDAR\nrubbish",
        b"\xff\xfe\x00",
        b"BEGIN:VEVENT\r\nEND:VEVENT\r\n",
    ],
)
def test_what_is_no_calendar_is_refused(body: bytes) -> None:
    """So that the last good copy stays (grafana/oncall#5570)."""
    with pytest.raises(BadCalendar):
        read(body)


def test_the_past_does_not_change() -> None:
    """What was until now stays as it was; from now on it is what the calendar says now."""
    before = [Shift(at(1, 0), at(5, 0), ("1",)), Shift(at(5, 0), at(9, 0), ("2",))]
    assert spliced(before, [Shift(at(1, 0), at(9, 0), ("2",))], at(3, 0)) == [
        Shift(at(1, 0), at(3, 0), ("1",)),
        Shift(at(3, 0), at(9, 0), ("2",)),
    ]
    assert spliced(before, before, at(3, 0)) == before
    assert spliced(before, [], at(3, 0)) == [Shift(at(1, 0), at(3, 0), ("1",))]
