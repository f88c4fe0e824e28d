"""Makes, edits and deletes schedules: each in one transaction, and every edit is a new version.

Never changes the past: a version is in force from the moment it is saved. Never overwrites what somebody
else saved meanwhile, and never lets a policy page a schedule that is not there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Directory, NamedSchedule
from engine.errors import BadInput, NotFound, Overtaken, Refused
from engine.models import ORG, Actor
from engine.rota import addressed, notice
from engine.rota.schedule_words import told
from engine.schedule import Schedule, dump_schedule
from engine.schedule.diff import Changed, diff
from engine.store import directory as store
from engine.store import schedules
from engine.vault import Vault

log = structlog.get_logger(__name__)

AHEAD: Final = timedelta(weeks=4)  # how far an edit says what it changes
GONE: Final = "There is no such schedule any more."


@dataclass(frozen=True, slots=True)
class Edited:
    """A schedule as it is now, and the version that this is: an edit names the one it began with."""

    named: NamedSchedule
    version_id: int
    changed_by: str
    changed_at: datetime

    @property
    def plain(self) -> Schedule:
        """What is edited: overrides are not."""
        return replace(self.named.schedule, overrides=())


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a schedule is to become, and where it is told of."""

    schedule: Schedule  # people by id, no overrides
    channel: str | None = None


class Schedules:
    def __init__(self, database: Database, clock: Clock, vault: Vault) -> None:
        self._database = database
        self._clock = clock
        self._vault = vault

    async def current(self, schedule_id: int) -> Edited:
        """The version in force now."""
        async with self._database.snapshot() as tx:
            return await self._current(tx, await self._read(tx, self._clock.now()), schedule_id)

    async def open(self, schedule_id: int, actor: Actor) -> Edited:
        """The same, for somebody who wants to edit it and may."""
        async with self._database.snapshot() as tx:
            directory = await self._read(tx, self._clock.now())
            current = await self._current(tx, directory, schedule_id)
        check_may_edit(directory, current.named, actor)
        return current

    async def preview(self, schedule_id: int | None, wanted: Schedule) -> list[Changed]:
        """The shifts of the next four weeks that would change; without an id from nobody at all."""
        now = self._clock.now()
        before = Schedule(wanted.timezone)
        if schedule_id is not None:
            before = (await self.current(schedule_id)).named.schedule
        return _changes(before, wanted, now)

    async def create(self, name: str, wanted: Wanted, actor: Actor) -> int:
        """Make a schedule of a name that none has; one that was deleted comes back with its past."""
        now = self._clock.now()

        async def unit(tx: Tx) -> int:
            await store.lock(tx, ORG)
            directory = await self._read(tx, now)
            taken = {one.name.casefold(): one.name for one in directory.schedules.values()}
            if name.casefold() in taken:
                raise BadInput(f"There is a schedule {taken[name.casefold()]} already; edit that one.")
            schedule_id = await schedules.name_schedule(tx, ORG, name)
            await schedules.show_schedule(tx, ORG, schedule_id, wanted.channel, None, topic=False)
            await self._append(tx, directory, schedule_id, wanted, actor, now)
            return schedule_id

        schedule_id = await self._database.write(unit, rank=Writer.RESPOND)
        log.info("schedule.created", schedule=name, via=actor.via)
        return schedule_id

    async def edit(self, schedule_id: int, version_id: int, wanted: Wanted, actor: Actor) -> list[Changed]:
        """Append a version, in force from now; what it changes. `version_id` is the one it began with."""
        now = self._clock.now()

        async def unit(tx: Tx) -> list[Changed]:
            # Why before the lock: timers come before counters. If this is not what the lock then finds,
            # all of it is taken back.
            directory, shown = await self._editable(tx, schedule_id, version_id, actor, now)
            changes = _changes(shown.schedule, wanted.schedule, now)
            text = told(actor.name, shown.name, changes, wanted.schedule, directory.people)
            await _tell(tx, wanted.channel, schedule_id, text, now)
            await store.lock(tx, ORG)
            directory, shown = await self._editable(tx, schedule_id, version_id, actor, now)
            await schedules.show_schedule(
                tx, ORG, schedule_id, wanted.channel, shown.user_group, shown.topic and bool(wanted.channel)
            )
            await self._append(tx, directory, schedule_id, wanted, actor, now)
            return changes

        changes = await self._database.write(unit, rank=Writer.RESPOND)
        log.info("schedule.edited", schedule=schedule_id, via=actor.via)
        return changes

    async def delete(self, schedule_id: int, actor: Actor) -> str:
        """Delete one that no policy pages; its name."""
        now = self._clock.now()

        async def unit(tx: Tx) -> str:
            _, named = await self._editable(tx, schedule_id, None, actor, now)
            text = f"📅 {actor.name} deleted the schedule {named.name}."
            await _tell(tx, named.channel, schedule_id, text, now)
            await store.lock(tx, ORG)
            directory, named = await self._editable(tx, schedule_id, None, actor, now)
            check_unused(directory, named)
            await schedules.delete_schedule(tx, ORG, schedule_id, actor.name, now)
            await store.bump(tx, ORG)
            return named.name

        name = await self._database.write(unit, rank=Writer.RESPOND)
        log.info("schedule.deleted", schedule=name, via=actor.via)
        return name

    # --- inside

    async def _read(self, tx: Tx, now: datetime) -> Directory:
        return await store.read(tx, ORG, now, self._vault)

    async def _current(self, tx: Tx, directory: Directory, schedule_id: int) -> Edited:
        version = await schedules.newest_version(tx, ORG, schedule_id)
        if version is None:
            raise NotFound(GONE)
        if version.deleted_at is not None:
            raise NotFound(f"{version.schedule} was deleted by {version.deleted_by or 'somebody'}.")
        named = directory.schedules.get(schedule_id)
        if named is None:
            raise NotFound(GONE)
        return Edited(named, version.id, version.created_by or "midwatch.yaml", version.created_at)

    async def _editable(
        self, tx: Tx, schedule_id: int, version_id: int | None, actor: Actor, now: datetime
    ) -> tuple[Directory, NamedSchedule]:
        """The schedule as it is now, if this person may change it and nobody changed that version."""
        directory = await self._read(tx, now)
        current = await self._current(tx, directory, schedule_id)
        check_may_edit(directory, current.named, actor)
        if version_id not in {None, current.version_id}:
            raise Overtaken(f"{current.named.name} was changed by {current.changed_by} meanwhile.")
        return directory, current.named

    async def _append(
        self, tx: Tx, directory: Directory, schedule_id: int, wanted: Wanted, actor: Actor, now: datetime
    ) -> None:
        for user in everybody(wanted.schedule):
            person = directory.people.get(int(user))
            if person is None:
                raise NotFound("Somebody on it is not there any more.")
            if not person.active:
                raise BadInput(f"{person.name} was deactivated and cannot be on call.")
        plain = replace(wanted.schedule, overrides=())
        await schedules.append_schedule(tx, ORG, schedule_id, dump_schedule(plain), now, by=actor.name)
        await store.bump(tx, ORG)


