"""Deliveries: how late the provider has the request, with one that is slow, one that is dead, and a queue."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import sqlalchemy as sa

from bot.collector import calm_the_collector
from engine import schema
from engine.clock import Clock, SystemClock
from engine.config.parse import parse_config
from engine.db import Database, Tx
from engine.escalation import open_fate
from engine.horizon import Horizon
from engine.migrate import upgrade
from engine.models import (
    ORG,
    DeliveryKind,
    LaneName,
    Method,
    NewDelivery,
    Outcome,
    Page,
    Retry,
    Sent,
    Urgency,
)
from engine.notify.paces import Paces
from engine.notify.pipeline import Pipeline
from engine.notify.transport import Transports
from engine.nudge import Nudge
from engine.pager.apply import deliver_armings
from engine.pager.setup import Setup
from engine.rota.roster import Roster
from engine.store import deliveries, incidents, timers
from engine.store.incidents import NewIncident
from engine.vault import Vault
from engine.worker import Lane, Worker

RATE = 200  # due a second
SECONDS = 20
TAKES = timedelta(milliseconds=300)
FAILS = 20  # one of so many
QUEUED = 10_000  # due in one instant
PACE = 100.0  # a second
INCIDENTS = 500
AT_ONCE = 1_000  # rows a transaction
UNHELD = 100_000.0  # a pace that holds nothing back

CONFIG = """
people:
  - {name: ana, timezone: UTC, contact: {sms: "+12025550143"}, rules: {high: [sms], low: [sms]}}
policies:
  - {name: p, levels: [{targets: [{person: ana}], timeout: 30m}]}
services:
  - {name: checkout, policy: p}
