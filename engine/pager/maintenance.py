"""Maintenance: windows in which no level is paged, and what a timer does that finds one.

Never cancels what was written before a window began, and never holds for more than a day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.errors import BadInput, NotFound
from engine.escalation import decide
from engine.escalation.fate import Hold
from engine.models import ORG, Actor, Timer, TimerKind, Urgency, Via
from engine.pager.apply import Change
from engine.store import maintenance as store
from engine.store.incidents import Incident
from engine.store.maintenance import Window

log = structlog.get_logger(__name__)

LONGEST: Final = timedelta(hours=24)  # whoever may hold back pages must not be able to do so for good
REASON_MAX: Final = 500
HELD: Final = frozenset({TimerKind.ESCALATE, TimerKind.EXHAUST, TimerKind.ACK_TIMEOUT, TimerKind.UNSNOOZE})


class Maintenance:
    """Windows as people start, list and end them; who did it is kept in the row and the log."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def start(
        self, service_id: int | None, start_at: datetime, end_at: datetime, reason: str, actor: Actor
    ) -> Window:
        """Hold back the pages of a service, or with None of all, from `start_at` until `end_at`."""
        now = self._clock.now()
        start_at = max(start_at, now)
        if end_at <= start_at:
            raise BadInput("A maintenance window ends after it begins, and in the future.")
        if end_at - start_at > LONGEST:
            raise BadInput("A maintenance window lasts 24 hours at most.")
        wanted = Window(0, service_id, start_at, end_at, reason[:REASON_MAX], actor.name)
        new = await self._database.write(lambda tx: store.insert(tx, ORG, wanted), rank=Writer.RESPOND)
        log.info(
            "maintenance.started",
            window=new,
            service=service_id,
            by=actor.name,
            via=actor.via.value,
            start_at=start_at.isoformat(),
            end_at=end_at.isoformat(),
            reason=wanted.reason,
        )
        return Window(new, service_id, start_at, end_at, wanted.reason, wanted.created_by)

    async def list(self) -> Sequence[Window]:
        """Those that are on or will be, the first to begin first."""
        async with self._database.snapshot() as tx:
            return await store.to_come(tx, ORG, self._clock.now())

    async def held_until(self, service_id: int) -> datetime | None:
        """When the pages of this service go out again; None: they are not held now."""
        async with self._database.snapshot() as tx:
            own = _of(await store.on_now(tx, ORG, self._clock.now()), service_id)
        return max((one.end_at for one in own), default=None)

    async def end(self, service_id: int | None, actor: Actor) -> Sequence[Window]:
        """End the windows of this very service (None: those of all services); says which.

        What they hold is paged within five minutes: no held timer sleeps longer.
        """
        return await self._end(lambda window: window.service_id == service_id, actor)

    async def end_one(self, window_id: int, actor: Actor) -> Window:
        ended = await self._end(lambda window: window.id == window_id, actor)
        if not ended:
            raise NotFound("No such maintenance window is on or planned.")
        return ended[0]

    async def _end(self, meant: Callable[[Window], bool], actor: Actor) -> Sequence[Window]:
        now = self._clock.now()

        async def unit(tx: Tx) -> list[Window]:
            found = [one for one in await store.to_come(tx, ORG, now) if meant(one)]
            await store.end(tx, ORG, [one.id for one in found], now)
            return found

        ended = await self._database.write(unit, rank=Writer.RESPOND)
        for one in ended:
            log.info("maintenance.ended", window=one.id, by=actor.name, via=actor.via.value)
        return ended


# --- what a timer finds ------------------------------------------------------------------------------


async def on_now(tx: Tx, org_id: int, now: datetime) -> Sequence[Window]:
    """The windows in force. Ask under the incidents' locks: whoever starts one later comes later."""
    return await store.on_now(tx, org_id, now)


def held(timer: Timer, incident: Incident, windows: Sequence[Window], now: datetime) -> Change | None:
    """The timer moves itself towards the window's end; None when no window holds it.

    Only the first look at a window is told: it looks again every few minutes, since a window may
    be ended early.
    """
    own = _of(windows, incident.service_id)
    if not own or timer.kind not in HELD or timer.epoch != incident.fate.epoch:
        return None
    if incident.fate.urgency is Urgency.NONE and timer.kind == TimerKind.ESCALATE:
        return None  # it pages nobody anyway: nothing needs to be looked at again
    last = max(own, key=lambda one: (one.end_at, one.id))
    command = Hold(TimerKind(timer.kind), last.end_at, last.created_by, last.reason)
    decision = decide(incident.fate, command, now)
    if decision.fate == incident.fate and not decision.effects:
        return None
    told = incident.fate.held_until == last.end_at
    return Change(incident, decision, "held", Actor("Midwatch", Via.TIMER), quiet=told)


def _of(windows: Iterable[Window], service_id: int) -> list[Window]:
    return [one for one in windows if one.service_id in {None, service_id}]
