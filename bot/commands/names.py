"""What people type on the command line, as the things it names.

Never guesses: what is not there is answered with what could have been meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from engine.config.durations import parse_duration
from engine.config.reading import did_you_mean
from engine.directory import Directory, NamedSchedule, Person, Service
from engine.errors import BadCommand, NotFound
from engine.rota.meant import listed, meant

Named = TypeVar("Named", Person, NamedSchedule, Service)


def person(directory: Directory, typed: str) -> Person:
    return _one("person", typed.lstrip("@"), [each for each in directory.people.values() if each.active])


def schedule(directory: Directory, typed: str) -> NamedSchedule:
    """As Slack understands it; of several none is picked."""
    found = schedules(directory, typed)
    if len(found) > 1:
        raise BadCommand(f"{typed!r} can be any of {listed(found)}: say which.")
    return found[0]


def schedules(directory: Directory, typed: str) -> Sequence[NamedSchedule]:
    """All that the name can mean, at least one."""
    return meant(typed, directory) or [_one("schedule", typed, directory.schedules.values())]


def service(services: Iterable[Service], typed: str) -> Service:
    return _one("service", typed, services)


def duration(typed: str) -> timedelta:
    value = parse_duration(typed)
    if not value:
        raise BadCommand(f"{typed!r} is no duration. Write it like 2h, 90m or 1h30m.")
    return value


def instant(typed: str) -> datetime:
    """ISO 8601; without an offset it is this machine's time."""
    try:
        value = datetime.fromisoformat(typed)
    except ValueError:
        raise BadCommand(f"{typed!r} is no time. Write it like 2026-11-30T18:00 or …T18:00Z.") from None
    return value.astimezone()


def _one(noun: str, name: str, known: Iterable[Named]) -> Named:
    by_name = {each.name: each for each in known}
    if name not in by_name:
        there = f" There are: {', '.join(sorted(by_name)) or 'none yet'}."
        raise NotFound(f"There is no {noun} {name!r}{did_you_mean(name, by_name) or '.' + there}")
    return by_name[name]
