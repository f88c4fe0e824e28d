"""What is due of a schedule's shifts: reminders, who came on and who went, and when to look again.

Pure: the schedule, what was told last, and an instant in; a plan out. It compares who is on call now with
whom it said last, so a look that comes late makes up for everything at once and says each thing once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Final

from engine.schedule import Schedule, Shift, next_change, people_at, shifts

LOOK_AGAIN: Final = timedelta(days=1)  # at the latest: a version may begin that nobody armed for
LOOK_BACK: Final = timedelta(days=31)  # for when the present shift began
LOOK_AHEAD: Final = timedelta(days=62)  # and for when it ends
LATE_END: Final = timedelta(hours=1)  # later, nobody needs to hear any more that their shift is over
_INSTANT: Final = timedelta(microseconds=1)


class Reminder(StrEnum):
    """The kinds that a person can turn off."""

    DAY = "day"  # 24 hours before
    HOUR = "hour"
    START = "start"
    END = "end"


LEADS: Final = {Reminder.DAY: timedelta(days=1), Reminder.HOUR: timedelta(hours=1)}


@dataclass(frozen=True, slots=True)
class Told:
    """Who was said to be on call the last time, and up to when things were told."""

    people: frozenset[int]
    until: datetime


@dataclass(frozen=True, slots=True)
class Due:
    """One reminder of one person; `at` is the beginning or end that it is about."""

    kind: Reminder
    person: int
    at: datetime
    until: datetime | None = None  # of the shift that it announces


@dataclass(frozen=True, slots=True)
class Handing:
    """The people changed at `at`: who came, who went. With nobody in `present` it is a gap."""

    at: datetime
    until: datetime | None
    present: frozenset[int]
    came: frozenset[int]
    left: frozenset[int]


@dataclass(frozen=True, slots=True)
class Plan:
    reminders: tuple[Due, ...]
    handing: Handing | None  # None: nobody came on, and somebody still is
    told: Told
    again_at: datetime


def plan(schedule: Schedule, told: Told | None, now: datetime) -> Plan:
    """`told` is None at the first look at a schedule: it announces nothing that is so already."""
    present = frozenset(map(int, people_at(schedule, now)))
    ahead = shifts(schedule, now, now + 2 * LOOK_AGAIN + max(LEADS.values()))
    reminders, handing = list(_ahead(schedule, ahead, told, now)), None
    if told is not None and told.people != present:
        change = _change(schedule, told, present, now)
        reminders += _said(schedule, change, now)
        handing = change if change.came or not present else None
    return Plan(tuple(reminders), handing, Told(present, now), _again_at(ahead, now))


def _change(schedule: Schedule, told: Told, present: frozenset[int], now: datetime) -> Handing:
    back = shifts(schedule, max(told.until, now - LOOK_BACK), now + _INSTANT)
    # Why not always: an override that was set or cancelled a moment ago, or an edit, changes the present
    # without a bound that lies between the last look and now.
    began = back[-1].start if len(back) > 1 else now
    until = next_change(schedule, now)
    return Handing(began, until, present, present - told.people, told.people - present)


def _said(schedule: Schedule, change: Handing, now: datetime) -> Iterator[Due]:
    for person in sorted(change.came):
        yield Due(Reminder.START, person, change.at, ends(schedule, str(person), now))
    if now - change.at <= LATE_END:
        for person in sorted(change.left):
            yield Due(Reminder.END, person, change.at)


def _ahead(schedule: Schedule, ahead: Sequence[Shift], told: Told | None, now: datetime) -> Iterator[Due]:
    """Reminders of shifts that are still to begin, whose time has come since the last look."""
    if told is None:
        return
    for person, start in _beginnings(ahead):
        for kind, lead in LEADS.items():
            if told.until < start - lead <= now and _makes_sense(schedule, kind, person, start, now):
                yield Due(kind, int(person), start, ends(schedule, person, start))


def _makes_sense(schedule: Schedule, kind: Reminder, person: str, start: datetime, now: datetime) -> bool:
    """Not when a nearer reminder says the same, and not to whom the lead finds on call anyway."""
    if kind is Reminder.DAY and start - now <= LEADS[Reminder.HOUR]:
        return False
    before = shifts(schedule, start - LEADS[kind], start)
    return not any(person in shift.people for shift in before)


def _beginnings(ahead: Sequence[Shift]) -> Iterator[tuple[str, datetime]]:
    """Each time that somebody comes on."""
    for before, shift in pairwise(ahead):
        for person in shift.people:
            if person not in before.people:
                yield person, shift.start


def ends(schedule: Schedule, person: str, start: datetime) -> datetime | None:
    """When somebody who is on call at `start` goes off; None if not in two months."""
    found = shifts(schedule, start, start + LOOK_AHEAD)
    return next((shift.start for shift in found if person not in shift.people), None)


def _again_at(ahead: Sequence[Shift], now: datetime) -> datetime:
    moments = [now + LOOK_AGAIN, *(shift.start for shift in ahead[1:2])]
    for _, start in _beginnings(ahead):
        moments += [start - lead for lead in LEADS.values()]
    return min(moment for moment in moments if moment > now)
