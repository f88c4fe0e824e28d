"""What people do to an incident: acknowledge, resolve, snooze, escalate, assign, merge, undo.

One transaction each: lock, decide, apply. Sends nothing; ringing calls are hung up after the commit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

import structlog
from sqlalchemy.exc import IntegrityError

from engine import metrics
from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Directory, Target
from engine.errors import NotFound, Unavailable
from engine.escalation import decide
from engine.escalation.fate import (
    Acknowledge,
    AddResponder,
    Command,
    EscalateNow,
    PageFallback,
    PageLevel,
    Reassign,
    Reopen,
    Resolve,
    Snooze,
    Unacknowledge,
)
from engine.models import ORG, Actor, DeliveryKind, DeliveryStatus, IncidentStatus, IncidentView, Via
from engine.nudge import Nudge
from engine.pager import merge
from engine.pager.apply import Applied, Change, Moved, apply, deliver_armings, earliest
from engine.pager.grounds import Grounds
from engine.pager.ladder import Resolver
from engine.pager.pages import say
from engine.pager.views import Views
from engine.pager.walk import policy_of, set_out
from engine.store import alerts, dedup_keys, deliveries, incidents, journal, timers
from engine.store.incidents import Incident
from engine.store.journal import TimelineRow

log = structlog.get_logger(__name__)

RESTARTS: Final = 3
CHANGED_SINCE: Final = "not done: it has changed since you looked. This is how it is now"
SECOND: Final = "also_acknowledged"  # the timeline entry of whoever was not the first

Calls = tuple[tuple[str, str, int | None], ...]  # provider, reference, person
Unit = Callable[[Tx], Awaitable[tuple[bool, str, Applied]]]  # was it changed, why, and what follows


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of it: the incident as it is now, and a sentence for whoever asked."""

    incident: IncidentView
    changed: bool
    reason: str


