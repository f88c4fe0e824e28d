"""Which override is meant by what was asked for, and whose place it takes; or why it cannot be.

Pure: never reads the clock or the database.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from engine.directory import Directory, NamedSchedule, Override, Person, TargetKind
from engine.errors import BadInput, NotFound
from engine.models import Actor
from engine.schedule import OverrideKind, people_at, shifts


@dataclass(frozen=True, slots=True)
class Asked:
    """An override as it is asked for. Without a schedule it is the one that can be meant."""

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
    named = _meant(directory, asked.schedule_id, asked.actor, now)
    bounds = (asked.start_at, asked.end_at)
    return named, Override(0, named.id, asked.kind, person.id, asked.covers_id, *bounds, asked.actor.name)


def _check_interval(start_at: datetime, end_at: datetime, now: datetime) -> None:
    if end_at <= start_at:
        raise BadInput("An override ends after it begins.")
    if end_at <= now:
        raise BadInput("That time is over already.")


def _active(directory: Directory, person_id: int) -> Person:
    person = directory.people.get(person_id)
    if person is None:
        raise NotFound("There is no such person here.")
    if not person.active:
        raise BadInput(f"{person.name} was deactivated and cannot be on call.")
    return person


def _meant(directory: Directory, schedule_id: int | None, actor: Actor, now: datetime) -> NamedSchedule:
    """The only schedule; else the only one that a policy pages first; else the only one of the actor."""
    known = directory.schedules
    if schedule_id is not None:
        if schedule_id not in known:
            raise NotFound("There is no such schedule here.")
        return known[schedule_id]
    if not known:
        raise NotFound("There is no schedule yet: make one with /oncall schedule new, or in midwatch.yaml.")
    own = [s for s in known.values() if str(actor.person_id) in people_at(s.schedule, now)]
    for candidates in (list(known.values()), _paged_first(directory), own):
        if len(candidates) == 1:
            return candidates[0]
    raise BadInput(f"Say which schedule: {', '.join(sorted(s.name for s in known.values()))}.")


def _paged_first(directory: Directory) -> list[NamedSchedule]:
    """The schedules at the first level of a policy that some service uses."""
    used = {service.policy_id for service in directory.services.values()}
    ids = {
        target.ref
        for policy in directory.policies.values()
        if policy.id in used and policy.levels
        for target in policy.levels[0].targets
        if target.kind is TargetKind.SCHEDULE
    }
    return [schedule for schedule in directory.schedules.values() if schedule.id in ids]


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
