"""Works the timers that move an incident's fate: `escalate`, `exhaust`, `unsnooze` and their kin.

One transaction takes up to a hundred incidents. Reads the directory before it, sends nothing in it.
A timer that fails alone is tried again later, and in the end pages the fallback; none is dropped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine import metrics
from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Directory, Policy
from engine.errors import NotFound, Unavailable
from engine.escalation import Decision, decide
from engine.escalation.climb import fallback
from engine.escalation.fate import (
    AckTimeout,
    Command,
    EndOfSnooze,
    Exhaust,
    PageFallback,
    RaiseUrgency,
    Timeout,
)
from engine.models import ORG, Actor, Rank, Timer, TimerKind, Urgency, Via
from engine.nudge import Nudge
from engine.pager.alarm import raise_alarm
from engine.pager.apply import Change, apply
from engine.pager.ladder import Resolver
from engine.store import cards, directory, incidents, timers
from engine.store.incidents import Incident
from engine.store.timers import Arming

log = structlog.get_logger(__name__)

BATCH: Final = 100
OVERDUE: Final = timedelta(milliseconds=100)  # then the incident's lock is waited for
TRIES: Final = 5
TRY_AGAIN: Final = timedelta(seconds=30)

CLOCKWORK: Final = Actor("Midwatch", Via.TIMER)
COMMANDS: Final[dict[str, Command]] = {
    TimerKind.ESCALATE: Timeout(),
    TimerKind.EXHAUST: Exhaust(),
    TimerKind.UNSNOOZE: EndOfSnooze(),
    TimerKind.ACK_TIMEOUT: AckTimeout(),
    TimerKind.RAISE_URGENCY: RaiseUrgency(Urgency.HIGH),
}
ENTRIES: Final[dict[str, str]] = {
    TimerKind.ESCALATE: "escalated",
    TimerKind.EXHAUST: "unanswered",
    TimerKind.UNSNOOZE: "snooze_ended",
    TimerKind.ACK_TIMEOUT: "ack_timed_out",
    TimerKind.RAISE_URGENCY: "urgency_raised",
}


@dataclass(frozen=True, slots=True)
class Worked:
    """What one transaction did: timers it finished, and those whose incident somebody else held."""

    finished: tuple[Timer, ...]
    skipped: tuple[Timer, ...]


class Escalator:
    """Handles due fate timers; `handle` returns how many were finished."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        directory_now: Callable[[], Awaitable[Directory]],
        nudge: Nudge,
    ) -> None:
        self._database = database
        self._clock = clock
        self._directory_now = directory_now
        self._nudge = nudge

    async def handle(self, due: Sequence[Timer]) -> int:
        finished = 0
        for start in range(0, len(due), BATCH):
            finished += await self._batch(due[start : start + BATCH])
        if finished:
            self._nudge()
        return finished

    async def _batch(self, batch: Sequence[Timer]) -> int:
        try:
            worked = await self._work(batch, skip_locked=True)
        except Unavailable:
            raise
        except Exception:
            log.exception("escalate.batch_failed", timers=len(batch))
            return sum([await self._alone(timer) for timer in batch])
        waited = [t for t in worked.skipped if self._clock.now() - t.due_at > OVERDUE]
        return len(worked.finished) + sum([await self._alone(timer) for timer in waited])

    async def _alone(self, timer: Timer) -> int:
        """One timer, waiting for its incident; a failure counts and puts it off."""
        try:
            worked = await self._work([timer], skip_locked=False)
        except Unavailable:
            raise
        except Exception:
            log.exception("escalate.failed", kind=timer.kind, incident=timer.subject_id)
            metrics.timers_failed.labels(timer.kind).inc()
            return await self._put_off(timer)
        return len(worked.finished)

    async def _work(self, batch: Sequence[Timer], *, skip_locked: bool) -> Worked:
        known = await self._directory_now()
        now = self._clock.now()
        worked = await self._database.write(
            lambda tx: self._unit(tx, batch, known, now, skip_locked), rank=Writer.ESCALATE
        )
        for timer in worked.finished:
            lateness = (now - timer.due_at).total_seconds()
            metrics.timer_lateness_seconds.labels(timer.kind).observe(max(0.0, lateness))
        return worked

    async def _unit(
        self, tx: Tx, batch: Sequence[Timer], known: Directory, now: datetime, skip_locked: bool
    ) -> Worked:
        locked = await incidents.lock(tx, [t.subject_id for t in batch], skip_locked=skip_locked)
        held = {incident.id: incident for incident in locked}
        absent = tuple(t for t in batch if t.subject_id not in held)
        live = await timers.live(tx, [t.id for t in batch if t.subject_id in held])
        due = _one_each([timer for timer in live.values() if timer.due_at <= now])
        policies = await self._policies(tx, known, [held[t.subject_id] for t in due])
        changes = [
            self._decide(timer, held[timer.subject_id], policies.get(timer.subject_id), known, now)
            for timer in due
        ]
        await timers.finish_all(tx, [timer.id for timer in due])
        await self._place_cards(tx, known, [held[t.subject_id] for t in due], now)
        await apply(tx, ORG, [change for change in changes if change is not None], known, now)
        await self._alarms(tx, [change for change in changes if change is not None], now)
        if skip_locked:
            return Worked(tuple(due), absent)
        # Nobody was skipped, so these incidents are no more: their timers would be due for ever.
        await timers.finish_all(tx, [t.id for t in absent])
        return Worked((*due, *absent), ())

    def _decide(
        self, timer: Timer, incident: Incident, policy: Policy | None, known: Directory, now: datetime
    ) -> Change | None:
        # Why the epoch: an ack that committed between the read and this lock has moved on; a page
        # for the old epoch would wake somebody for nothing.
        if timer.epoch != incident.fate.epoch:
            metrics.timers_stale.inc()
            return None
        resolver = Resolver(known, incident.fate.urgency, now)
        ladder = resolver.ladder(policy, incident.fate.reassigned_to)
        decision = decide(incident.fate, COMMANDS[timer.kind], now, ladder)
        chain = resolver.chain(policy)
        remarks = tuple(resolver.remarks) if decision.changed else ()
        return Change(incident, decision, ENTRIES[timer.kind], CLOCKWORK, chain, remarks)

    async def _policies(
        self, tx: Tx, known: Directory, touched: Sequence[Incident]
    ) -> dict[int, Policy | None]:
        """The policy each incident walks: as it was when the incident opened, stored the first time."""
        chosen: dict[int, Policy | None] = {}
        fresh: dict[int, int] = {}
        for incident in touched:
            policy = await self._policy(tx, known, incident)
            chosen[incident.id] = policy
            if policy is not None and incident.policy_version_id is None:
                fresh[incident.id] = policy.version_id
        await incidents.set_policy(tx, fresh)
        return chosen

    async def _policy(self, tx: Tx, known: Directory, incident: Incident) -> Policy | None:
        newest = {policy.version_id: policy for policy in known.policies.values()}
        if incident.policy_version_id is not None:
            stored = newest.get(incident.policy_version_id)
            return stored or await directory.policy_by_version(
                tx, incident.org_id, incident.policy_version_id
            )
        service = known.services.get(incident.service_id)
        if service is None or service.policy_id is None:
            return None
        current = known.policies.get(service.policy_id)
        if (
            current is not None
            and current.created_at is not None
            and current.created_at <= incident.opened_at
        ):
            return current
        try:
            return await directory.policy_version(tx, incident.org_id, service.policy_id, incident.opened_at)
        except NotFound:
            return None  # the fallback is paged, and the timeline says why

    async def _place_cards(
        self, tx: Tx, known: Directory, touched: Sequence[Incident], now: datetime
    ) -> None:
        for incident in touched:
            service = known.services.get(incident.service_id)
            if incident.policy_version_id is None and service is not None and service.channel:
                card = await cards.ensure(tx, incident.org_id, incident.id, service.channel, None, now)
                await timers.arm(tx, incident.org_id, [Arming(TimerKind.CARD, card, now, rank=Rank.CARD)])

    async def _alarms(self, tx: Tx, changes: Sequence[Change], now: datetime) -> None:
        for change in changes:
            falls_back = any(change.effects(PageFallback))
            if falls_back and not change.chain:
                text = f"#{change.incident.number}: nobody can be reached, and the fallback chain is empty"
                await raise_alarm(tx, change.incident.org_id, "fallback_empty", text, now)

    async def _put_off(self, timer: Timer) -> int:
        """Count the failure and try again later; after the last try the fallback is paged."""
        again_at = self._clock.now() + TRY_AGAIN
        # Why without the incident's lock: the incident may be what cannot be read. It is one row.
        tries = await self._database.write(
            lambda tx: timers.defer_failed(tx, timer, again_at), rank=Writer.ESCALATE
        )
        if tries < TRIES:
            return 0
        try:
            return await self._give_up(timer)
        except Unavailable:
            raise
        except Exception:
            log.exception("escalate.stuck", kind=timer.kind, incident=timer.subject_id)
            text = f"incident {timer.subject_id} cannot be read, and nobody is paged for it"
            await self._database.write(lambda tx: _alarm(tx, timer, text, self._clock.now()))
            return 0

    async def _give_up(self, timer: Timer) -> int:
        now = self._clock.now()
        known = await self._directory_now()

        async def unit(tx: Tx) -> int:
            held = await incidents.lock(tx, [timer.subject_id])
            if not held or timer.id not in await timers.live(tx, [timer.id]):
                return 0
            incident = held[0]
            fate, effects, _ = fallback(incident.fate, now)
            decision = Decision(fate, "its timer could not be worked: paging the fallback", effects, True)
            chain = Resolver(known, incident.fate.urgency, now).chain(None)
            await timers.finish_all(tx, [timer.id])
            change = Change(incident, decision, "failed", CLOCKWORK, chain)
            await apply(tx, incident.org_id, [change], known, now)
            await _alarm(tx, timer, f"#{incident.number}: a {timer.kind} timer failed {TRIES} times", now)
            return 1

        return await self._database.write(unit, rank=Writer.ESCALATE)


async def _alarm(tx: Tx, timer: Timer, text: str, now: datetime) -> None:
    await raise_alarm(tx, timer.org_id, f"timer:{timer.kind}", text, now)


def _one_each(due: Sequence[Timer]) -> list[Timer]:
    """One timer for each incident, the earliest: the next one is judged by what this one changes."""
    first: dict[int, Timer] = {}
    for timer in sorted(due, key=lambda one: (one.due_at, one.id)):
        first.setdefault(timer.subject_id, timer)
    return list(first.values())