class Responder:
    """Every answer of a person, from whichever side it comes. `seen` is the epoch that the person saw: what
    would do something else the second time is not done when the incident has gone on since."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        directory_now: Callable[[], Awaitable[Directory]],
        nudge: Nudge,
        hang_up: Callable[[Calls], None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._directory_now = directory_now
        self._nudge = nudge
        self._hang_up = hang_up
        self._views = Views(database)

    async def find(self, number: int) -> int | None:
        """The id of the incident with this #."""
        async with self._database.look() as tx:
            return await incidents.id_of(tx, ORG, number)

    async def acknowledge(self, incident_id: int, actor: Actor) -> Answer:
        return await self._respond(incident_id, "acknowledged", actor, Acknowledge(actor))

    async def unacknowledge(self, incident_id: int, actor: Actor, *, seen: int | None = None) -> Answer:
        return await self._respond(incident_id, "unacknowledged", actor, Unacknowledge(actor), seen)

    async def resolve(self, incident_id: int, actor: Actor) -> Answer:
        return await self._respond(incident_id, "resolved", actor, Resolve(actor))

    async def reopen(self, incident_id: int, actor: Actor, *, seen: int | None = None) -> Answer:
        return await self._respond(incident_id, "reopened", actor, Reopen(actor), seen)

    async def snooze(self, incident_id: int, actor: Actor, until: datetime) -> Answer:
        return await self._respond(incident_id, "snoozed", actor, Snooze(actor, until))

    async def escalate(self, incident_id: int, actor: Actor, *, seen: int | None = None) -> Answer:
        return await self._respond(incident_id, "escalated", actor, EscalateNow(actor), seen)

    async def reassign(self, incident_id: int, actor: Actor, target: Target) -> Answer:
        return await self._respond(incident_id, "assigned", actor, Reassign(actor, target))

    async def add_responder(self, incident_id: int, actor: Actor, person_id: int) -> Answer:
        return await self._respond(incident_id, "responder_added", actor, AddResponder(actor, person_id))

    async def merge(self, incident_id: int, actor: Actor, into: int) -> Answer:
        """`into` is the id of the incident that goes on."""
        known = await self._directory_now()

        async def unit(tx: Tx) -> tuple[bool, str, Applied]:
            return await merge.merge(tx, known, incident_id, into, actor, self._clock.now())

        return await self._carry_out(incident_id, "merged", actor, unit)

    async def unmerge(self, incident_id: int, actor: Actor) -> Answer:
        known = await self._directory_now()

        async def unit(tx: Tx) -> tuple[bool, str, Applied]:
            return await merge.unmerge(tx, known, incident_id, actor, self._clock.now())

        return await self._carry_out(incident_id, "unmerged", actor, unit)

    async def note(self, incident_id: int, actor: Actor, text: str) -> Answer:
        """Keep a note on the timeline, and say it in the thread of the card."""
        now = self._clock.now()

        async def unit(tx: Tx) -> None:
            incident = await _locked(tx, incident_id)
            row = TimelineRow(incident.id, "note", actor, text, incident.fate.epoch)
            await journal.append_timeline(tx, ORG, [row], now)
            key = f"note:{actor.name}:{int(now.timestamp() * 1000)}"
            line = say(incident.id, incident.fate, key, f"Note by {actor.name}: {text}", now)
            queued = await deliveries.queue(tx, ORG, [line], now)
            await timers.arm(tx, ORG, deliver_armings(queued))

        await self._database.write(unit, rank=Writer.RESPOND)
        self._nudge()
        return await self._answer(incident_id, changed=True, reason="noted")

    async def _respond(
        self, incident_id: int, kind: str, actor: Actor, command: Command, seen: int | None = None
    ) -> Answer:
        known = await self._directory_now()
        unit = partial(
            self._unit,
            incident_id=incident_id,
            kind=kind,
            actor=actor,
            command=command,
            known=known,
            seen=seen,
        )
        return await self._carry_out(incident_id, kind, actor, unit)

    async def _carry_out(self, incident_id: int, kind: str, actor: Actor, unit: Unit) -> Answer:
        changed, reason, applied = await self._write(incident_id, unit)
        self._nudge()
        # The call that this answer came by hears "acknowledged" and ends by itself.
        own = actor.person_id if actor.via is Via.VOICE else None
        self._hang_up(tuple(call for call in applied.ringing if own is None or call[2] != own))
        metrics.responses.labels(kind, actor.via.value).inc()
        log.info("incident.responded", incident=incident_id, kind=kind, via=actor.via.value, changed=changed)
        return await self._answer(incident_id, changed=changed, reason=reason)

    async def _write(self, incident_id: int, unit: Unit) -> tuple[bool, str, Applied]:
        for _ in range(RESTARTS):
            try:
                return await self._database.write(unit, rank=Writer.RESPOND)
            except (Moved, IntegrityError):
                # IntegrityError: a reopen met an incident that opened for its key in this instant.
                log.info("incident.moved", incident=incident_id)
        raise Unavailable

    async def _unit(
        self,
        tx: Tx,
        incident_id: int,
        kind: str,
        actor: Actor,
        command: Command,
        known: Directory,
        seen: int | None,
    ) -> tuple[bool, str, Applied]:
        now = self._clock.now()
        keys = await self._lock_keys(tx, incident_id) if isinstance(command, Resolve) else set()
        incident = await _locked(tx, incident_id)
        if seen is not None and seen != incident.fate.epoch:
            return False, CHANGED_SINCE, Applied()
        command = await self._complete(tx, incident, command, keys)
        policy = await policy_of(tx, known, incident)
        resolver = Resolver(known, incident.fate.urgency, now)
        decision = decide(incident.fate, command, now, resolver.ladder(policy, incident.fate.reassigned_to))
        if not decision.changed:
            await self._note_second(tx, incident, command, actor, now)
        if not decision.changed and not decision.effects:
            return False, decision.reason, Applied()
        paged = any(isinstance(effect, (PageLevel, PageFallback)) for effect in decision.effects)
        remarks = tuple(resolver.remarks) if paged else ()
        chain = resolver.chain(policy)
        why = Grounds(known, now).of(decision, policy, chain)
        change = Change(incident, decision, kind, actor, chain, remarks, why, quiet=not decision.changed)
        applied = await apply(tx, ORG, [change], known, now)
        if decision.changed:
            await set_out(tx, known, [(incident, policy)], now)  # after it: alerts are locked before timers
        return decision.changed, decision.reason, applied

    async def _note_second(
        self, tx: Tx, incident: Incident, command: Command, actor: Actor, now: datetime
    ) -> None:
        """Whoever acknowledges what somebody else has acknowledged is noted, once."""
        fate = incident.fate
        if not isinstance(command, Acknowledge) or fate.status is not IncidentStatus.ACKNOWLEDGED:
            return
        first = fate.acknowledged_by
        if actor.person_id is None or (first is not None and first.person_id == actor.person_id):
            return
        entries = await journal.timeline_of(tx, ORG, [incident.id])
        since = fate.acknowledged_at or incident.opened_at
        if not any(e.kind == SECOND and e.actor == actor.name and e.at >= since for e in entries):
            row = TimelineRow(incident.id, SECOND, actor, "acknowledged it too", fate.epoch)
            await journal.append_timeline(tx, ORG, [row], now)

    async def _lock_keys(self, tx: Tx, incident_id: int) -> set[dedup_keys.Key]:
        """A resolve writes the memory of its alerts' keys: they are locked before the incident."""
        keys = await alerts.keys_of_incidents(tx, ORG, [incident_id])
        await dedup_keys.lock(tx, ORG, keys)
        return set(keys)

    async def _complete(
        self, tx: Tx, incident: Incident, command: Command, keys: set[dedup_keys.Key]
    ) -> Command:
        """Add what only SQL knows, now that the incident is locked."""
        if isinstance(command, Resolve):
            if not set(await alerts.keys_of_incidents(tx, ORG, [incident.id])) <= keys:
                raise Moved
            live = await timers.of_subjects(tx, ORG, timers.FATE_KINDS, [incident.id])
            return Resolve(command.by, earliest(live))
        if isinstance(command, Reopen):
            return Reopen(command.by, await _holder(tx, incident))
        if isinstance(command, AddResponder):
            return await _asked_before(tx, incident, command)
        return command

    async def _answer(self, incident_id: int, *, changed: bool, reason: str) -> Answer:
        view = await self._views.incident(incident_id)
        if view is None:
            raise NotFound("There is no such incident.")
        return Answer(view, changed, reason)


