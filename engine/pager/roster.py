"""Who is on call now and next, and the overrides that change it.

Never works out who is on call by itself: the schedule's own rules do (engine.schedule).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Directory, NamedSchedule, Override, Person, TargetKind
from engine.errors import BadInput, NotFound
from engine.models import ORG, Actor
from engine.schedule import OverrideKind, on_call, people_at
from engine.store import directory as store
from engine.store import schedules
from engine.vault import Vault

log = structlog.get_logger(__name__)

# Why at all: versions that begin later and overrides that ended move no revision.
KEPT_FOR: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class OnCallNow:
    """Who is on call on one schedule, why, and who is next. No `until`: for more than a year."""

    schedule_id: int
    schedule: str
    people: tuple[Person, ...]
    reason: str
    since: datetime | None
    until: datetime | None
    next_people: tuple[Person, ...]
    next_at: datetime | None


@dataclass(frozen=True, slots=True)
class OverrideSet:
    """What an override did: `replaced` are those it takes the place of when it begins."""

    override: Override
    schedule: str
    replaced: tuple[Person, ...]


class Roster:
    """`fallback_urls` (MIDWATCH_FALLBACK_URLS) end the organisation's fallback chain."""

    def __init__(
        self, database: Database, clock: Clock, vault: Vault, *, fallback_urls: Sequence[str] = ()
    ) -> None:
        self._database = database
        self._clock = clock
        self._vault = vault
        self._fallback_urls = tuple(fallback_urls)
        self._kept: tuple[datetime, Directory] | None = None

    async def directory(self) -> Directory:
        """What is true now; costs one small query while nothing changes."""
        now = self._clock.now()
        async with self._database.look() as tx:
            if self._kept is not None:
                read_at, kept = self._kept
                fresh = timedelta() <= now - read_at < KEPT_FOR
                if fresh and kept.rev == await store.revision(tx, ORG):
                    return kept
            directory = await self._read(tx, now)
        self._kept = (now, directory)
        return directory

    async def who(self, at: datetime | None = None) -> list[OnCallNow]:
        """Each schedule by name, as it is now or was or will be at `at`."""
        if at is None:
            at, directory = self._clock.now(), await self.directory()
        else:
            async with self._database.snapshot() as tx:
                directory = await self._read(tx, at)
        named = sorted(directory.schedules.values(), key=lambda schedule: schedule.name.casefold())
        return [_on_call_now(directory, schedule, at) for schedule in named]

    async def override(
        self,
        *,
        schedule_id: int | None,
        person_id: int,
        start_at: datetime,
        end_at: datetime,
        actor: Actor,
        kind: str = OverrideKind.REPLACE_ALL.value,
        covers_id: int | None = None,
    ) -> OverrideSet:
        """Put a person on call. Without a schedule it is the one that can be meant, or a question back."""
        now = self._clock.now()

        async def unit(tx: Tx) -> OverrideSet:
            return await self.place(
                tx,
                now,
                schedule_id=schedule_id,
                person_id=person_id,
                start_at=start_at,
                end_at=end_at,
                actor=actor,
                kind=kind,
                covers_id=covers_id,
            )

        done = await self._database.write(unit, rank=Writer.RESPOND)
        log.info("override.set", override=done.override.id, schedule=done.schedule, via=actor.via)
        return done

    async def place(
        self,
        tx: Tx,
        now: datetime,
        *,
        schedule_id: int | None,
        person_id: int,
        start_at: datetime,
        end_at: datetime,
        actor: Actor,
        kind: str = OverrideKind.REPLACE_ALL.value,
        covers_id: int | None = None,
    ) -> OverrideSet:
        """The same in a transaction of the caller's, as its last change: counters are locked last."""
        _check_interval(start_at, end_at, now)
        await store.lock(tx, ORG)
        directory = await self._read(tx, now)
        person = _active(directory, person_id)
        covered = None if covers_id is None else _active(directory, covers_id)
        if (covered is None) is (kind == OverrideKind.COVER.value):
            raise BadInput("A cover names whom it covers, and nothing else does.")
        named = _meant(directory, schedule_id, actor, now)
        wanted = Override(0, named.id, kind, person.id, covers_id, start_at, end_at, actor.name)
        override_id = await schedules.insert_override(tx, ORG, wanted, now)
        await store.bump(tx, ORG)
        replaced = _replaced(directory, named, wanted)
        return OverrideSet(replace(wanted, id=override_id), named.name, replaced)

    async def overrides(self, schedule_id: int | None = None) -> list[Override]:
        """Those that are not over, in the order of their creation."""
        async with self._database.snapshot() as tx:
            return await schedules.read_overrides(tx, ORG, after=self._clock.now(), schedule_id=schedule_id)

    async def cancel_override(self, override_id: int, actor: Actor) -> Override:
        now = self._clock.now()

        async def unit(tx: Tx) -> Override | None:
            cancelled = await schedules.cancel_override(tx, ORG, override_id, now)
            if cancelled is not None:
                await store.bump(tx, ORG)
            return cancelled

        cancelled = await self._database.write(unit, rank=Writer.RESPOND)
        if cancelled is None:
            raise NotFound("That override is over or was cancelled already.")
        log.info("override.cancelled", override=override_id, via=actor.via)
        return cancelled

    async def _read(self, tx: Tx, at: datetime) -> Directory:
        directory = await store.read(tx, ORG, at, self._vault)
        return replace(directory, fallback_urls=self._fallback_urls)


