"""How much each person was and will be on call: who is asked first when somebody seeks cover.

Pure: never reads the clock or the database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from engine.directory import Override, Person
from engine.schedule import OverrideKind, Schedule, ScheduleOverride, shifts, with_overrides

LOOK: Final = timedelta(weeks=4)  # to both sides


def load(schedules: Iterable[Schedule], now: datetime) -> Mapping[int, timedelta]:
    """By person: the time on call in the last and the next four weeks, on all these schedules together.

    Two schedules at once count twice: each of them can ring.
    """
    total: Counter[int] = Counter()
    for schedule in schedules:
        for shift in shifts(schedule, now - LOOK, now + LOOK):
            seconds = int((shift.end - shift.start).total_seconds())
            total.update({int(user): seconds for user in shift.people})
    return {person: timedelta(seconds=seconds) for person, seconds in total.items()}


def least_loaded_first(people: Iterable[Person], loads: Mapping[int, timedelta]) -> Sequence[Person]:
    """Those with the same load by name, so that the order can be explained."""
    return sorted(people, key=lambda one: (loads.get(one.id, timedelta()), one.name.casefold(), one.id))


def as_it_was(schedule: Schedule, overrides: Iterable[Override]) -> Schedule:
    """With all of these overrides, those that are long over too, in the order of their creation."""
    taken = [
        ScheduleOverride(
            OverrideKind(one.kind),
            str(one.person_id),
            one.start_at,
            one.end_at,
            None if one.covers_id is None else str(one.covers_id),
        )
        for one in sorted(overrides, key=lambda one: one.id)
    ]
    return with_overrides(replace(schedule, overrides=()), taken)