async def _locked(tx: Tx, incident_id: int) -> Incident:
    found = await incidents.lock(tx, [incident_id])
    if not found:
        raise NotFound("There is no such incident.")
    return found[0]


async def _holder(tx: Tx, incident: Incident) -> int | None:
    """The number of another open incident for the same problem: the same group, or one of its keys."""
    group = (incident.service_id, incident.group_key)
    groups = await incidents.open_by_group(tx, ORG, [incident.service_id], [incident.group_key])
    keys = [(one.service_id, one.dedup_key) for one in await alerts.of_incident(tx, ORG, [incident.id])]
    firing = await alerts.open_by_key(tx, ORG, keys)
    holders = {alert.incident_id for alert in firing.values()}
    holders |= {groups[group]} if group in groups else set()
    others = await incidents.read(tx, sorted(holders - {incident.id}))
    return others[0].number if others else None


async def _asked_before(tx: Tx, incident: Incident, command: AddResponder) -> AddResponder:
    asks = [
        one
        for one in await deliveries.of_incidents(tx, ORG, [incident.id])
        if one.kind is DeliveryKind.RESPONDER and one.person_id == command.person_id
    ]
    last = max((one.pass_ for one in asks), default=0)
    pending = any(one.status in {DeliveryStatus.QUEUED, DeliveryStatus.SENDING} for one in asks)
    return replace(command, sequence=last + 1, pending=pending)
