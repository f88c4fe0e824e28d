"""Whom a calendar's events mean, and who is on call by them from when until when.

Pure. Never guesses: an event whose attendees and summary name nobody here puts nobody on call, and is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final

from engine.calendar.read import Event
from engine.directory import Person
from engine.models import Method
from engine.schedule import Shift

Match = Callable[[Event], tuple[str, ...]]  # the ids of those an event means

MOST_SAID: Final = 20
_BETWEEN: Final = re.compile(r"\s*(?:[,;/&+|]|\band\b|\s-\s)\s*", re.IGNORECASE)
_BESIDES: Final = re.compile(r"\([^)]*\)|\[[^\]]*\]")
_LEAD: Final = re.compile(r"^\s*(?:on[- ]?call|primary|secondary|shift)\b\s*[:-]?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Matched:
    """`shifts` do not overlap and leave out the time with nobody; `unmatched` are the titles of events."""

    shifts: tuple[Shift, ...]
    unmatched: tuple[str, ...]


def matcher(people: Iterable[Person]) -> Match:
    """By the e-mail of an attendee, else by names in the summary: "Ana", "On call: ana and ben"."""
    known = sorted(people, key=lambda person: person.active)  # an active person wins over one who left
    by_email = {
        method.address.strip().casefold(): str(person.id)
        for person in known
        for method in person.methods
        if method.kind is Method.EMAIL
    }
    by_name = {person.name.casefold(): str(person.id) for person in known}

    def match(event: Event) -> tuple[str, ...]:
        invited = {by_email[email] for email in event.emails if email in by_email}
        if invited:
            return tuple(sorted(invited))
        found = (by_name.get(word) or by_email.get(word) for word in _words(event.summary))
        return tuple(sorted({one for one in found if one is not None}))

    return match


def _words(summary: str) -> Iterator[str]:
    """What may be a name: the whole, what follows a colon, and the parts of either."""
    plain = _BESIDES.sub(" ", summary)
    for text in (summary, plain, _LEAD.sub("", plain), plain.rpartition(":")[2]):
        yield from (word.strip().lstrip("@").casefold() for word in (text, *_BETWEEN.split(text)))


def match_events(events: Sequence[Event], unread: Sequence[str], match: Match) -> Matched:
    """Who is on call: everybody whose event runs at that time."""
    named = [(event, match(event)) for event in events]
    strange = dict.fromkeys(_title(event) for event, people in named if not people)
    shifts = _laid_out([(event, people) for event, people in named if people])
    return Matched(tuple(shifts), tuple(dict.fromkeys([*strange, *unread]))[:MOST_SAID])


def _title(event: Event) -> str:
    return event.summary or ", ".join(event.emails) or "an event without a title"


def _laid_out(named: Sequence[tuple[Event, tuple[str, ...]]]) -> list[Shift]:
    """Stretches as long as can be, in order, each with everybody whose event covers it."""
    changes: dict[datetime, list[tuple[int, tuple[str, ...]]]] = {}
    for event, people in named:
        changes.setdefault(event.start, []).append((1, people))
        changes.setdefault(event.end, []).append((-1, people))
    running: dict[str, int] = {}
    found: list[Shift] = []
    for start, end in pairwise(sorted(changes)):
        for step, people in changes[start]:
            for one in people:
                running[one] = running.get(one, 0) + step
        there = tuple(sorted(one for one, count in running.items() if count > 0))
        if found and found[-1].end == start and found[-1].people == there:
            found[-1] = Shift(found[-1].start, end, there)
        elif there:
            found.append(Shift(start, end, there))
    return found


def spliced(before: Sequence[Shift], after: Sequence[Shift], at: datetime) -> list[Shift]:
    """What was until `at`, and from then on what is now: the past does not change."""
    found = [Shift(one.start, min(one.end, at), one.people) for one in before if one.start < at]
    for one in after:
        start = max(one.start, at)
        if start >= one.end:
            continue
        if found and found[-1].end == start and found[-1].people == one.people:
            found[-1] = Shift(found[-1].start, one.end, one.people)
        else:
            found.append(Shift(start, one.end, one.people))
    return found