def _changes(before: Schedule, wanted: Schedule, now: datetime) -> list[Changed]:
    return diff(before, replace(wanted, overrides=before.overrides), now, now + AHEAD)


async def _tell(tx: Tx, channel: str | None, schedule_id: int, text: str, now: datetime) -> None:
    """In the transaction of the change: it is told if and only if it is saved."""
    if channel:
        key = f"schedule:{schedule_id}:{now.isoformat()}"
        await notice.tell(tx, ORG, [addressed.to_channel(channel, key, {"text": text}, now)], now)


def everybody(schedule: Schedule) -> list[str]:
    """Whoever is in a layer or is its fallback, each once."""
    users = [user for layer in schedule.layers for entry in layer.users for user in entry]
    return list(dict.fromkeys([*users, *([schedule.fallback] if schedule.fallback else [])]))


def check_may_edit(directory: Directory, named: NamedSchedule, actor: Actor) -> None:
    """Admins and the people on the schedule may; everybody else is told so."""
    if actor.person_id in directory.admins or str(actor.person_id) in everybody(named.schedule):
        return
    raise Refused(
        f"Only admins and the people on {named.name} may change it; you are neither. Nothing was changed. "
        "An admin or somebody on it can add you."
    )


def check_unused(directory: Directory, named: NamedSchedule) -> None:
    used = [policy.name for policy in directory.policies_paging(named.id)]
    if used:
        plural = "policies" if len(used) > 1 else "policy"
        raise Refused(
            f"{named.name} cannot be deleted: the {plural} {', '.join(used)} pages it. "
            "Take it out of the policy first."
        )
