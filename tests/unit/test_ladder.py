"""A policy becomes people: who is on call, who can be reached, and who is left when nobody can."""

from __future__ import annotations

from datetime import datetime, timedelta

from engine.directory import (
    ContactMethod,
    Directory,
    Level,
    NamedSchedule,
    Person,
    Policy,
    Service,
    Target,
    TargetKind,
)
from engine.models import Method, Urgency
from engine.pager.ladder import Link, Resolver
from engine.schedule import Layer, Rotation, Schedule, Unit
from tests.unit.escalations import MIN, NOW

ANA, BEN, CLEO, DAN = 1, 2, 3, 4
SCHEDULE = Target(TargetKind.SCHEDULE, 1)


def person(id_: int, name: str, *, usable: bool = True, active: bool = True, admin: bool = False) -> Person:
    method = ContactMethod(id_, id_, Method.SMS, "+1", verified=usable)
    return Person(id_, name, None, "UTC", admin=admin, active=active, methods=(method,))


def directory(
    *people: Person, on_call: int | None = ANA, fallback: int | None = None, org: tuple[Target, ...] = ()
) -> Directory:
    layer = Layer("week", ((str(on_call),),), datetime(2026, 1, 5), Rotation(1, Unit.WEEK))  # noqa: DTZ001  # wall time
    schedule = Schedule(
        "UTC",
        (layer,) if on_call is not None else (),
        fallback=None if fallback is None else str(fallback),
    )
    return Directory(
        org_id=1,
        rev=1,
        people={one.id: one for one in people},
        services={1: Service(1, "checkout", 1, None)},
        policies={},
        schedules={1: NamedSchedule(1, "primary", schedule, (), fallback)},
        fallback=org,
        fallback_urls=("json://x", "json://y"),
    )


def policy(*targets: Target, timeout: timedelta = 5 * MIN) -> Policy:
    return Policy(1, 1, "payments", (Level(targets, timeout),))


def to(person_id: int) -> Target:
    return Target(TargetKind.PERSON, person_id)


def resolver(known: Directory) -> Resolver:
    return Resolver(known, Urgency.HIGH, NOW)


def test_a_schedule_gives_who_is_on_call_and_a_person_is_named_once() -> None:
    """Two targets that lead to the same person page them once; channels keep their order."""
    known = resolver(directory(person(ANA, "ana")))
    channel = Target(TargetKind.CHANNEL, "#ops")
    (rung,) = known.ladder(policy(SCHEDULE, to(ANA), channel), None).rungs
    assert (rung.people, rung.channels, rung.timeout) == ((ANA,), ("#ops",), 5 * MIN)
    assert known.remarks == []


def test_a_schedule_with_nobody_gives_its_fallback() -> None:
    """The schedule's own rule: with no layer at work its fallback is on call."""
    known = resolver(directory(person(CLEO, "cleo"), on_call=None, fallback=CLEO))
    assert known.ladder(policy(SCHEDULE), None).rungs[0].people == (CLEO,)


def test_a_schedule_whose_people_cannot_be_reached_gives_its_fallback_and_names_them() -> None:
    """Somebody without a usable method, or who has left, is nobody to page."""
    for ana, why in (
        (person(ANA, "ana", usable=False), "ana has no contact method that can be used"),
        (person(ANA, "ana", active=False), "ana should be paged and is no longer here"),
    ):
        known = resolver(directory(ana, person(CLEO, "cleo"), fallback=CLEO))
        assert known.ladder(policy(SCHEDULE), None).rungs[0].people == (CLEO,)
        assert known.remarks == [why]


def test_what_is_in_the_way_is_said_and_nobody_is_made_up() -> None:
    """An empty schedule, a deleted one, and a service without a policy leave empty rungs and a remark."""
    known = resolver(directory(on_call=None))
    gone = Target(TargetKind.SCHEDULE, 9)
    assert known.ladder(policy(SCHEDULE, gone), None).rungs[0].people == ()
    assert known.ladder(None, None).rungs == ()
    assert known.remarks == [
        "nobody is on call on primary",
        "a level names a schedule that was deleted",
        "this service has no policy",
    ]


def test_an_assigned_target_waits_as_long_as_level_0() -> None:
    """Five minutes where there is no level to take it from."""
    known = resolver(directory(person(BEN, "ben")))
    rung = known.ladder(policy(SCHEDULE, timeout=9 * MIN), to(BEN)).reassigned
    assert rung is not None
    assert (rung.people, rung.timeout) == ((BEN,), 9 * MIN)
    assert known.ladder(None, to(BEN)).reassigned is not None


def test_the_chain_goes_from_the_nearest_to_the_last_resort() -> None:
    """The schedule's fallback, the organisation's list, the admins, the URLs."""
    known = directory(
        person(BEN, "ben"),
        person(CLEO, "cleo"),
        person(DAN, "dan", admin=True),
        fallback=CLEO,
        org=(to(BEN),),
    )
    chain = resolver(known).chain(policy(SCHEDULE))
    assert chain == (Link((CLEO,)), Link((BEN,)), Link((DAN,)), Link(urls=(0, 1)))


def test_an_empty_link_is_passed_over_and_named_by_the_next() -> None:
    """Who is missing is in the timeline of the incident that needed them."""
    known = directory(person(CLEO, "cleo", usable=False), fallback=CLEO)
    one = resolver(known)
    (link,) = one.chain(policy(SCHEDULE))
    assert (link.urls, link.remarks) == ((0, 1), ("cleo has no contact method that can be used",))
    assert one.remarks == []  # the ladder had no need of cleo
