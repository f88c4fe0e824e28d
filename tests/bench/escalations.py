"""Escalations with their whole effect: an incident moves, deliveries are written, a timer is armed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.collector import calm_the_collector
from engine.clock import Clock, SystemClock
from engine.config.parse import parse_config
from engine.db import Database, Tx
from engine.horizon import Horizon
from engine.intake.receive import Receiver
from engine.migrate import upgrade
from engine.models import ORG, Action, Body, Event, LaneName, Severity, Timer, TimerKind
from engine.nudge import Nudge
from engine.pager.escalate import Escalator
from engine.pager.setup import Setup
from engine.pager.worked import Worked
from engine.rota.roster import Roster
from engine.store import timers
from engine.store.timers import Arming
from engine.vault import Vault
from engine.worker import Lane, Worker
from tests.bench.serve import CONFIG
from tests.bench.timers import nothing_flies

AT_ONCE = 6_000  # due in the same instant: how fast is it drained
RATE = 1_000  # due a second: how late is each
SECONDS = 10
BODY = 500  # events a request


@dataclass(slots=True)
class Result:
    """How many a second when all are due, and how late each was at the steady rate, in seconds."""

    rate: float
    lateness: list[float]


class Noting(Escalator):
    """An escalator that notes how late each timer's effect was committed."""

    def __init__(self, clock: Clock, database: Database, roster: Roster, nudge: Nudge) -> None:
        super().__init__(database, clock, roster.directory, nudge)
        self.clock = clock
        self.lateness: list[float] = []
        self.done = asyncio.Event()

    async def _batch(self, batch: Sequence[Timer]) -> Worked:
        done = await super()._batch(batch)
        now = self.clock.now()
        self.lateness += [(now - timer.due_at).total_seconds() for timer in batch]
        if len(self.lateness) >= RATE * SECONDS:
            self.done.set()
        return done


async def run(url: str) -> Result:
    database, clock = Database(url), SystemClock()
    await upgrade(database)
    vault = Vault("a secret for benchmarks")
    await Setup(database, clock, vault).apply(parse_config(CONFIG))
    roster, nudge = Roster(database, clock, vault), Nudge(database)
    escalator = Noting(clock, database, roster, nudge)
    horizon = Horizon(database, clock)
    lane = Lane(LaneName.FATE, escalator, horizon, database, clock)
    worker = Worker([lane], horizon, nothing_flies)
    nudge.subscribe(worker.wake)
    opened = await _open(database, clock, roster, nudge, AT_ONCE + RATE * SECONDS)
    await _arm(database, opened[:AT_ONCE], clock.now(), timedelta())
    calm_the_collector()  # as a process of ours does when it starts
    began = time.perf_counter()
    await lane.run_due()
    rate = AT_ONCE / (time.perf_counter() - began)
    escalator.lateness.clear()
    escalator.done.clear()
    await _arm(database, opened[AT_ONCE:], clock.now() + timedelta(seconds=2), timedelta(seconds=1) / RATE)
    await worker.start()
    async with asyncio.timeout(SECONDS + 60):
        await escalator.done.wait()
    await worker.stop()
    await database.close()
    return Result(rate, escalator.lateness)


async def _open(database: Database, clock: Clock, roster: Roster, nudge: Nudge, count: int) -> list[int]:
    """The ids of so many incidents, whose first timers are put off for an hour."""
    receiver = Receiver(database, clock, roster.directory, nudge)
    service = next(iter((await roster.directory()).services))
    ids: list[int] = []
    for first in range(0, count, BODY):
        events = tuple(_event(n) for n in range(first, min(count, first + BODY)))
        receipts = await receiver.accept(ORG, service, Body("bench", events))
        opened = [one.incident_id for one in receipts if one.incident_id is not None]
        await _arm(database, opened, clock.now() + timedelta(hours=1), timedelta())
        ids += opened
    await receiver.stop()
    return ids


def _event(n: int) -> Event:
    return Event(Action.TRIGGER, f"disk {n}", f"disk {n} is full", severity=Severity.CRITICAL)


async def _arm(database: Database, incidents: list[int], start: datetime, apart: timedelta) -> None:
    for offset in range(0, len(incidents), BODY):
        armings = [
            Arming(TimerKind.ESCALATE, one, start + (offset + n) * apart, epoch=1)
            for n, one in enumerate(incidents[offset : offset + BODY])
        ]

        async def unit(tx: Tx, armings: list[Arming] = armings) -> None:
            await timers.arm(tx, ORG, armings)

        await database.write(unit)
