"""Works the timers that move an incident's fate: `escalate`, `exhaust`, `unsnooze` and their kin.

One transaction takes up to a hundred incidents. Reads the directory before it, sends nothing in it.
A timer that fails alone is tried again later, and in the end pages the fallback; none is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine import metrics
from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Directory, Policy
from engine.errors import Unavailable
from engine.escalation import decide
from engine.escalation.fate import (
    AckTimeout,
    Command,
    EndOfSnooze,
    Exhaust,
    PageFallback,
    RaiseUrgency,
    Stuck,
    Timeout,
)
from engine.models import ORG, Actor, Timer, TimerKind, Urgency, Via
from engine.nudge import Nudge
from engine.pager.alarm import raise_alarm
from engine.pager.apply import Change, apply
from engine.pager.ladder import Ladders, reaches_somebody
from engine.pager.maintenance import held as held_by_maintenance
from engine.pager.maintenance import on_now
from engine.pager.unclean import UncleanEnd
from engine.pager.walk import policy_of, set_out
from engine.store import incidents, timers
from engine.store.incidents import Incident

log = structlog.get_logger(__name__)

BATCH: Final = 250  # incidents locked at once, for about a tenth of a second
AT_ONCE: Final = 2  # batches: while the database works one, we decide the next
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
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._unclean = UncleanEnd(database, clock.now())

    async def handle(self, due: Sequence[Timer]) -> int:
        found = self._unclean.sort(due)
        work = [self._in_turn(batch) for batch in _batches(found.usual)]
        work += [self._in_turn(batch, counted=True) for batch in _batches(found.left)]
        # Why exceptions as values: a batch that fails must not leave another one running by itself.
        ended: list[int | BaseException] = await asyncio.gather(*work, return_exceptions=True)
        if found.suspects:
            ended += await asyncio.gather(self._suspects(found.suspects), return_exceptions=True)
        finished = sum(one for one in ended if isinstance(one, int))
        if finished:
            self._nudge()
        for failed in ended:
            if isinstance(failed, BaseException):
                raise failed
        return finished

    async def _in_turn(self, batch: Sequence[Timer], *, counted: bool = False) -> int:
        async with self._at_once:
            if counted:
                await self._unclean.count(batch)
            return await self._batch(batch)

    async def _suspects(self, suspects: Sequence[Timer]) -> int:
        """After all others and one by one, each counted first: what ends a process must not do so for
        ever."""
        finished = 0
        for timer in suspects:
            if timer.attempt >= TRIES:
                finished += await self._put_off(timer)
                continue
            await self._unclean.count([timer])
            finished += await self._alone(timer)
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
        walking = [(held[t.subject_id], await policy_of(tx, known, held[t.subject_id])) for t in due]
        windows = await on_now(tx, ORG, now)
        ladders = Ladders(known, now)
        changes = [
            held_by_maintenance(timer, incident, windows, now)
            or _ruled(timer, incident, policy, ladders, now, COMMANDS[timer.kind], ENTRIES[timer.kind])
            for timer, (incident, policy) in zip(due, walking, strict=True)
        ]
        await timers.finish_all(tx, [timer.id for timer in due])
        await set_out(tx, known, walking, now)
        await apply(tx, ORG, [change for change in changes if change is not None], known, now)
        await self._alarms(tx, [change for change in changes if change is not None], now)
        if skip_locked:
            return Worked(tuple(due), absent)
        # Nobody was skipped, so these incidents are no more: their timers would be due for ever.
        await timers.finish_all(tx, [t.id for t in absent])
        return Worked((*due, *absent), ())

    async def _alarms(self, tx: Tx, changes: Sequence[Change], now: datetime) -> None:
        for change in changes:
            falls_back = bool(change.effects(PageFallback))
            if falls_back and not reaches_somebody(change.chain):
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
            await timers.finish_all(tx, [timer.id])
            policy = await policy_of(tx, known, incident)
            change = _ruled(timer, incident, policy, Ladders(known, now), now, Stuck(), "failed")
            if change is None:
                return 1
            await apply(tx, incident.org_id, [change], known, now)
            await _alarm(tx, timer, f"#{incident.number}: a {timer.kind} timer failed {TRIES} times", now)
            return 1

        return await self._database.write(unit, rank=Writer.ESCALATE)


def _ruled(
    timer: Timer,
    incident: Incident,
    policy: Policy | None,
    ladders: Ladders,
    now: datetime,
    command: Command,
    entry: str,
) -> Change | None:
    """What the command makes of the incident; None when the timer is of another epoch."""
    # Why the epoch: an ack that committed between the read and this lock has moved on; a page
    # for the old epoch would wake somebody for nothing.
    if timer.epoch != incident.fate.epoch:
        metrics.timers_stale.inc()
        return None
    known = ladders.of(policy, incident.fate.urgency, incident.fate.reassigned_to)
    decision = decide(incident.fate, command, now, known.ladder)
    remarks = known.remarks if decision.changed else ()
    return Change(incident, decision, entry, CLOCKWORK, known.chain, remarks)


async def _alarm(tx: Tx, timer: Timer, text: str, now: datetime) -> None:
    await raise_alarm(tx, timer.org_id, f"timer:{timer.kind}", text, now)


def _batches(due: Sequence[Timer]) -> list[Sequence[Timer]]:
    return [due[start : start + BATCH] for start in range(0, len(due), BATCH)]


def _one_each(due: Sequence[Timer]) -> list[Timer]:
    """One timer for each incident, the earliest: the next one is judged by what this one changes."""
    first: dict[int, Timer] = {}
    for timer in sorted(due, key=lambda one: (one.due_at, one.id)):
        first.setdefault(timer.subject_id, timer)
    return list(first.values())
