"""Tells people of their shifts, and each schedule of its handoffs: the work of `shift` timers.

Never works out who is on call by itself, and tells nothing twice: what is said has a key of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.clockwords import between, length
from engine.db import Database, Tx, Writer
from engine.directory import Directory, NamedSchedule, Person
from engine.models import ORG, Method, NewDelivery, Rank, Timer, TimerKind
from engine.rota import addressed, notice
from engine.rota.handing import hand_off
from engine.rota.roster import Roster
from engine.rota.shift_plan import LEADS, Due, Plan, Reminder, Told, plan
from engine.schema import EPOCH, MICROSECOND
from engine.store import reminders as store
from engine.store import timers
from engine.store.reminders import Mark
from engine.store.timers import Arming

log = structlog.get_logger(__name__)

UNREADABLE: Final = timedelta(hours=1)  # until we look again at a schedule that nobody can read


class Shifts:
    """Looks at one schedule when its timer is due, and arms the timer for what is due next."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster

    async def look(self, tx: Tx, timer: Timer, now: datetime) -> None:
        # Why after the timer was taken: whoever edits the schedule arms it again, before or after us.
        directory = await self._roster.directory()
        schedule_id = timer.subject_id
        named = directory.schedules.get(schedule_id)
        if named is None:
            await _gone(tx, schedule_id, now)
            return
        mark = await store.mark(tx, ORG, schedule_id)
        told = None if mark is None else Told(mark.people, mark.told_until)
        found = plan(named.schedule, told, now)
        new = Mark(found.told.people, found.told.until)
        await timers.arm(tx, ORG, [_arming(schedule_id, found.again_at)])
        await store.set_mark(tx, ORG, schedule_id, new)
        if mark is not None and found.reminders:
            found = await _without_overrides(tx, schedule_id, found, mark)
        await self._tell(tx, directory, named, found, now)

    async def _tell(
        self, tx: Tx, directory: Directory, named: NamedSchedule, found: Plan, now: datetime
    ) -> None:
        off = await store.off(tx, ORG) if found.reminders else {}
        await notice.tell(tx, ORG, list(_reminders(directory, named, found, off, now)), now)
        if found.handing is not None:
            await hand_off(tx, directory, named, found.handing, now)
            log.info("shift.changed", schedule=named.name, came=len(found.handing.came))


async def _without_overrides(tx: Tx, schedule_id: int, found: Plan, mark: Mark) -> Plan:
    """Whoever set an override since the last look, or took it back, has told those whom it concerns."""
    changed = await store.overrides_since(tx, ORG, schedule_id, mark.told_until)
    left = tuple(due for due in found.reminders if not any(one.tells(due.person, due.at) for one in changed))
    return replace(found, reminders=left)


async def _gone(tx: Tx, schedule_id: int, now: datetime) -> None:
    if await store.is_deleted(tx, ORG, schedule_id):
        await store.forget_mark(tx, ORG, schedule_id)
    else:
        await timers.arm(tx, ORG, [_arming(schedule_id, now + UNREADABLE)])


def _arming(schedule_id: int, due_at: datetime) -> Arming:
    return Arming(TimerKind.SHIFT, schedule_id, due_at, rank=Rank.NOTICE)


def _reminders(
    directory: Directory,
    named: NamedSchedule,
    found: Plan,
    off: Mapping[int, Collection[str]],
    now: datetime,
) -> Iterator[NewDelivery | None]:
    handed = frozenset() if found.handing is None or named.channel else found.handing.came
    for due in found.reminders:
        person = directory.people.get(due.person)
        if person is None or due.kind.value in off.get(due.person, ()):
            continue
        if due.kind is Reminder.START and due.person in handed:
            continue  # without a channel the handoff itself comes to them
        micros = (due.at - EPOCH) // MICROSECOND
        key = f"shift:{named.id}:{due.kind}:{due.person}:{micros}"
        body = {"text": _text(named, person, due, now)}
        if due.kind in LEADS:
            body["not_after"] = due.at.isoformat()
        yield addressed.to_person(person, key, body, now)


def _text(named: NamedSchedule, person: Person, due: Due, now: datetime) -> str:
    if due.kind is Reminder.END:
        return f"🏁 Your shift on {named.name} is over. Thank you."
    span = between(due.at, due.until, person.timezone)
    if due.kind is Reminder.START:
        return f"📟 You are on call on {named.name} now, {span}."
    text = f"📟 In {length(due.at - now)} you are on call on {named.name}: {span}."
    if due.kind is Reminder.DAY:
        text += " `/oncall cover me` finds somebody else; `/oncall me reminders off` ends these messages."
        if not any(one.kind in {Method.SMS, Method.VOICE} and one.usable for one in person.methods):
            text += "\n⚠️ No phone of yours is set up: when Slack is down you are not reached."
    return text


# --- turned off and on -------------------------------------------------------------------------------


class Choices:
    """Which reminders a person gets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def turn(self, person_id: int, kinds: Collection[Reminder], *, on: bool) -> Collection[Reminder]:
        """Turn these on or off; returns those that are on afterwards."""
        words = [kind.value for kind in kinds]
        change = store.turn_on if on else store.turn_off

        async def unit(tx: Tx) -> Collection[Reminder]:
            await change(tx, ORG, person_id, words)
            off = (await store.off(tx, ORG)).get(person_id, frozenset())
            return [kind for kind in Reminder if kind.value not in off]

        return await self._database.write(unit, rank=Writer.RESPOND)

    async def of(self, person_id: int) -> Collection[Reminder]:
        async with self._database.snapshot() as tx:
            off = (await store.off(tx, ORG)).get(person_id, frozenset())
        return [kind for kind in Reminder if kind.value not in off]
