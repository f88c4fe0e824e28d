"""What an edit of a schedule changes, in plain words: for the form that asks, and for the channel.

Pure. Clock times are those of the schedule's zone, in which it is typed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from engine.clockwords import span, wall
from engine.directory import Person
from engine.schedule import Schedule, Shift
from engine.schedule.diff import Changed

NOBODY: Final = "⚠️ nobody"
TOLD: Final = 10  # lines in a channel

People = Mapping[int, Person]


def called(users: Sequence[str], people: People) -> str:
    """People by the text of their id, as they are called."""
    names = [people[int(user)].name for user in users if int(user) in people]
    return " and ".join(names) or NOBODY


def shift_lines(found: Sequence[Shift], zone: str, people: People, now: datetime, most: int) -> list[str]:
    """A line for each shift, gaps too; what is beyond `most` is counted."""
    lines = [f"{_when(one, zone, now)}: {called(one.people, people)}" for one in found[:most]]
    more = len(found) - most
    return [*lines, f"and {more} more"] if more > 0 else lines


def _when(one: Shift, zone: str, now: datetime) -> str:
    return f"now to {wall(one.end, zone)}" if one.start <= now else span(one.start, one.end, zone)


def change_lines(changes: Sequence[Changed], zone: str, people: People, most: int) -> list[str]:
    """A line for each changed shift: when, from whom, to whom; what is beyond `most` is counted."""
    lines = [
        f"{span(one.start, one.end, zone)}: {called(one.before, people)} → {called(one.after, people)}"
        for one in changes[:most]
    ]
    more = len(changes) - most
    return [*lines, f"and {more} more"] if more > 0 else lines


def told(who: str, name: str, changes: Sequence[Changed], schedule: Schedule, people: People) -> str:
    """For the channel, after an edit."""
    zone = schedule.timezone
    if not changes:
        return f"📅 {who} changed {name}; nobody's shift in the next 4 weeks changes."
    lines = change_lines(changes, zone, people, TOLD)
    return "\n".join([f"📅 {who} changed {name} (times in {zone}):", *lines])
