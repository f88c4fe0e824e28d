"""Which override is meant by what was asked for, and whose place it takes; or why it cannot be.

Pure: never reads the clock or the database.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from engine.directory import Directory, NamedSchedule, Override, Person
from engine.errors import BadInput, NotFound
from engine.models import Actor
from engine.rota.meant import by_name, listed, numbered
from engine.schedule import OverrideKind, shifts

LONGEST: Final = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class Asked:
    """An override as it is asked for. Without a schedule it is the only one."""

    schedule_id: int | None
    person_id: int
    start_at: datetime
    end_at: datetime
    actor: Actor
    kind: str = OverrideKind.REPLACE_ALL.value
    covers_id: int | None = None


def wanted(directory: Directory, asked: Asked, now: datetime) -> tuple[NamedSchedule, Override]:
    """The override that is meant, and its schedule; or why it cannot be."""
    _check_interval(asked.start_at, asked.end_at, now)
    person = _active(directory, asked.person_id)
    covered = None if asked.covers_id is None else _active(directory, asked.covers_id)
    if (covered is None) is (asked.kind == OverrideKind.COVER.value):
        raise BadInput("A cover names whom it covers, and nothing else does.")
    named = _meant(directory, asked.schedule_id)
    bounds = (asked.start_at, asked.end_at)
    return named, Override(0, named.id, asked.kind, person.id, asked.covers_id, *bounds, asked.actor.name)


def _check_interval(start_at: datetime, end_at: datetime, now: datetime) -> None:
    if end_at <= start_at:
        raise BadInput("An override ends after it begins.")
    if end_at <= now:
        raise BadInput("That time is over already.")
    if end_at - max(start_at, now) > LONGEST:
        raise BadInput("An override lasts a year at most; for longer, change the schedule.")


def _active(directory: Directory, person_id: int) -> Person:
    person = directory.people.get(person_id)
    if person is None:
        raise NotFound("There is no such person here.")
    if not person.active:
        raise BadInput(f"{person.name} was deactivated and cannot be on call.")
    return person


def _meant(directory: Directory, schedule_id: int | None) -> NamedSchedule:
    """The schedule that was named, or the only one. Never a guess: it says who is woken."""
    known = directory.schedules
    if schedule_id is not None:
        return numbered(schedule_id, directory)
    if not known:
        raise NotFound("There is no schedule yet: make one with /oncall schedule new, or in midwatch.yaml.")
    if len(known) > 1:
        raise BadInput(f"Say which schedule: {listed(by_name(directory))}.")
    return next(iter(known.values()))


def replaced(directory: Directory, named: NamedSchedule, override: Override) -> tuple[Person, ...]:
    """Who would be on call while it lasts without it, and is not with it."""
    if override.kind == OverrideKind.ADD.value:
        return ()
    turns = shifts(named.schedule, override.start_at, override.end_at)
    before = people_of(directory, dict.fromkeys(user for turn in turns for user in turn.people))
    if override.kind == OverrideKind.COVER.value:
        return tuple(person for person in before if person.id == override.covers_id)
    return tuple(person for person in before if person.id != override.person_id)


def people_of(directory: Directory, users: Iterable[str]) -> tuple[Person, ...]:
    return tuple(directory.people[int(user)] for user in users if int(user) in directory.people)
