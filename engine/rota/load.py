"""How much each person was and will be on call: who is asked first when somebody seeks cover.

Pure: never reads the clock or the database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from engine.directory import Person
from engine.rota.on_call import ShiftsOf

LOOK: Final = timedelta(weeks=4)  # to both sides of now


def load(schedules: Iterable[ShiftsOf]) -> Mapping[int, timedelta]:
    """By person: the time on call in these shifts.

    Two schedules at once count twice: each of them can ring.
    """
    total: Counter[int] = Counter()
    for schedule in schedules:
        for shift in schedule.shifts:
            seconds = int((shift.end - shift.start).total_seconds())
            total.update({person.id: seconds for person in shift.people})
    return {person: timedelta(seconds=seconds) for person, seconds in total.items()}


def least_loaded_first(people: Iterable[Person], loads: Mapping[int, timedelta]) -> Sequence[Person]:
    """Those with the same load by name, so that the order can be explained."""
    return sorted(people, key=lambda one: (loads.get(one.id, timedelta()), one.name.casefold(), one.id))
