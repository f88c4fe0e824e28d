"""Who is on call now and next, and the overrides that change it.

Never works out who is on call by itself: the schedule's own rules do (engine.schedule).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Directory, NamedSchedule, Override, Person, keeping
from engine.errors import NotFound
from engine.models import ORG, Actor
from engine.rota import notice
from engine.rota.override_rules import Asked, people_of, replaced, wanted
from engine.rota.override_words import cancelled_notices, set_notices
from engine.schedule import OverrideKind, on_call, people_at, shifts
from engine.schedule.skipped import Skipped, skipped_windows
from engine.store import directory as store
from engine.store import schedules
from engine.store.history import InForce, read_history
from engine.vault import Vault

log = structlog.get_logger(__name__)

# Why at all: versions that begin later and overrides that ended move no revision.
KEPT_FOR: Final = timedelta(seconds=60)
AROUND: Final = timedelta(days=366)  # as far as "since" and "until" look


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
    """What an override did: `replaced` are those whose place it takes, in the order of their turns."""

    override: Override
    schedule: str
    replaced: tuple[Person, ...]
    new: bool = True  # False: the very same was set before


@dataclass(frozen=True, slots=True)
class ShiftOf:
    """A stretch with the same people; with none nobody is on call."""

    start: datetime
    end: datetime
    people: tuple[Person, ...]


@dataclass(frozen=True, slots=True)
class ShiftsOf:
    """The shifts of one schedule, without a break but where there was no schedule yet."""

    schedule_id: int
    schedule: str
    shifts: tuple[ShiftOf, ...]
    skipped: tuple[Skipped, ...] = ()  # hours that a change of the clock leaves out


class _SetMeanwhile(Exception):
    """The very same override was set between our look and our lock."""


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
        now = self._clock.now()
        if at is None:
            at, directory = now, await self.directory()
        else:
            async with self._database.snapshot() as tx:
                directory = await self._read(tx, at)
                if at < now:
                    directory = _as_it_was(
                        directory, await read_history(tx, ORG, at - AROUND, at + AROUND), at
                    )
        named = sorted(directory.schedules.values(), key=lambda schedule: schedule.name.casefold())
        return [_on_call_now(directory, schedule, at) for schedule in named]

    async def shifts(self, a: datetime, b: datetime, schedule_id: int | None = None) -> list[ShiftsOf]:
        """Who is, was and will be on call from `a` up to `b`; the past by the versions of then."""
        directory = await self.directory()
        async with self._database.snapshot() as tx:
            history = await read_history(tx, ORG, a, b, schedule_id)
        named = sorted(directory.schedules.values(), key=lambda schedule: schedule.name.casefold())
        asked = [one for one in named if schedule_id in {None, one.id} and one.id in history]
        return [_shifts_of(directory, one, history[one.id]) for one in asked]

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
        asked = Asked(schedule_id, person_id, start_at, end_at, actor, kind, covers_id)
        now = self._clock.now()

        async def unit(tx: Tx) -> OverrideSet:
            return await self._set(tx, asked, now)

        try:
            done = await self._database.write(unit, rank=Writer.RESPOND)
        except _SetMeanwhile:
            done = await self._database.write(unit, rank=Writer.RESPOND)
        log.info("override.set", override=done.override.id, schedule=done.schedule, via=actor.via)
        return done

    async def _set(self, tx: Tx, asked: Asked, now: datetime) -> OverrideSet:
        directory = await self._read(tx, now)
        named, wish = wanted(directory, asked, now)
        told = set_notices(directory, named, wish, replaced(directory, named, wish), asked.actor, now)
        known = await _same(tx, wish, now) is not None
        if not known:
            await notice.tell(tx, ORG, told, now)  # before the counter is locked
        done = await self.place(tx, asked, now)
        if not (known or done.new):
            raise _SetMeanwhile  # so that nobody is told twice
        return done

    async def place(self, tx: Tx, asked: Asked, now: datetime) -> OverrideSet:
        """The same in a transaction of the caller's, who tells people of it, as its last change: counters
        are locked last."""
        await store.lock(tx, ORG)
        directory = await self._read(tx, now)
        named, wish = wanted(directory, asked, now)
        # Why looked for: a button may be pressed twice, in the same moment too.
        same = await _same(tx, wish, now)
        if same is not None:
            return OverrideSet(same, named.name, (), new=False)
        override_id = await schedules.insert_override(tx, ORG, wish, now)
        await store.bump(tx, ORG)
        return OverrideSet(replace(wish, id=override_id), named.name, replaced(directory, named, wish))

    async def overrides(self, schedule_id: int | None = None) -> list[Override]:
        """Those that are not over, in the order of their creation."""
        async with self._database.snapshot() as tx:
            return await schedules.read_overrides(tx, ORG, after=self._clock.now(), schedule_id=schedule_id)

    async def cancel_override(self, override_id: int, actor: Actor) -> Override:
        now = self._clock.now()

        async def unit(tx: Tx) -> Override | None:
            cancelled = await schedules.cancel_override(tx, ORG, override_id, now)
            if cancelled is not None:
                await self._tell_cancelled(tx, cancelled, actor, now)
                await store.bump(tx, ORG)  # counters last
            return cancelled

        cancelled = await self._database.write(unit, rank=Writer.RESPOND)
        if cancelled is None:
            raise NotFound("That override is over or was cancelled already.")
        log.info("override.cancelled", override=override_id, via=actor.via)
        return cancelled

    async def _tell_cancelled(self, tx: Tx, cancelled: Override, actor: Actor, now: datetime) -> None:
        directory = await self._read(tx, now)
        named = directory.schedules.get(cancelled.schedule_id)
        if named is None or cancelled.person_id not in directory.people:
            return
        rest = replace(cancelled, start_at=max(now, cancelled.start_at))
        back = [one for one in replaced(directory, named, rest) if one.active]
        await notice.tell(tx, ORG, cancelled_notices(directory, named, rest, back, actor, now), now)

    async def _read(self, tx: Tx, at: datetime) -> Directory:
        directory = await store.read(tx, ORG, at, self._vault)
        directory = keeping(directory, None if self._kept is None else self._kept[1])
        return replace(directory, fallback_urls=self._fallback_urls)


def _on_call_now(directory: Directory, named: NamedSchedule, at: datetime) -> OnCallNow:
    names = {str(person.id): person.name for person in directory.people.values()}
    now = on_call(named.schedule, at, names)
    following = people_at(named.schedule, now.until) if now.until else ()
    return OnCallNow(
        schedule_id=named.id,
        schedule=named.name,
        people=people_of(directory, now.people),
        reason=now.reason,
        since=now.since,
        until=now.until,
        next_people=people_of(directory, following),
        next_at=now.until,
    )


async def _same(tx: Tx, wish: Override, now: datetime) -> Override | None:
    """The very same, set before and not taken back, whoever set it."""
    found = await schedules.read_overrides(tx, ORG, after=now, schedule_id=wish.schedule_id)
    return next((one for one in found if replace(one, id=0, created_by=wish.created_by) == wish), None)


def _as_it_was(directory: Directory, history: Mapping[int, Sequence[InForce]], at: datetime) -> Directory:
    """With the overrides of then: one that was cancelled later held until it was."""
    then = {
        one.id: replace(one, schedule=version.schedule)
        for one in directory.schedules.values()
        for version in history.get(one.id, ())
        if version.start <= at < version.end
    }
    return replace(directory, schedules=then)


def _shifts_of(directory: Directory, named: NamedSchedule, history: Sequence[InForce]) -> ShiftsOf:
    found: list[ShiftOf] = []
    skipped: list[Skipped] = []
    for version in history:
        skipped += skipped_windows(version.schedule, version.start, version.end)
        for shift in shifts(version.schedule, version.start, version.end):
            people = people_of(directory, shift.people)
            last = found[-1] if found else None
            if last is not None and last.end == shift.start and last.people == people:
                found[-1] = replace(last, end=shift.end)
            else:
                found.append(ShiftOf(shift.start, shift.end, people))
    return ShiftsOf(named.id, named.name, tuple(found), tuple(skipped))
