"""What people are told of an override, by direct message and in the schedule's channel, as plain text.

Pure. Each reads the times on their own wall clock, with its zone; the channel reads the schedule's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from engine.clockwords import between
from engine.directory import Directory, NamedSchedule, Override, Person
from engine.models import Actor, NewDelivery
from engine.rota import addressed
from engine.schedule import OverrideKind


def names(people: Sequence[Person]) -> str:
    return " and ".join(person.name for person in people)


def set_notices(
    directory: Directory,
    named: NamedSchedule,
    override: Override,
    replaced: Sequence[Person],
    actor: Actor,
    now: datetime,
) -> list[NewDelivery]:
    """For whoever takes over, those whose place is taken, who did it, and the channel."""
    person = directory.people[override.person_id]
    place = f" in place of {names(replaced)}" if replaced else ""
    joins = " in addition" if override.kind == OverrideKind.ADD.value else place
    # Why not its number: people are told in the transaction that makes it, and before it has one.
    key = f"override:{named.id}:{override.person_id}:{override.start_at.timestamp()}:{now.timestamp()}"
    told = _Told(directory, named, override, actor, key, now)
    told.person(person, f"📟 You are on call on {named.name}{joins}")
    for one in replaced:
        told.person(one, f"🔁 {person.name} takes over from you on {named.name}")
    told.actor(f"🔁 {person.name} is on call on {named.name}{joins}")
    told.channel(f"🔁 {person.name} is on call on {named.name}{joins}")
    return told.notices


def cancelled_notices(
    directory: Directory,
    named: NamedSchedule,
    override: Override,
    back: Sequence[Person],
    actor: Actor,
    now: datetime,
) -> list[NewDelivery]:
    """The same people, when it is taken back: `back` are on call again in its place."""
    person = directory.people[override.person_id]
    again = f": {names(back)} on call" if back else ""
    told = _Told(directory, named, override, actor, f"override:{override.id}:cancelled", now)
    told.person(person, f"↩️ Your override on {named.name} was cancelled")
    for one in back:
        told.person(
            one, f"↩️ You are on call on {named.name} again: the override of {person.name} is cancelled"
        )
    told.actor(f"↩️ The override of {person.name} on {named.name} is cancelled{again}")
    told.channel(f"↩️ The override of {person.name} on {named.name} is cancelled{again}")
    return told.notices


class _Told:
    """Collects who is told what; nobody twice."""

    def __init__(
        self,
        directory: Directory,
        named: NamedSchedule,
        override: Override,
        actor: Actor,
        key: str,
        now: datetime,
    ) -> None:
        self._directory = directory
        self._named = named
        self._override = override
        self._actor = actor
        self._key = key
        self._now = now
        self._seen: set[int] = set()
        self.notices: list[NewDelivery] = []

    def person(self, person: Person, lead: str) -> None:
        if person.id in self._seen:
            return
        self._seen.add(person.id)
        by = "" if person.id == self._actor.person_id else self._actor.name
        text = self._text(lead, person.timezone, by)
        self._add([addressed.to_person(person, f"{self._key}:p{person.id}", {"text": text}, self._now)])

    def actor(self, lead: str) -> None:
        person = self._directory.people.get(self._actor.person_id or 0)
        if person is not None:
            self.person(person, lead)

    def channel(self, lead: str) -> None:
        if self._named.channel:
            text = self._text(lead, self._named.schedule.timezone, self._actor.name)
            key = f"{self._key}:channel"
            self._add([addressed.to_channel(self._named.channel, key, {"text": text}, self._now)])

    def _text(self, lead: str, timezone: str, by: str) -> str:
        when = between(self._override.start_at, self._override.end_at, timezone)
        return f"{lead}, {when}{f' (by {by})' if by else ''}."

    def _add(self, new: Iterable[NewDelivery | None]) -> None:
        self.notices += [one for one in new if one is not None]