def _on_call_now(directory: Directory, named: NamedSchedule, at: datetime) -> OnCallNow:
    names = {str(person.id): person.name for person in directory.people.values()}
    now = on_call(named.schedule, at, names)
    following = people_at(named.schedule, now.until) if now.until else ()
    return OnCallNow(
        schedule_id=named.id,
        schedule=named.name,
        people=_people(directory, now.people),
        reason=now.reason,
        since=now.since,
        until=now.until,
        next_people=_people(directory, following),
        next_at=now.until,
    )


def _people(directory: Directory, users: Iterable[str]) -> tuple[Person, ...]:
    return tuple(directory.people[int(user)] for user in users if int(user) in directory.people)


def _check_interval(start_at: datetime, end_at: datetime, now: datetime) -> None:
    if end_at <= start_at:
        raise BadInput("An override ends after it begins.")
    if end_at <= now:
        raise BadInput("That time is over already.")


def _active(directory: Directory, person_id: int) -> Person:
    person = directory.people.get(person_id)
    if person is None:
        raise NotFound("There is no such person here.")
    if not person.active:
        raise BadInput(f"{person.name} was deactivated and cannot be on call.")
    return person


def _meant(directory: Directory, schedule_id: int | None, actor: Actor, now: datetime) -> NamedSchedule:
    """The only schedule; else the only one that a policy pages first; else the only one of the actor."""
    known = directory.schedules
    if schedule_id is not None:
        if schedule_id not in known:
            raise NotFound("There is no such schedule here.")
        return known[schedule_id]
    if not known:
        raise NotFound("There is no schedule yet: write one into midwatch.yaml.")
    own = [s for s in known.values() if str(actor.person_id) in people_at(s.schedule, now)]
    for candidates in (list(known.values()), _paged_first(directory), own):
        if len(candidates) == 1:
            return candidates[0]
    raise BadInput(f"Say which schedule: {', '.join(sorted(s.name for s in known.values()))}.")


def _paged_first(directory: Directory) -> list[NamedSchedule]:
    """The schedules at the first level of a policy that some service uses."""
    used = {service.policy_id for service in directory.services.values()}
    ids = {
        target.ref
        for policy in directory.policies.values()
        if policy.id in used and policy.levels
        for target in policy.levels[0].targets
        if target.kind is TargetKind.SCHEDULE
    }
    return [schedule for schedule in directory.schedules.values() if schedule.id in ids]


def _replaced(directory: Directory, named: NamedSchedule, override: Override) -> tuple[Person, ...]:
    """Who would be on call at its start without it, and is not with it."""
    if override.kind == OverrideKind.ADD.value:
        return ()
    before = _people(directory, people_at(named.schedule, override.start_at))
    if override.kind == OverrideKind.COVER.value:
        return tuple(person for person in before if person.id == override.covers_id)
    return tuple(person for person in before if person.id != override.person_id)
