"""Resolves a policy to people at an instant: the ladder of an incident, and the fallback chain.

Pure: never reads the clock or the database. Somebody without a usable contact method is not
somebody who can be paged, and is named in the remarks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from engine import contact
from engine.directory import Directory, NamedSchedule, Person, Policy, Target, TargetKind
from engine.escalation import heard
from engine.escalation.fate import Ladder, Rung
from engine.models import Urgency
from engine.pager.grounds import Grounds
from engine.schedule import on_call

ASSIGNED_WAIT: Final = timedelta(minutes=5)  # when the policy has no level to take it from


@dataclass(frozen=True, slots=True)
class Link:
    """One link of the fallback chain: people, or the URL with this index in the settings."""

    people: tuple[int, ...] = ()
    channels: tuple[str, ...] = ()
    urls: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()  # who should have been in it, or in an empty one before it

    @property
    def empty(self) -> bool:
        return not (self.people or self.channels or self.urls)


class Resolver:
    """Resolves targets at one instant for one urgency, and collects what was in the way."""

    def __init__(self, directory: Directory, urgency: Urgency, now: datetime) -> None:
        self._directory = directory
        self._urgency = heard(urgency)
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
        named = (self._fallbacks_of(policy), directory.fallback, _persons(directory.admins))
        links = [self._link(targets) for targets in named]
        links.append(Link(urls=tuple(range(len(directory.fallback_urls)))))
        kept: list[Link] = []
        missing: tuple[str, ...] = ()
        for link in links:
            missing += link.remarks
            if not link.empty:
                kept.append(replace(link, remarks=missing))
                missing = ()
        return tuple(kept)

    def _fallbacks_of(self, policy: Policy | None) -> tuple[Target, ...]:
        targets = [target for level in (policy.levels if policy else ()) for target in level.targets]
        schedules = [self._schedule(one) for one in targets if one.kind is TargetKind.SCHEDULE]
        return _persons(one.fallback for one in schedules if one is not None and one.fallback is not None)

    def _link(self, targets: Iterable[Target]) -> Link:
        own = Resolver(self._directory, self._urgency, self._now)  # its remarks are of the link alone
        rung = own._rung(targets, ASSIGNED_WAIT)
        return Link(rung.people, rung.channels, remarks=tuple(own.remarks))

    def _assigned(self, target: Target | None, wait: timedelta) -> Rung | None:
        return None if target is None else self._rung((target,), wait)

    def _rung(self, targets: Iterable[Target], timeout: timedelta) -> Rung:
        people: list[int] = []
        channels: list[str] = []
        for target in targets:
            if target.kind is TargetKind.CHANNEL:
                channels.append(str(target.ref))
            elif target.kind is TargetKind.PERSON:
                people += self._reachable((int(target.ref),))
            else:
                people += self._on_call(target)
        return Rung(tuple(dict.fromkeys(people)), tuple(dict.fromkeys(channels)), timeout)

    def _on_call(self, target: Target) -> list[int]:
        """Who of the schedule can be reached; where that is nobody, its fallback."""
        schedule = self._schedule(target)
        if schedule is None:
            self._remark("a level names a schedule that was deleted")
            return []
        people = [int(one) for one in on_call(schedule.schedule, self._now).people]
        if not people:
            self._remark(f"nobody is on call on {schedule.name}")
        reachable = self._reachable(people)
        if reachable or schedule.fallback is None:
            return reachable
        return self._reachable((schedule.fallback,))

    def _schedule(self, target: Target) -> NamedSchedule | None:
        return self._directory.schedules.get(int(target.ref))

    def _reachable(self, people: Iterable[int]) -> list[int]:
        return [one for one in people if self._can_reach(one)]

    def _can_reach(self, person_id: int) -> bool:
        person = self._directory.people.get(person_id)
        if person is None or not person.active:
            self._remark(f"{person.name if person else 'a person'} should be paged and is no longer here")
            return False
        if not steps(person, self._urgency):
            self._remark(f"{person.name} has no contact method that can be used")
            return False
        return True

    def _remark(self, text: str) -> None:
        if text not in self.remarks:
            self.remarks.append(text)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A policy as people, at one instant."""

    ladder: Ladder
    chain: tuple[Link, ...]
    remarks: tuple[str, ...]


class Ladders:
    """The policies of a batch at one instant; each is resolved once, however many incidents walk it."""

    def __init__(self, directory: Directory, now: datetime) -> None:
        self._directory = directory
        self._now = now
        self.grounds = Grounds(directory, now)
        self._known: dict[tuple[int | None, Urgency, Target | None], Resolved] = {}

    def of(self, policy: Policy | None, urgency: Urgency, assigned: Target | None) -> Resolved:
        asked = (None if policy is None else policy.version_id, urgency, assigned)
        if asked not in self._known:
            resolver = Resolver(self._directory, urgency, self._now)
            ladder, chain = resolver.ladder(policy, assigned), resolver.chain(policy)
            self._known[asked] = Resolved(ladder, chain, tuple(resolver.remarks))
        return self._known[asked]


def reaches_somebody(chain: Iterable[Link]) -> bool:
    """A channel never counts as having reached somebody."""
    return any(link.people or link.urls for link in chain)


def steps(person: Person, urgency: Urgency) -> tuple[contact.Step, ...]:
    """How a person is paged; who is asked by hand about urgency `none` is told by the low rules."""
    return contact.steps(person, heard(urgency))


def _persons(ids: Iterable[int]) -> tuple[Target, ...]:
    return tuple(Target(TargetKind.PERSON, one) for one in ids)
