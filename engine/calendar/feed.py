"""Shifts as entries of a calendar, each with an id that stays the same from one fetch to the next.

Pure. Never cuts a shift where the window begins: its id comes of its start.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from engine.schedule import Schedule, Shift, on_call, shifts

Version = tuple[datetime, Schedule]  # in force from then on, until the next one


@dataclass(frozen=True, slots=True)
class Entry:
    """One event: `uid` is the same as long as the same people are on call from the same instant on."""

    uid: str
    start: datetime
    end: datetime
    summary: str
    description: str = ""


def whole_shifts(versions: Sequence[Version], a: datetime, b: datetime) -> list[Shift]:
    """Who was and will be on call, each stretch answered by the version in force then; the first one
    has its real start, as far as a year back."""
    found: list[Shift] = []
    ends = [*(begins for begins, _ in versions[1:]), b]
    for (begins, schedule), end in zip(versions, ends, strict=False):  # without a version there is no end
        for shift in shifts(schedule, max(a, begins), min(b, end)):
            _append(found, shift)
    if found and found[0].start == a:
        begins, schedule = [version for version in versions if version[0] <= a][-1]
        since = on_call(schedule, a).since
        start = a if since is None else max(since, begins)
        found[0] = Shift(start, found[0].end, found[0].people)
    return found


def _append(found: list[Shift], shift: Shift) -> None:
    """At the end, as one with the last if the same people go on."""
    last = found[-1] if found else None
    if last is not None and last.people == shift.people and last.end == shift.start:
        found[-1] = Shift(last.start, shift.end, last.people)
    else:
        found.append(shift)


def entries_of_schedule(
    schedule_id: int, name: str, found: Iterable[Shift], names: Mapping[str, str]
) -> list[Entry]:
    """Everybody's shifts; a stretch with nobody is no entry."""
    return [
        Entry(
            _uid(schedule_id, "+".join(shift.people), shift.start),
            shift.start,
            shift.end,
            f"{_and([names.get(one, 'somebody') for one in shift.people])} ({name})",
        )
        for shift in found
        if shift.people
    ]


def entries_of_person(
    person: str, schedule_id: int, name: str, found: Iterable[Shift], names: Mapping[str, str]
) -> list[Entry]:
    """The shifts of one person, however the people beside them change."""
    own: list[Shift] = []
    beside: list[set[str]] = []
    for shift in found:
        if person not in shift.people:
            continue
        before = len(own)
        _append(own, Shift(shift.start, shift.end, (person,)))
        if len(own) > before:
            beside.append(set())
        beside[-1].update(set(shift.people) - {person})
    return [
        Entry(
            _uid(schedule_id, person, shift.start),
            shift.start,
            shift.end,
            f"On call: {name}",
            f"Together with {_and(sorted(names.get(one, 'somebody') for one in others))}" if others else "",
        )
        for shift, others in zip(own, beside, strict=True)
    ]


def _uid(schedule_id: int, who: str, start: datetime) -> str:
    said = f"{schedule_id} {who} {start.astimezone(UTC).isoformat()}"
    return f"{hashlib.sha256(said.encode()).hexdigest()[:32]}@midwatch"


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
