"""Rehearses an outage: an incident of its own, for which alone Slack counts as down.

Touches no other incident. It is over when somebody answers, or before the second level would be paged;
then its thread reads what arrived.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from engine.clock import Clock
from engine.db import Database, Writer
from engine.directory import Directory, NamedSchedule, Person, Policy, Service
from engine.errors import BadCommand, NotFound, Refused
from engine.intake.receive import Receiver
from engine.models import ORG, Actor, Delivery, IncidentStatus, IncidentView, Method, Via
from engine.pager.respond import Responder
from engine.pager.views import Views
from engine.rota.meant import meant
from engine.rota.roster import Roster
from engine.schedule import on_call
from engine.store import rehearsals
from engine.store.rehearsals import Rehearsed

TITLE: Final = "REHEARSAL: Slack is down. Nothing is broken; answer as you would"
LONGEST: Final = timedelta(minutes=10)
BEFORE_NEXT_LEVEL: Final = timedelta(seconds=15)
MIDWATCH: Final = Actor("Midwatch", Via.TIMER)
SLACK: Final = frozenset({Method.SLACK, Method.CHANNEL})


class Rehearsals:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        roster: Roster,
        receiver: Receiver,
        responder: Responder,
        views: Views,
    ) -> None:
        self._database = database
        self._clock = clock
        self._roster = roster
        self._receiver = receiver
        self._responder = responder
        self._views = views

    async def plan(self, name: str | None, person: Person) -> NamedSchedule:
        """The schedule that is meant, if this person may rehearse on it."""
        directory, now = await self._roster.directory(), self._clock.now()
        found = meant(name, directory)
        mine = [one for one in found if str(person.id) in on_call(one.schedule, now).people]
        wanted = mine if name is None and len(mine) == 1 else found
        if not wanted:
            raise NotFound("There is no such schedule: `/oncall who` lists them.")
        if len(wanted) > 1:
            names = ", ".join(one.name for one in wanted[:10])
            raise BadCommand(f"Which schedule? `/oncall test outage NAME`, with one of: {names}.")
        (schedule,) = wanted
        if not person.admin and schedule not in mine:
            raise Refused("Only an admin rehearses for others; whoever is on call may for themselves.")
        _paged_at_first(schedule, directory)
        return schedule

    async def start(self, name: str, person: Person, actor: Actor) -> IncidentView:
        schedule = await self.plan(name, person)
        service, policy = _paged_at_first(schedule, await self._roster.directory())
        now, key = self._clock.now(), f"{rehearsals.PREFIX}{secrets.token_hex(16)}"
        ends_at = now + min(LONGEST, max(policy.levels[0].timeout - BEFORE_NEXT_LEVEL, timedelta()))
        # Why first: whoever sends the first page must find it.
        await self._database.write(
            lambda tx: rehearsals.begin(tx, ORG, key, schedule.name, now, ends_at), rank=Writer.RESPOND
        )
        incident_id, _ = await self._receiver.open_by_hand(ORG, service.id, TITLE, key, actor)
        await self._database.write(
            lambda tx: rehearsals.opened(tx, ORG, key, incident_id), rank=Writer.RESPOND
        )
        view = await self._views.incident(incident_id)
        if view is None:
            raise NotFound
        return view

    async def finish_due(self) -> int:
        """End what was answered or lasts too long; how many were ended."""
        async with self._database.look() as tx:
            found = await rehearsals.going_on(tx, ORG)
        return sum([await self._finish(one) for one in found])

    async def _finish(self, one: Rehearsed) -> bool:
        view, now = await self._views.incident(one.incident_id), self._clock.now()
        if view is not None and view.status is IncidentStatus.TRIGGERED and now < one.ends_at:
            return False
        if view is not None:
            await self._responder.resolve(view.id, MIDWATCH)
        ours = await self._database.write(
            lambda tx: rehearsals.report(tx, ORG, one.key, now), rank=Writer.RESPOND
        )
        if ours and view is not None:
            people = (await self._roster.directory()).people
            told = await self._views.deliveries(view.id)
            text = report(one, view, told, {each.id: each.name for each in people.values()})
            await self._responder.note(view.id, MIDWATCH, text)
        return ours


def _paged_at_first(schedule: NamedSchedule, directory: Directory) -> tuple[Service, Policy]:
    for service in sorted(directory.services.values(), key=lambda one: one.name):
        policy = directory.policies.get(service.policy_id or 0)
        if policy is not None and policy.levels and policy.levels[0].pages(schedule.id):
            return service, policy
    raise BadCommand(f"No service pages {schedule.name} first, so there is nothing to rehearse with.")


def report(one: Rehearsed, view: IncidentView, told: Sequence[Delivery], names: dict[int, str]) -> str:
    """What arrived, and who answered."""
    arrived = list(_arrived(told, names)) or ["nothing was sent by another way than Slack"]
    return f"REHEARSAL over for {one.schedule}: {'; '.join(arrived)}. {_answered(one, view)}"


def _arrived(told: Iterable[Delivery], names: dict[int, str]) -> Iterable[str]:
    for each in told:
        if each.method not in SLACK and each.sent_at is not None:
            whom = names.get(each.person_id or 0, "the fallback URLs")
            yield f"{each.method} to {whom} {each.status} {each.sent_at:%H:%M:%S} UTC"


def _answered(one: Rehearsed, view: IncidentView) -> str:
    if view.acknowledged_by is None or view.acknowledged_at is None:
        return "Nobody acknowledged."
    seconds = (view.acknowledged_at - one.begun_at).total_seconds()
    return f"{view.acknowledged_by} acknowledged after {seconds:.0f} s."