"""


@dataclass(slots=True)
class Result:
    """Lateness in seconds, from due to the provider having the request; the drained rate of the pace."""

    slow: list[float]
    dead: list[float]
    drained: float  # of the pace
    urgent: float  # seconds that the page which passed the queue took


@dataclass(slots=True)
class Company:
    """Takes a while, refuses some, and notes when it had each page first."""

    clock: Clock
    provider: str = "company"
    fails: int = 0
    methods: frozenset[Method] = frozenset({Method.SMS})
    had: dict[int, datetime] = field(default_factory=dict)
    awaited: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, page: Page) -> Outcome:
        self.had.setdefault(page.id, self.clock.now())
        if len(self.had) >= self.awaited:
            self.done.set()
        await asyncio.sleep(TAKES.total_seconds())
        if self.fails and page.id % self.fails == 0:
            return Retry("the company failed")
        return Sent(f"ref {page.id}", self.provider)

    async def close(self) -> None:
        return None


@dataclass(slots=True)
class Dead:
    """Takes no connection."""

    provider: str = "dead"
    methods: frozenset[Method] = frozenset({Method.SMS})

    async def send(self, page: Page) -> Outcome:
        return Retry("connection refused", unsent=True)

    async def close(self) -> None:
        return None


class Bench:
    """A Midwatch of which only deliveries run."""

    def __init__(self, url: str) -> None:
        self.database, self.clock = Database(url), SystemClock()
        self._vault = Vault("a secret for benchmarks")
        self._keys = itertools.count()
        self.person = 0
        self.nudge = Nudge(self.database)
        self.about: dict[Urgency, list[int]] = {}

    async def prepare(self) -> None:
        await upgrade(self.database)
        await Setup(self.database, self.clock, self._vault).apply(parse_config(CONFIG))
        known = await self._roster().directory()
        self.person, service = next(iter(known.people)), next(iter(known.services))
        now = self.clock.now()

        async def unit(tx: Tx) -> None:
            for urgency in (Urgency.HIGH, Urgency.LOW):
                fate = open_fate(urgency, 1, 1)
                new = [
                    NewIncident(service, f"{urgency}-{n}", "disk is full", fate, None, "", now, 1)
                    for n in range(INCIDENTS)
                ]
                self.about[urgency] = sorted((await incidents.insert(tx, ORG, new)).values())

        await self.database.write(unit)

    def _roster(self) -> Roster:
        return Roster(self.database, self.clock, self._vault)

    async def worker(self, transports: Sequence[Company | Dead], per_second: float) -> Worker:
        horizon, self.nudge = Horizon(self.database, self.clock), Nudge(self.database)
        pipeline = Pipeline(
            self.database,
            self.clock,
            self._roster().directory,
            self.nudge,
            Transports(transports),
            owner="bench",
            paces=Paces.per_second(per_second),
        )
        lane = Lane(
            LaneName.DELIVER, pipeline, horizon, self.database, self.clock, capacity=lambda: pipeline.capacity
        )
        worker = Worker([lane], horizon, pipeline.drain)
        self.nudge.subscribe(worker.wake)
        await worker.start()
        return worker

    async def queue(
        self, count: int, start: datetime, apart: timedelta = timedelta(), urgency: Urgency = Urgency.HIGH
    ) -> dict[int, datetime]:
        """So many pages; when each is due, by its id."""
        due: dict[int, datetime] = {}
        about = self.about[urgency]
        for first in range(0, count, AT_ONCE):
            new = [
                NewDelivery(
                    about[n % INCIDENTS],
                    DeliveryKind.PAGE,
                    Method.SMS,
                    f"bench {next(self._keys)}",
                    start + n * apart,
                    person_id=self.person,
                    round=1,
                )
                for n in range(first, min(count, first + AT_ONCE))
            ]

            async def unit(tx: Tx, new: Sequence[NewDelivery] = new) -> dict[int, datetime]:
                queued = await deliveries.queue(tx, ORG, new, self.clock.now())
                await timers.arm(tx, ORG, deliver_armings(queued))
                return dict(queued)

            due |= await self.database.write(unit)
        self.nudge()
        return due


async def run(url: str) -> Result:
    bench = Bench(url)
    await bench.prepare()
    calm_the_collector()  # as a process of ours does when it starts
    slow = await _steady(bench, [Company(bench.clock, fails=FAILS)])
    dead = await _steady(bench, [Dead(), Company(bench.clock)])
    drained, urgent = await _queue(bench)
    await bench.database.close()
    return Result(slow, dead, drained, urgent)


async def _steady(bench: Bench, transports: Sequence[Company | Dead]) -> list[float]:
    company = next(one for one in transports if isinstance(one, Company))
    company.awaited = RATE * SECONDS
    worker = await bench.worker(transports, UNHELD)
    start = bench.clock.now() + timedelta(seconds=2)
    due = await bench.queue(company.awaited, start, timedelta(seconds=1) / RATE)
    async with asyncio.timeout(SECONDS + 60):
        await company.done.wait()
    await worker.stop()
    await _forget(bench)
    return [(company.had[one] - at).total_seconds() for one, at in due.items()]


async def _queue(bench: Bench) -> tuple[float, float]:
    """Of the pace, at which the queue drained; and how long a page that came meanwhile took."""
    company = Company(bench.clock, awaited=QUEUED + 1)
    worker = await bench.worker([company], PACE)
    await bench.queue(QUEUED, bench.clock.now(), urgency=Urgency.LOW)
    await asyncio.sleep(QUEUED / PACE / 4)
    ((urgent, at),) = (await bench.queue(1, bench.clock.now())).items()
    async with asyncio.timeout(QUEUED / PACE + 60):
        await company.done.wait()
    await worker.stop()
    times = sorted(company.had.values())
    burst = round(PACE)
    spread = (times[-1] - times[burst]).total_seconds()
    return (len(times) - burst - 1) / spread / PACE, (company.had[urgent] - at).total_seconds()


async def _forget(bench: Bench) -> None:
    """What failed would be tried again in the next measurement."""

    async def unit(tx: Tx) -> None:
        await tx.execute(sa.delete(schema.timers))

    await bench.database.write(unit)
