"""A pager that can be killed at its Nth boundary, and the people around it, who cannot.

A boundary is a statement, a commit (before and after) or a send (before, and after the provider took
it). After a kill the process is gone: nothing of it runs on. Whoever had no answer asks again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event

from bot.app import App
from engine import audit, schema
from engine.db import Database, Tx
from engine.models import ORG, Body, Method, Outcome, Page, Sent
from tests.fakes import START, FakeClock
from tests.scenario.harness import Pager, fire

T = TypeVar("T")

CONFIG = """
people:
  - {name: alice, slack: U0ALICE, timezone: UTC, contact: {sms: "+12025550101"},
     rules: {high: [slack, sms after 1m]}}
  - {name: bob, timezone: UTC, contact: {sms: "+12025550102"}, rules: {high: [sms]}}
policies:
  - name: payments
    levels: [{targets: [{person: alice}], timeout: 5m}, {targets: [{person: bob}], timeout: 10m}]
services: [{name: checkout, policy: payments}]
fallback: [{person: bob}]
"""
UNFINISHED = schema.deliveries.c.status.in_(("queued", "sending"))
LATENESS = timedelta(seconds=35)  # a lease, and what was being done
HAPPENED = (  # everything that is not the directory, in an order in which it can be deleted
    "attempts",
    "cards",
    "deliveries",
    "timers",
    "timeline",
    "events",
    "alerts",
    "dedup_keys",
    "incidents",
    "inbound",
)


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Boundaries:
    """Counts what the process does, and kills it at the Nth; once dead it stays so."""

    kill_at: int = 0  # 0: never
    seen: int = 0
    at: str = ""
    log: list[str] = field(default_factory=list)
    died: asyncio.Event = field(default_factory=asyncio.Event)

    def pass_by(self, what: str) -> None:
        self.seen += 1
        self.log.append(what)
        if self.seen == self.kill_at:
            self.at = what
            self.died.set()
        if self.died.is_set():
            raise Killed(what)


class Watched(Database):
    """Passes every boundary on. One for all runs of a test: each engine compiles every statement anew."""

    boundaries: Boundaries | None = None

    def __init__(self, url: str) -> None:
        super().__init__(url, pool_size=2)
        engine = self.writer_engine.sync_engine

        @event.listens_for(engine, "before_cursor_execute")
        def statement(_c: Any, _cursor: Any, text: str, *_: Any) -> None:
            self.pass_by(f"before {' '.join(text.split())[:70]}")

        @event.listens_for(engine, "commit")
        def commit(_c: Any) -> None:
            self.pass_by("before COMMIT")

    async def _transact(self, unit: Callable[[Tx], Awaitable[T]]) -> T:
        result = await super()._transact(unit)
        self.pass_by("after COMMIT")
        return result

    def pass_by(self, what: str) -> None:
        if self.boundaries is not None:
            self.boundaries.pass_by(what)


@dataclass
class Provider:
    """Takes every message but those that were scripted to fail, and remembers each. Outlives the pager."""

    methods: frozenset[Method]
    provider: str
    world: World
    fails: list[Outcome] = field(default_factory=list)

    async def send(self, page: Page) -> Outcome:
        self.world.boundaries.pass_by(f"before the send of {page.id}")
        if page.kind == "page" and self.fails:
            return self.fails.pop(0)
        self.world.took(page)
        self.world.boundaries.pass_by(f"after the send of {page.id}")
        return Sent(f"{page.id}-{page.attempt}", self.provider)

    async def close(self) -> None:
        return None


class World:
    """The pager of one run, and everybody who outlives it."""

    def __init__(self, database: Watched, kill_at: int = 0) -> None:
        self.clock = FakeClock()
        self.boundaries = Boundaries()
        self.database = database
        self.pager = Pager(database.url, self.clock, CONFIG)
        self.kill_at = kill_at
        self.accepted = 0
        self.sent: list[Page] = []
        self.told_at: dict[tuple[str | None, str], datetime] = {}
        self.in_doubt: set[int] = set()  # sent when the process died, and not recorded
        self.acked = False
        self.violations: list[str] = []

    async def begin(self) -> None:
        """Forget what happened in an earlier run, and bring the pager to life under watch."""
        self.database.boundaries = None
        await self.pager.start()
        await self.pager.app.database.write(_forget)
        self.pager.transports = {
            method: Provider(frozenset({method}), method.value, self)  # type: ignore[misc]  # the comprehension hides its type
            for method in (Method.SLACK, Method.SMS, Method.URL, Method.CHANNEL)
        }
        await self.restart()
        self.boundaries.kill_at = self.kill_at

    @property
    def app(self) -> App:
        return self.pager.app

    async def restart(self) -> None:
        flying = list(self.app.pipeline._flying)
        await asyncio.gather(*flying, return_exceptions=True)
        if task := self.app.receiver._task:
            await asyncio.gather(task, return_exceptions=True)
        self.database.boundaries = None
        await self.database.close()  # its connections; the engines go on
        self.pager.app = self.pager._build()
        self.boundaries.died.clear()
        self.boundaries.kill_at = 0 if self.boundaries.at else self.kill_at
        self.acked = self.acked or await self._is_acked()
        self.in_doubt |= {page.id for page in self.sent} & await self._sending()
        self.database.boundaries = self.boundaries

    async def until_it_is_done(self, step: Callable[[], Awaitable[T]]) -> T:
        """Do it; if the process died meanwhile, start another one a second later and do it again."""
        while True:
            doing = asyncio.ensure_future(step())
            died = asyncio.ensure_future(self.boundaries.died.wait())
            await asyncio.wait({doing, died}, return_when=asyncio.FIRST_COMPLETED)
            died.cancel()
            doing.cancel()  # whoever waited for the dead process hears nothing more; a no-op if it is done
            await asyncio.wait({doing})
            if not self.boundaries.died.is_set():
                return doing.result()
            self.clock.move(seconds=1)
            await self.restart()

    def took(self, page: Page) -> None:
        if page.kind == "page" and self.acked:
            self.violations.append(f"{page.person} was paged by {page.method} after the ack")
        self.sent.append(page)
        if page.kind == "page":
            self.told_at.setdefault((page.person, page.method.value), self.clock.now())

    # --- what the people around it do --------------------------------------------------------------------

    async def alert(self) -> None:
        async def post() -> None:
            service = await self.pager.service_id("checkout")
            await self.app.receiver.accept(ORG, service, Body("test", (fire(),)))

        await self.until_it_is_done(post)
        self.accepted = 1

    async def wait(self, **delta: float) -> None:
        end = self.clock.now() + timedelta(**delta)

        async def pass_time() -> None:
            while True:
                await self.app.worker.run_due()
                due = await self.app.next_due()
                if self.boundaries.died.is_set() or due is None or due > end:
                    break
                self.clock.move_to(max(due, self.clock.now() + timedelta(milliseconds=10)))
            self.clock.move_to(max(end, self.clock.now()))
            await self.app.worker.run_due()

        await self.until_it_is_done(pass_time)

    async def answer(self, command: str) -> None:
        async def ask() -> None:
            number = await self.app.responder.find(1)
            assert number is not None
            await getattr(self.app.responder, command)(number, await self.pager.person("bob"))

        await self.until_it_is_done(ask)
        self.acked = True

    # --- what must be so ---------------------------------------------------------------------------------

    async def check_nobody_is_forgotten(self) -> None:
        """Of an incident that nobody has taken somebody hears, now or at a time that is known."""
        rows = await self._count(schema.incidents, schema.incidents.c.status != "resolved")
        if rows != 1:
            self.violations.append(f"{rows} open incidents")
        await self._audit()

    async def check_ladder(self) -> None:
        """Everybody was told by their time: a crash costs a lease, and the time of a restart (I3)."""
        for person, method, after in (("alice", "slack", 1), ("alice", "sms", 1), ("bob", "sms", 5)):
            at = self.told_at.get((person, method))
            if at is None or at > START + timedelta(minutes=after) + LATENESS:
                self.violations.append(f"{person} was told by {method} at {at}")

    async def check_the_end(self) -> None:
        """Everything is closed, nothing is left behind, nothing was sent twice without a reason."""
        for table, where, what in (
            (schema.incidents, schema.incidents.c.status != "resolved", "open incidents"),
            (schema.timers, sa.true(), "timers left"),
            (schema.deliveries, UNFINISHED, "unfinished deliveries"),
            (schema.attempts, schema.attempts.c.outcome == "sending", "attempts without an end"),
        ):
            if found := await self._count(table, where):
                self.violations.append(f"{found} {what}")
        alerts = await self._count(schema.alerts, sa.true())
        incidents = await self._count(schema.incidents, sa.true())
        if (alerts, incidents) != (1, 1):
            self.violations.append(f"{alerts} alerts on {incidents} incidents")
        sends = Counter(page.id for page in self.sent)
        again = {page: times - 1 for page, times in sends.items() if times > 1}
        if sum(again.values()) > 1 or not again.keys() <= self.in_doubt:
            self.violations.append(f"sent again: {again}, in doubt were {self.in_doubt}")
        await self._audit()

    async def _audit(self) -> None:
        async with self.app.database.snapshot() as tx:
            later: datetime = self.clock.now() + timedelta(minutes=1)
            self.violations += [f"audit: {finding}" for finding in await audit.find(tx, ORG, later)]

    async def _count(self, table: sa.Table, where: Any) -> int:
        async with self.app.database.snapshot() as tx:
            return int(await tx.scalar(sa.select(sa.func.count()).select_from(table).where(where)) or 0)

    async def _sending(self) -> set[int]:
        table = schema.deliveries
        async with self.app.database.snapshot() as tx:
            return set(await tx.scalars(sa.select(table.c.id).where(table.c.status == "sending")))

    async def _is_acked(self) -> bool:
        return (
            await self._count(schema.incidents, schema.incidents.c.status.in_(("acknowledged", "resolved")))
            > 0
        )


async def _forget(tx: Tx) -> None:
    for name in HAPPENED:
        await tx.execute(sa.delete(schema.metadata.tables[name]))
    await tx.execute(sa.delete(schema.counters).where(schema.counters.c.name == "incident"))
