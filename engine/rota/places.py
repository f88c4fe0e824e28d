"""Where Slack shows who is on call on a schedule: its user group, and its part of a channel's topic.

Never talks to Slack: whoever shows it sees the change within seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import structlog

from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import NamedSchedule
from engine.errors import BadInput, NotFound
from engine.models import ORG, Actor
from engine.rota.schedules import check_may_edit
from engine.store import directory as store
from engine.store import schedules
from engine.vault import Vault

log = structlog.get_logger(__name__)


class Places:
    def __init__(self, database: Database, clock: Clock, vault: Vault) -> None:
        self._database = database
        self._clock = clock
        self._vault = vault

    async def group(self, schedule_id: int, group: str | None, actor: Actor) -> NamedSchedule:
        """Let a user group of Slack hold whoever is on call; None: none does."""
        return await self._change(schedule_id, lambda named: replace(named, user_group=group), actor)

    async def topic(self, schedule_id: int, on: bool, actor: Actor) -> NamedSchedule:
        """Let the topic of the schedule's channel say who is on call, or leave it to people."""

        def change(named: NamedSchedule) -> NamedSchedule:
            if on and named.channel is None:
                raise BadInput(
                    f"{named.name} has no channel whose topic it could be: give it one first, by "
                    f"`/oncall schedule edit {named.name}` or in midwatch.yaml."
                )
            return replace(named, topic=on)

        return await self._change(schedule_id, change, actor)

    async def _change(
        self, schedule_id: int, change: Callable[[NamedSchedule], NamedSchedule], actor: Actor
    ) -> NamedSchedule:
        now = self._clock.now()

        async def unit(tx: Tx) -> NamedSchedule:
            await store.lock(tx, ORG)
            directory = await store.read(tx, ORG, now, self._vault)
            named = directory.schedules.get(schedule_id)
            if named is None:
                raise NotFound("There is no such schedule here.")
            check_may_edit(directory, named, actor)
            new = change(named)
            await schedules.show_schedule(tx, ORG, named.id, new.channel, new.user_group, new.topic)
            await store.bump(tx, ORG)
            return new

        done = await self._database.write(unit, rank=Writer.RESPOND)
        log.info("schedule.shown_elsewhere", schedule=done.name, via=actor.via)
        return done
