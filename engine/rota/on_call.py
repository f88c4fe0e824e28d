"""Who is on call as an answer: now with why and who is next, and shift by shift.

Pure. Never works out who is on call by itself: the schedule's own rules do (engine.schedule).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from engine.directory import Directory, InForce, NamedSchedule, Person
from engine.rota.override_rules import people_of
from engine.schedule import on_call, people_at, shifts
from engine.schedule.skipped import Skipped, skipped_windows


@dataclass(frozen=True, slots=True)
class OnCallNow:
    """Who is on call on one schedule, why, and who is next. No `until`: for more than a year."""

    schedule_id: int
    schedule: str
    people: tuple[Person, ...]
    reason: str
    since: datetime | None
    until: datetime | None
    next_people: tuple[Person, ...]
    next_at: datetime | None


@dataclass(frozen=True, slots=True)
class ShiftOf:
    """A stretch with the same people; with none nobody is on call."""

    start: datetime
    end: datetime
    people: tuple[Person, ...]


@dataclass(frozen=True, slots=True)
class ShiftsOf:
    """The shifts of one schedule, without a break but where there was no schedule yet."""

    schedule_id: int
    schedule: str
    shifts: tuple[ShiftOf, ...]
    skipped: tuple[Skipped, ...] = ()  # hours that a change of the clock leaves out


def on_call_now(directory: Directory, named: NamedSchedule, at: datetime) -> OnCallNow:
    names = {str(person.id): person.name for person in directory.people.values()}
    now = on_call(named.schedule, at, names)
    following = people_at(named.schedule, now.until) if now.until else ()
    return OnCallNow(
        schedule_id=named.id,
        schedule=named.name,
        people=people_of(directory, now.people),
        reason=now.reason,
        since=now.since,
        until=now.until,
        next_people=people_of(directory, following),
        next_at=now.until,
    )


def as_it_was(directory: Directory, history: Mapping[int, Sequence[InForce]], at: datetime) -> Directory:
    """With the overrides of then: one that was cancelled later held until it was."""
    then = {
        one.id: replace(one, schedule=version.schedule)
        for one in directory.schedules.values()
        for version in history.get(one.id, ())
        if version.start <= at < version.end
    }
    return replace(directory, schedules=then)


def shifts_of(directory: Directory, named: NamedSchedule, history: Sequence[InForce]) -> ShiftsOf:
    found: list[ShiftOf] = []
    skipped: list[Skipped] = []
    for version in history:
        skipped += skipped_windows(version.schedule, version.start, version.end)
        for shift in shifts(version.schedule, version.start, version.end):
            people = people_of(directory, shift.people)
            last = found[-1] if found else None
            if last is not None and last.end == shift.start and last.people == people:
                found[-1] = replace(last, end=shift.end)
            else:
                found.append(ShiftOf(shift.start, shift.end, people))
    return ShiftsOf(named.id, named.name, tuple(found), tuple(skipped))
