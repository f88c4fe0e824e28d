"""Who is on call, now and at any time, from a directory that is kept while nothing changes.

Never works out who is on call by itself: the schedule's own rules do (engine.schedule).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.clock import Clock
from engine.db import Database, Tx
from engine.directory import Directory, keeping
from engine.models import ORG
from engine.rota.on_call import OnCallNow, ShiftsOf, as_it_was, on_call_now, shifts_of
from engine.rota.overrides import Overrides
from engine.store import directory as store
from engine.store.history import read_history
from engine.vault import Vault

log = structlog.get_logger(__name__)

# Why at all: versions that begin later and overrides that ended move no revision.
KEPT_FOR: Final = timedelta(seconds=60)
AROUND: Final = timedelta(days=366)  # as far as "since" and "until" look


class Roster:
    """`fallback_urls` (MIDWATCH_FALLBACK_URLS) end the organisation's fallback chain."""

    def __init__(
        self, database: Database, clock: Clock, vault: Vault, *, fallback_urls: Sequence[str] = ()
    ) -> None:
        self._database = database
        self._clock = clock
        self._vault = vault
        self._fallback_urls = tuple(fallback_urls)
        self.overrides = Overrides(database, clock, self._read)
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
                    directory = as_it_was(
                        directory, await read_history(tx, ORG, at - AROUND, at + AROUND), at
                    )
        named = sorted(directory.schedules.values(), key=lambda schedule: schedule.name.casefold())
        return [on_call_now(directory, schedule, at) for schedule in named]

    async def shifts(self, a: datetime, b: datetime, schedule_id: int | None = None) -> list[ShiftsOf]:
        """Who is, was and will be on call from `a` up to `b`; the past by the versions of then."""
        directory = await self.directory()
        async with self._database.snapshot() as tx:
            history = await read_history(tx, ORG, a, b, schedule_id)
        named = sorted(directory.schedules.values(), key=lambda schedule: schedule.name.casefold())
        asked = [one for one in named if schedule_id in {None, one.id} and one.id in history]
        return [shifts_of(directory, one, history[one.id]) for one in asked]

    async def _read(self, tx: Tx, at: datetime) -> Directory:
        directory = await store.read(tx, ORG, at, self._vault)
        directory = keeping(directory, None if self._kept is None else self._kept[1])
        return replace(directory, fallback_urls=self._fallback_urls)
