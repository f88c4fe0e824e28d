"""What the look ahead finds in the coming two weeks, and by which key it knows it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from engine import coverage
from engine.coverage import Calendar, Finding, Membership
from engine.directory import (
    ContactMethod,
    Directory,
    Level,
    NamedSchedule,
    Person,
    Policy,
    Target,
    TargetKind,
)
from engine.models import Method
from engine.schedule import parse_schedule

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)  # a Monday
HOUR = timedelta(hours=1)


def person(id_: int, name: str, *, active: bool = True, verified: bool = True) -> Person:
    method = ContactMethod(id_, id_, Method.SMS, "+12025550143", verified=verified)
    return Person(id_, name, f"U{id_}", "UTC", False, active, (method,))


ANA, BEN = person(1, "ana"), person(2, "ben")


def schedule(
    *users: str,
    id_: int = 1,
    zone: str = "UTC",
    hours: Sequence[dict[str, Any]] = (),
    unit: str = "week",
    **more: Any,
) -> NamedSchedule:
    layer = {
        "name": "main",
        "users": list(users),
        "start": "2026-01-05T09:00",
        "rotation": {"every": 1, "unit": unit},
        "restrictions": list(hours),
    }
    return NamedSchedule(
        id_, f"payments-{id_}", parse_schedule({"timezone": zone, "layers": [layer], **more})
    )


def directory(
    *schedules: NamedSchedule, people: Sequence[Person] = (ANA, BEN), policy: Policy | None = None
) -> Directory:
    return Directory(
        1,
        1,
        {one.id: one for one in people},
        {},
        {policy.id: policy} if policy else {},
        {one.id: one for one in schedules},
    )


def found(named: NamedSchedule, now: datetime = NOW, **more: Any) -> list[Finding]:
    people = more.pop("people", (ANA, BEN))
    return coverage.look_ahead(directory(named, people=people), named, now, **more)


def days(*which: str, opens: str, closes: str) -> dict[str, Any]:
    return {"days": list(which), "from": opens, "to": closes}


WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def test_a_schedule_that_is_covered_has_no_finding() -> None:
    """Silence means that all is well."""
    assert found(schedule("1", "2")) == []


def test_nights_without_anybody_are_one_finding_with_the_same_key_every_morning() -> None:
    """Fourteen gaps alike are told once, and are known again the next day and the next week."""
    office = schedule("1", hours=[days(*WEEK, opens="09:00", closes="17:00")])
    (today,) = found(office)
    assert today.key == "gap:17:00-09:00"
    assert today.text.startswith("Nobody is on call Mon 02 Mar 17:00 to Tue 09:00, ")
    assert today.text.endswith("and 11 times more.")
    for later in (1, 5, 15, 20, 24, 24 * 7 + 3):
        assert [one.key for one in found(office, NOW + later * HOUR)] == [today.key]


def test_weekends_without_anybody_are_known_again_on_every_day_of_the_week() -> None:
    """Also on the weekend itself, when the gap has begun already."""
    weekdays = schedule("1", hours=[days(*WEEK[:5], opens="00:00", closes="00:00")])
    keys = {one.key for day in range(15) for one in found(weekdays, NOW + timedelta(days=day))}
    assert keys == {"gap:00:00-00:00"}


def test_a_single_gap_is_known_by_its_beginning() -> None:
    """Coming nearer, begun, or with its end in sight only later, it is the same gap."""
    gone = schedule("1")
    (layer,) = gone.schedule.layers
    ending = replace(
        gone,
        schedule=replace(
            gone.schedule, layers=(replace(layer, until=datetime.fromisoformat("2026-03-10T00:00")),)
        ),
    )
    keys = [[one.key for one in found(ending, NOW + timedelta(days=day))] for day in (0, 5, 9)]
    assert keys == [["gap:2026-03-10T00:00:00+00:00"]] * 3


def test_a_schedule_with_nobody_says_so() -> None:
    """However long that has been."""
    (only,) = found(schedule())
    assert only == Finding("gap:always", "Nobody is on call at all.")


def test_a_fallback_leaves_no_gap() -> None:
    """Somebody is on call then."""
    assert found(schedule("1", hours=[days("mon", opens="09:00", closes="17:00")], fallback="2")) == []


def test_a_gap_in_the_past_is_none() -> None:
    """(grafana/oncall#1108, B072)"""
    assert found(schedule("1"), NOW) == []
    late = replace(
        schedule("1"),
        schedule=parse_schedule(
            {
                "timezone": "UTC",
                "layers": [
                    {
                        "name": "main",
                        "users": ["1"],
                        "start": "2026-03-02T08:00",
                        "rotation": {"every": 1, "unit": "week"},
                    }
                ],
            }
        ),
    )
    assert found(late) == []


def test_hours_that_a_clock_change_leaves_out_are_said_ahead_of_time() -> None:
    """02:00 to 03:00 does not exist in Berlin on 29 March, and 02:30 to 03:15 is empty too."""
    now = datetime(2026, 3, 20, 9, tzinfo=UTC)
    for opens, closes in (("02:00", "03:00"), ("02:30", "03:15")):
        night = schedule(
            "1", zone="Europe/Berlin", hours=[days(*WEEK, opens=opens, closes=closes)], fallback="2"
        )
        (window,) = found(night, now)
        assert window.key == f"window:main:2026-03-29T{opens}:00"
        assert f"Sun 29 Mar {opens}–{closes}" in window.text
    assert found(night, NOW - timedelta(days=20)) == []


def test_people_who_cannot_be_paged_are_named_with_their_first_shift() -> None:
    """Deactivated here, deactivated in Slack, or without a verified contact method."""
    named = schedule("1", "2")
    assert [one.key for one in found(named, people=(ANA, person(2, "ben", active=False)))] == [
        "deactivated:2"
    ]
    assert [one.key for one in found(named, membership=Membership(left={2}))] == ["left:2"]
    (only,) = found(named, people=(ANA, person(2, "ben", verified=False)))
    assert only.key == "unreachable:2"
    assert only.text == "ben has no verified contact method and is on call, first from Mon 09 Mar 09:00 on."
    assert [one.key for one in found(named, people=(ANA,))] == ["deactivated:2"]
    (now,) = found(named, people=(person(1, "ana", active=False), BEN))
    assert now.text == "ana was deactivated and is on call, now."


def test_what_slack_does_not_say_is_not_gone() -> None:
    """A finding about somebody whom Slack says nothing of now stays, the others may go."""
    assert not coverage.may_be_gone("left:2", {2})
    assert coverage.may_be_gone("left:1", {2})
    assert coverage.may_be_gone("gap:17:00-09:00", {2})


def policy(*levels: Target) -> Policy:
    return Policy(5, 1, "payments", tuple(Level((one,), timedelta(minutes=5)) for one in levels))


def test_one_person_on_two_levels_at_once_is_found() -> None:
    """Level 1 weekly Ana and Ben, level 2 always Ben: at once in Ben's week."""
    first, second = schedule("1", "2"), schedule("2", id_=2)
    both = policy(Target(TargetKind.SCHEDULE, 1), Target(TargetKind.SCHEDULE, 2))
    (only,) = coverage.look_ahead(directory(first, second, policy=both), first, NOW)
    assert only.key == "twice:5:1:2:2"
    assert only.text == "ben is on levels 1 and 2 of policy payments at once, first on Mon 09 Mar 09:00."


def test_levels_that_never_meet_are_no_finding() -> None:
    """Ana's week on one level is Ben's on the other; a person who is a level by herself is another matter."""
    first, second = schedule("1", "2"), schedule("2", "1", id_=2)
    apart = policy(Target(TargetKind.SCHEDULE, 1), Target(TargetKind.SCHEDULE, 2))
    assert coverage.look_ahead(directory(first, second, policy=apart), first, NOW) == []
    above = policy(Target(TargetKind.SCHEDULE, 1), Target(TargetKind.PERSON, 1))
    assert [one.key for one in coverage.look_ahead(directory(first, policy=above), first, NOW)] == [
        "twice:5:1:2:1"
    ]


def test_a_calendar_is_a_finding_from_its_second_failure_on() -> None:
    """And each event that names nobody."""
    named = schedule("1")
    once, twice = Calendar(1, "no answer", NOW), Calendar(2, "no answer", NOW, ("Team lunch",))
    assert found(named, calendar=once) == []
    assert [one.key for one in found(named, calendar=twice)] == [
        "calendar:failed",
        "calendar:nobody:Team lunch",
    ]
    assert "What it said on Mon 02 Mar 09:00 goes on." in found(named, calendar=twice)[0].text
