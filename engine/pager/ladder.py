"""Resolves a policy to people at an instant: the ladder of an incident, and the fallback chain.

Pure: never reads the clock or the database. Somebody without a usable contact method is not
somebody who can be paged, and is named in the remarks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from engine import contact
from engine.directory import Directory, Person, Policy, Target, TargetKind
from engine.escalation.fate import Ladder, Rung
from engine.models import Urgency
from engine.schedule import on_call

ASSIGNED_WAIT: Final = timedelta(minutes=5)  # when the policy has no level to take it from


@dataclass(frozen=True, slots=True)
class Link:
    """One link of the fallback chain: people, or the URL with this index in the settings."""

    people: tuple[int, ...] = ()
    channels: tuple[str, ...] = ()
    urls: tuple[int, ...] = ()


class Resolver:
    """Resolves targets at one instant for one urgency, and collects what was in the way."""

    def __init__(self, directory: Directory, urgency: Urgency, now: datetime) -> None:
        self._directory = directory
        self._urgency = urgency if urgency is not Urgency.NONE else Urgency.LOW
        self._now = now
        self.remarks: list[str] = []

    def ladder(self, policy: Policy | None, assigned: Target | None) -> Ladder:
        if policy is None:
            self._remark("this service has no policy")
            return Ladder(reassigned=self._assigned(assigned, ASSIGNED_WAIT))
        rungs = tuple(self._rung(level.targets, level.timeout) for level in policy.levels)
        wait = rungs[0].timeout if rungs else ASSIGNED_WAIT
        return Ladder(
            rungs, policy.repeat, policy.on_exhaustion, policy.ack_timeout, self._assigned(assigned, wait)
        )

    def chain(self, policy: Policy | None) -> tuple[Link, ...]:
        """Who is left when nobody can be found or reached, nearest first; empty links are left out."""
        directory = self._directory
        targets = [target for level in (policy.levels if policy else ()) for target in level.targets]
        own = [
            schedule.fallback
            for target in targets
            if target.kind is TargetKind.SCHEDULE
            and (schedule := directory.schedules.get(int(target.ref))) is not None
            and schedule.fallback is not None
        ]
        fallback = self._rung(directory.fallback, ASSIGNED_WAIT)
        links = (
            Link(self._reachable(own)),
            Link(fallback.people, fallback.channels),
            Link(self._reachable(directory.admins)),
            Link(urls=tuple(range(len(directory.fallback_urls)))),
        )
        return tuple(link for link in links if link != Link())

    def _assigned(self, target: Target | None, wait: timedelta) -> Rung | None:
        return None if target is None else self._rung((target,), wait)

    def _rung(self, targets: Iterable[Target], timeout: timedelta) -> Rung:
        people: list[int] = []
        channels: list[str] = []
        for target in targets:
            if target.kind is TargetKind.CHANNEL:
                channels.append(str(target.ref))
            else:
                people.extend(self._people(target))
        return Rung(self._reachable(people), tuple(dict.fromkeys(channels)), timeout)

    def _people(self, target: Target) -> Iterable[int]:
        if target.kind is TargetKind.PERSON:
            return (int(target.ref),)
        schedule = self._directory.schedules.get(int(target.ref))
        if schedule is None:
            self._remark("a level names a schedule that was deleted")
            return ()
        people = on_call(schedule.schedule, self._now).people
        if not people:
            self._remark(f"nobody is on call on {schedule.name}")
        return tuple(int(one) for one in people)

    def _reachable(self, people: Iterable[int]) -> tuple[int, ...]:
        return tuple(one for one in dict.fromkeys(people) if self._can_reach(one))

    def _can_reach(self, person_id: int) -> bool:
        person = self._directory.people.get(person_id)
        if person is None or not person.active:
            self._remark("a person who should be paged is no longer here")
            return False
        if not steps(person, self._urgency):
            self._remark(f"{person.name} has no contact method that can be used")
            return False
        return True

    def _remark(self, text: str) -> None:
        if text not in self.remarks:
            self.remarks.append(text)


def steps(person: Person, urgency: Urgency) -> tuple[contact.Step, ...]:
    """How a person is paged; urgency `none` by hand is told by the low rules."""
    return contact.steps(person, urgency if urgency is not Urgency.NONE else Urgency.LOW)
