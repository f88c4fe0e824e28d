"""Shifts as messages: what comes next on a schedule, and when somebody is on call.

Never looks anything up and never sends. A gap is named as a gap, and so are the hours that the clock skips.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from bot.slack import escape
from bot.slack.answers import names, paragraphs
from bot.slack.message import Message, note
from engine.directory import Person
from engine.rota.on_call import ShiftOf, ShiftsOf
from engine.schedule.skipped import Skipped

NOBODY: Final = "⚠️ *nobody* (a gap)"


def skipped_line(one: Skipped) -> str:
    when = f"{one.opens:%a} {one.opens.day} {one.opens:%b} {one.opens:%H:%M}–{one.closes:%H:%M}"
    return (
        f"⚠️ {when} of layer *{escape.line(one.layer, 60)}* does not exist: "
        "the clock jumps over it, and nobody is on call by it."
    )


def of_schedules(found: Sequence[ShiftsOf], start: datetime, end: datetime) -> Message:
    """Every shift in the window, schedule by schedule."""
    if not found:
        return note("There was no schedule at that time.")
    lines: list[str] = []
    for one in found:
        lines.append(f"*{escape.line(one.schedule, 80)}* {escape.day(start)} to {escape.day(end)}")
        lines += _shifts(one.shifts, end) if one.shifts else ["There was no such schedule then."]
        lines += map(skipped_line, one.skipped)
    return paragraphs(lines)


def following(found: Sequence[ShiftsOf], count: int) -> Message:
    """Who is on call, and the shifts after that."""
    lines: list[str] = []
    for one in found:
        now, *later = one.shifts[: count + 1]
        lines.append(f"📟 *{escape.line(one.schedule, 80)}*: {_people(now)} until {escape.day(now.end)}")
        lines += [f"then {_people(each)} until {escape.day(each.end)}" for each in later]
        if len(later) < count:
            lines.append("No more changes within a year.")
        last = one.shifts[: count + 1][-1].end
        lines += [skipped_line(each) for each in one.skipped if each.opens.date() <= last.date()]
    return paragraphs(lines)


def of_person(person: Person, found: Sequence[ShiftsOf], start: datetime, end: datetime) -> Message:
    """When one person is on call, on every schedule, in order of time."""
    own = _own(person, found)
    window = f"{escape.day(start)} to {escape.day(end)}"
    if not own:
        return note(f"{_name(person)} is not on call from {window}.")
    lines = [_own_line(person, schedule, shift, end) for schedule, shift in own]
    return paragraphs([f"{_name(person)}, {window}", *lines])


def next_of_person(person: Person, found: Sequence[ShiftsOf], count: int) -> Message:
    """The next so many times that one person is on call."""
    own = _own(person, found)[:count]
    if not own:
        return note(f"{_name(person)} is not on call within a year.")
    return paragraphs([_name(person), *(_own_line(person, schedule, shift, None) for schedule, shift in own)])


def _own_line(person: Person, schedule: str, shift: ShiftOf, end: datetime | None) -> str:
    others = [one for one in shift.people if one.id != person.id]
    beside = f" with {names(others)}" if others else ""
    return f"📟 {_when(shift, end)} on *{escape.line(schedule, 80)}*{beside}"


def _own(person: Person, found: Iterable[ShiftsOf]) -> list[tuple[str, ShiftOf]]:
    own = [
        (one.schedule, shift)
        for one in found
        for shift in one.shifts
        if any(each.id == person.id for each in shift.people)
    ]
    return sorted(own, key=lambda each: (each[1].start, each[0]))


def _name(person: Person) -> str:
    return f"*{escape.line(person.name, 60)}*"


def _when(shift: ShiftOf, end: datetime | None) -> str:
    """A shift that ends with the window goes on behind it."""
    if shift.end == end:
        return f"from {escape.day(shift.start)} onwards"
    return f"{escape.day(shift.start)} to {escape.day(shift.end)}"


def _shifts(shifts: Iterable[ShiftOf], end: datetime) -> Iterator[str]:
    """Who first: the times fill a line of a phone."""
    for one in shifts:
        yield f"{_people(one)}: {_when(one, end)}"


def _people(shift: ShiftOf) -> str:
    return names(shift.people) if shift.people else NOBODY
