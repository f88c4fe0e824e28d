"""Overrides: set, listed and cancelled, one transaction each, with who is told of them.

Never decides which is meant: override_rules does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Directory, Override, Person
from engine.errors import NotFound
from engine.models import ORG, Actor
from engine.rota import notice
from engine.rota.override_rules import Asked, replaced, wanted
from engine.rota.override_words import cancelled_notices, set_notices
from engine.schedule import OverrideKind
from engine.store import directory as store
from engine.store import schedules

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class OverrideSet:
    """What an override did: `replaced` are those whose place it takes, in the order of their turns."""

    override: Override
    schedule: str
    replaced: tuple[Person, ...]
    new: bool = True  # False: the very same was set before


class _SetMeanwhile(Exception):
    """The very same override was set between our look and our lock."""


class Overrides:
    """`read` gives the directory of a moment inside a transaction."""

    def __init__(
        self, database: Database, clock: Clock, read: Callable[[Tx, datetime], Awaitable[Directory]]
    ) -> None:
        self._database = database
        self._clock = clock
        self._read = read

    async def set(
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
        """Put a person on call. Without a schedule it is the only one, or a question back."""
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

    async def listed(self, schedule_id: int | None = None) -> list[Override]:
        """Those that are not over, in the order of their creation."""
        async with self._database.snapshot() as tx:
            return await schedules.read_overrides(tx, ORG, after=self._clock.now(), schedule_id=schedule_id)

    async def cancel(self, override_id: int, actor: Actor) -> Override:
        now = self._clock.now()

        async def unit(tx: Tx) -> Override | None:
            cancelled = await schedules.cancel_override(tx, ORG, override_id, now)
            if cancelled is not None:
                await self._tell_cancelled(tx, cancelled, actor, now)
                await store.bump(tx, ORG)  # counters last
            return cancelled

        cancelled = await self._database.write(unit, rank=Writer.RESPOND)
        if cancelled is None:
            raise NotFound(
                f"There is no override {override_id} to cancel: it is over, was cancelled already, "
                "or never was. `/override list` shows those that are."
            )
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


async def _same(tx: Tx, wish: Override, now: datetime) -> Override | None:
    """The very same, set before and not taken back, whoever set it."""
    found = await schedules.read_overrides(tx, ORG, after=now, schedule_id=wish.schedule_id)
    return next((one for one in found if replace(one, id=0, created_by=wish.created_by) == wish), None)
