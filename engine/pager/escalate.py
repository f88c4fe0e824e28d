"""Works the timers that move an incident's fate: `escalate`, `exhaust`, `unsnooze` and their kin.

One transaction takes some hundreds of incidents. Reads the directory before it, sends nothing in it.
A timer that fails alone is tried again later, and in the end pages the fallback; none is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine import metrics
from engine.clock import Clock
from engine.db import Database, Tx, Writer, waiting_at_most
from engine.directory import Directory
from engine.errors import Unavailable
from engine.escalation.fate import PageFallback, Stuck
from engine.models import ORG, Timer
from engine.nudge import Nudge
from engine.pager.alarm import raise_alarm
from engine.pager.apply import Change, Effects, apply
from engine.pager.fired import COMMANDS, ENTRIES, ruled
from engine.pager.ladder import Ladders, reaches_somebody
from engine.pager.maintenance import held as held_by_maintenance
from engine.pager.maintenance import on_now
from engine.pager.unclean import UncleanEnd
from engine.pager.walk import new_versions, policy_of, show
from engine.pager.worked import Ended, Worked, batches, failures, one_each, together
from engine.store import incidents, timers
from engine.store.incidents import Incident

log = structlog.get_logger(__name__)

AT_ONCE: Final = 2  # batches: while the database works one, we decide the next
SUSPECTS: Final = 5  # in one go: each is a few commits, and a new incident waits for them
OVERDUE: Final = timedelta(milliseconds=100)  # then the incident's lock is waited for
WAIT_FOR: Final = 3  # of them in one go: each wait holds up the lane
PATIENCE: Final = timedelta(milliseconds=250)  # for one of them
TRIES: Final = 5
TRY_AGAIN: Final = timedelta(seconds=30)


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
        self._known_held: set[int] = set()  # timers: said once, and not at every look

    async def handle(self, due: Sequence[Timer]) -> int:
        found = self._unclean.sort(due)
        work = [self._in_turn(batch) for batch in batches(found.usual)]
        work += [self._in_turn(batch, old=True) for batch in batches(found.left)]
        ended: list[Ended] = await asyncio.gather(*work, return_exceptions=True)
        if found.suspects and not failures(ended):
            ended += await asyncio.gather(self._suspects(found.suspects), return_exceptions=True)
        if (held := together(ended).skipped) and not failures(ended):
            ended += await asyncio.gather(self._held(held), return_exceptions=True)
        finished = len(together(ended).finished)
        if finished:
            self._nudge()
        for failure in failures(ended):
            raise failure
        return finished

    async def _in_turn(self, batch: Sequence[Timer], *, old: bool = False) -> Worked:
        async with self._at_once:
            return await (self._counted(batch, self._batch) if old else self._batch(batch))

    async def _suspects(self, suspects: Sequence[Timer]) -> Worked:
        """After all others and one by one, each counted first: what ends a process must not do so for
        ever. Few: a new incident does not wait for the rest, which stay due."""
        ended = []
        for timer in suspects[:SUSPECTS]:
            try:
                ended.append(await self._suspect(timer))
            except Unavailable:
                log.warning("escalate.suspect_unavailable", kind=timer.kind, incident=timer.subject_id)
                self._unclean.put_last(timer)
                break  # it took seconds, and so may the next one
        return together(ended)

    async def _suspect(self, timer: Timer) -> Worked:
        if self._unclean.tries(timer, timer.attempt) >= TRIES:
            return await self._put_off(timer)
        return await self._counted([timer], self._singly)

    async def _counted(
        self,
        old: Sequence[Timer],
        work: Callable[[Sequence[Timer]], Awaitable[Worked]],
        wait: timedelta | None = None,
    ) -> Worked:
        """Work what may have ended a process before: it is counted while we are at it."""
        ours = await self._unclean.count(old, wait)
        try:
            worked = await work(ours) if ours else Worked()
        except Unavailable:
            await self._unclean.survived(ours)
            raise
        await self._unclean.survived(ours, worked.finished)
        taken = {timer.id for timer in ours}
        return Worked(worked.finished, (*worked.skipped, *(t for t in old if t.id not in taken)))

    async def _batch(self, batch: Sequence[Timer]) -> Worked:
        try:
            return await self._work(batch)
        except Unavailable:
            raise
        except Exception:
            log.exception("escalate.batch_failed", timers=len(batch))
            return await self._singly(batch)

    async def _held(self, skipped: Sequence[Timer]) -> Worked:
        """Wait in the queue for a few incidents that others hold, or they might be held each time we
        look; not for long, since all others wait for us meanwhile."""
        overdue = [t for t in skipped if self._clock.now() - t.due_at > OVERDUE][:WAIT_FOR]
        ended, still = [], set()
        for timer in overdue:
            one = await self._waiting(timer)
            ended.append(one)
            if not one.finished:
                still.add(timer.id)
                if timer.id not in self._known_held:
                    log.warning("escalate.held", kind=timer.kind, incident=timer.subject_id)
        self._known_held = still
        return Worked(together(ended).finished)

    async def _waiting(self, timer: Timer) -> Worked:
        try:
            if self._unclean.is_old(timer):
                return await self._counted([timer], self._wait_for, PATIENCE)
            return await self._wait_for([timer])
        except Unavailable:  # of one incident: the batch before it was worked
            return Worked()

    async def _wait_for(self, few: Sequence[Timer]) -> Worked:
        return await self._singly(few, wait=PATIENCE)

    async def _singly(self, batch: Sequence[Timer], wait: timedelta | None = None) -> Worked:
        return together([await self._alone(timer, wait) for timer in batch])

    async def _alone(self, timer: Timer, wait: timedelta | None) -> Worked:
        """One timer by itself; a failure counts and puts it off."""
        try:
            return await self._work([timer], wait)
        except Unavailable:
            raise
        except Exception:
            log.exception("escalate.failed", kind=timer.kind, incident=timer.subject_id)
            metrics.timers_failed.labels(timer.kind).inc()
            return await self._put_off(timer)

    async def _work(self, batch: Sequence[Timer], wait: timedelta | None = None) -> Worked:
        known = await self._directory_now()
        now = self._clock.now()
        worked = await self._database.write(
            lambda tx: self._unit(tx, batch, known, now, wait), rank=Writer.ESCALATE
        )
        for timer in worked.finished:
            lateness = (now - timer.due_at).total_seconds()
            metrics.timer_lateness_seconds.labels(timer.kind).observe(max(0.0, lateness))
        return worked

    async def _unit(
        self, tx: Tx, batch: Sequence[Timer], known: Directory, now: datetime, wait: timedelta | None
    ) -> Worked:
        locked = await _lock(tx, [t.subject_id for t in batch], wait)
        if locked is None:
            return Worked((), tuple(batch))
        held = {incident.id: incident for incident in locked}
        absent = tuple(t for t in batch if t.subject_id not in held)
        ours = one_each([timer for timer in batch if timer.subject_id in held])
        due = await timers.finish_due(tx, [timer.id for timer in ours], now)
        walking = [(held[t.subject_id], await policy_of(tx, known, held[t.subject_id])) for t in due]
        windows = await on_now(tx, ORG, now)
        ladders = Ladders(known, now)
        changed = [
            held_by_maintenance(timer, incident, windows, now)
            or ruled(timer, incident, policy, ladders, now, COMMANDS[timer.kind], ENTRIES[timer.kind])
            for timer, (incident, policy) in zip(due, walking, strict=True)
        ]
        changes = [change for change in changed if change is not None]
        await apply(tx, ORG, changes, known, now, new_versions(walking))
        await show(tx, known, walking, now)
        await self._alarms(tx, changes, now)
        if wait is None:
            return Worked(tuple(due), absent)
        # Nobody was skipped, so these incidents are no more: their timers would be due for ever.
        await timers.finish_all(tx, [t.id for t in absent])
        return Worked((*due, *absent), ())

    async def _alarms(self, tx: Tx, changes: Sequence[Change], now: datetime) -> None:
        for change, _ in Effects(changes).of(PageFallback):
            if not reaches_somebody(change.chain):
                text = f"#{change.incident.number}: nobody can be reached, and the fallback chain is empty"
                await raise_alarm(tx, change.incident.org_id, "fallback_empty", text, now)

    async def _put_off(self, timer: Timer) -> Worked:
        """Count the failure and try again later; after the last try the fallback is paged."""
        again_at = self._clock.now() + TRY_AGAIN
        # Why without the incident's lock: the incident may be what cannot be read. It is one row.
        attempt = await self._database.write(
            lambda tx: timers.defer_failed(tx, timer, again_at), rank=Writer.ESCALATE
        )
        if self._unclean.tries(timer, attempt) < TRIES:
            return Worked()
        try:
            return await self._give_up(timer)
        except Unavailable:
            raise
        except Exception:
            log.exception("escalate.stuck", kind=timer.kind, incident=timer.subject_id)
            text = f"incident {timer.subject_id} cannot be read, and nobody is paged for it"
            await self._database.write(lambda tx: _alarm(tx, timer, text, self._clock.now()))
            return Worked()

    async def _give_up(self, timer: Timer) -> Worked:
        now = self._clock.now()
        known = await self._directory_now()

        async def unit(tx: Tx) -> Worked:
            held = await _lock(tx, [timer.subject_id], PATIENCE)
            if not held or timer.id not in await timers.live(tx, [timer.id]):
                return Worked()
            incident = held[0]
            await timers.finish_all(tx, [timer.id])
            policy = await policy_of(tx, known, incident)
            change = ruled(timer, incident, policy, Ladders(known, now), now, Stuck(), "failed")
            if change is None:
                return Worked((timer,))
            await apply(tx, incident.org_id, [change], known, now)
            await _alarm(tx, timer, f"#{incident.number}: a {timer.kind} timer failed {TRIES} times", now)
            return Worked((timer,))

        return await self._database.write(unit, rank=Writer.ESCALATE)


async def _lock(tx: Tx, ids: Sequence[int], wait: timedelta | None) -> list[Incident] | None:
    """Those that nobody else holds; with `wait` all of them, or None if that takes longer."""
    if wait is None:
        return await incidents.lock(tx, ids, skip_locked=True)
    locked = None
    async with waiting_at_most(tx, wait):
        locked = await incidents.lock(tx, ids)
    return locked


async def _alarm(tx: Tx, timer: Timer, text: str, now: datetime) -> None:
    await raise_alarm(tx, timer.org_id, f"timer:{timer.kind}", text, now)
