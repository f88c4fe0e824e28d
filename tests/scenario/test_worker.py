"""The loop around the timers: what wakes it, what it survives, how it ends."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from engine import db, horizon, worker
from engine.clock import SystemClock, monotonic
from engine.db import Database
from engine.errors import Unavailable
from engine.horizon import Horizon
from engine.models import (
    ORG,
    Actor,
    Body,
    DeliveryStatus,
    IncidentStatus,
    LaneName,
    Method,
    Timer,
    TimerKind,
    Via,
)
from engine.nudge import Nudge
from engine.store import timers
from engine.store.timers import Arming
from engine.worker import Claiming, Lane, Worker
from tests.fakes import START, FakeClock
from tests.scenario.harness import Pager, fire
from tests.scenario.sending import LADDER, gate, only
from tests.servers import run_on_server
from tests.store import queue

PATIENCE = 10  # seconds that a test waits at most
HOUR = timedelta(hours=1)

CLOCK = SystemClock()


class Recorder:
    """Finishes what it is given, and remembers it; fails as often as it was told to."""

    def __init__(self, database: Database, awaited: int = 1) -> None:
        self.database = database
        self.awaited = awaited
        self.worked: list[tuple[Timer, timedelta]] = []  # and how late
        self.done = asyncio.Event()
        self.fails: list[Exception] = []
        self.before: Callable[[], Awaitable[None]] | None = None

    async def handle(self, due: Sequence[Timer]) -> int:
        if self.fails:
            raise self.fails.pop()
        now = CLOCK.now()
        if self.before is not None:
            await self.before()
        await self.database.write(lambda tx: timers.finish_all(tx, [timer.id for timer in due]))
        self.worked += [(timer, now - timer.due_at) for timer in due]
        if len(self.worked) >= self.awaited:
            self.done.set()
        return len(due)

    async def until_done(self) -> float:
        """Seconds until all that was awaited is worked."""
        began = monotonic()
        async with asyncio.timeout(PATIENCE):
            await self.done.wait()
        return monotonic() - began


class Sleeper(Horizon):
    """A horizon that says when it has nothing to do for the first time."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, CLOCK)
        self.asleep = asyncio.Event()

    async def _sleep(self, wait: timedelta) -> None:
        self.asleep.set()
        await super()._sleep(wait)


async def arm(database: Database, *after: timedelta) -> None:
    now = CLOCK.now()
    armings = [Arming(TimerKind.DELIVER, n, now + delay) for n, delay in enumerate(after)]
    await database.write(lambda tx: timers.arm(tx, ORG, armings))


@asynccontextmanager
async def running(recorder: Recorder) -> AsyncIterator[Worker]:
    """A worker of one lane that has looked once, found nothing and sleeps."""
    far = Sleeper(recorder.database)
    lane = Lane(LaneName.DELIVER, recorder, far, recorder.database, CLOCK)
    made = Worker([lane], far, nothing_flies)
    await made.start()
    await asyncio.wait_for(far.asleep.wait(), PATIENCE)
    yield made
    await asyncio.wait_for(made.stop(), PATIENCE)


async def nothing_flies() -> None: ...


def no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but a nudge or a deadline wakes anybody within the hour."""
    monkeypatch.setattr(worker, "RECHECK", HOUR)
    monkeypatch.setattr(horizon, "LOOK_EVERY", HOUR)


async def test_a_nudge_wakes_it(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is armed for now is worked now, though the loop would have slept for an hour."""
    no_second_look(monkeypatch)
    recorder = Recorder(database)
    async with running(recorder) as made:
        await arm(database, timedelta())
        made.wake()
        await recorder.until_done()


async def test_it_wakes_when_a_timer_comes_due(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sleeps to the next deadline that it knows of, not to its next look."""
    no_second_look(monkeypatch)
    recorder = Recorder(database, awaited=2)
    async with running(recorder) as made:
        await arm(database, timedelta(milliseconds=200), timedelta(milliseconds=400))
        made.wake()
        await recorder.until_done()
    assert all(late >= timedelta() for _, late in recorder.worked)


async def test_what_comes_due_during_the_work_is_not_slept_over(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deadline that passes while others are worked is late already: the loop asks again at once."""
    no_second_look(monkeypatch)
    recorder = Recorder(database, awaited=2)
    soon = timedelta(milliseconds=100)

    async def past_the_next_deadline() -> None:
        recorder.before = None
        await CLOCK.sleep_until(CLOCK.now() + 2 * soon)

    recorder.before = past_the_next_deadline
    async with running(recorder) as made:
        await arm(database, timedelta(), soon)
        made.wake()
        await recorder.until_done()


async def test_it_looks_each_second_without_a_nudge(database: Database) -> None:
    """A lost nudge costs a second at most: the row is the truth."""
    recorder = Recorder(database)
    async with running(recorder):
        await arm(database, timedelta())
        assert await recorder.until_done() < 5  # a second, on a machine that does other things too


async def test_it_stops_at_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that sleeps for an hour ends when it is told to."""
    no_second_look(monkeypatch)
    began = monotonic()
    async with running(Recorder(database)):
        pass
    assert monotonic() - began < PATIENCE


async def test_no_failure_ends_it(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a handler raises, the next look is made, and only a look that succeeded is a tick (B060)."""
    monkeypatch.setattr(worker, "BACK_OFF", timedelta(milliseconds=10))
    recorder = Recorder(database)
    async with running(recorder) as made:
        recorder.fails = [RuntimeError("a bug"), Unavailable(), ValueError("another")]
        (lane,) = made.lanes
        handle, ticks = recorder.handle, []

        async def watched(due: Sequence[Timer]) -> int:
            ticks.append(lane.ticked_at)
            return await handle(due)

        recorder.handle = watched  # type: ignore[method-assign]  # watched from outside
        await arm(database, timedelta())
        made.wake()
        await recorder.until_done()
        assert recorder.fails == []
        assert (len(ticks), len(set(ticks))) == (4, 1)


async def test_it_outlives_a_locked_sqlite_file(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process holds the file nothing is worked; then all of it is (F-13)."""
    monkeypatch.setattr(db, "SQLITE_BUSY", timedelta(milliseconds=50))
    monkeypatch.setattr(worker, "BACK_OFF", timedelta(milliseconds=50))
    database = Database(sqlite_url)
    recorder = Recorder(database)
    await arm(database, timedelta())
    other = sqlite3.connect(str(make_url(sqlite_url).database), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    failed = asyncio.Event()
    handle = recorder.handle

    async def watched(due: Sequence[Timer]) -> int:
        try:
            return await handle(due)
        except Unavailable:
            failed.set()
            raise

    recorder.handle = watched  # type: ignore[method-assign]  # watched from outside
    far = Horizon(database, CLOCK)
    made = Worker([Lane(LaneName.DELIVER, recorder, far, database, CLOCK)], far, nothing_flies)
    await made.start()
    await asyncio.wait_for(failed.wait(), PATIENCE)
    assert recorder.worked == []
    other.execute("ROLLBACK")
    other.close()
    await recorder.until_done()
    await made.stop()
    await database.close()


async def test_it_outlives_a_restart_of_postgresql(
    postgresql_url: str, postgresql_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every connection is cut, more than once; the timers are worked on new ones (F-15)."""
    monkeypatch.setattr(worker, "BACK_OFF", timedelta(milliseconds=50))
    database = Database(postgresql_url)
    recorder = Recorder(database, awaited=3)
    async with running(recorder) as made:
        for n in range(3):
            await run_on_server(postgresql_server, _cut(postgresql_url))
            await arm(database, *[timedelta()] * (n + 1))
            made.wake()
            recorder.awaited = n + 1
            recorder.done.clear()
            await recorder.until_done()
    await database.close()


def _cut(url: str) -> str:
    name = make_url(url).database
    return f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"  # noqa: S608  # ours


async def test_a_nudge_reaches_other_processes_even_after_a_cut(
    postgresql_url: str, postgresql_server: str
) -> None:
    """A commit elsewhere wakes this process; a listener whose connection is cut listens again."""
    databases = [Database(postgresql_url) for _ in range(2)]
    here, there = (Nudge(database) for database in databases)
    heard = asyncio.Event()
    there.subscribe(heard.set)
    for one in (here, there):
        await one.start()
    for _ in range(2):
        await asyncio.wait_for(heard.wait(), PATIENCE)  # it listens now, and has looked for what it missed
        heard.clear()
        here()
        await asyncio.wait_for(heard.wait(), PATIENCE)
        heard.clear()
        await run_on_server(postgresql_server, _cut(postgresql_url))
    for one in (here, there):
        await one.stop()
    for database in databases:
        await database.close()


async def test_a_hundred_timers_are_worked_when_they_are_due(database: Database) -> None:
    """Each fires within a second of its deadline, never before it, and once."""
    recorder = Recorder(database, awaited=100)
    async with running(recorder) as made:
        await arm(database, *(timedelta(milliseconds=5 * n) for n in range(100)))
        made.wake()
        await recorder.until_done()
    late = sorted(late for _, late in recorder.worked)
    assert len({timer.id for timer, _ in recorder.worked}) == len(recorder.worked) == 100
    assert late[0] >= timedelta()
    assert late[98] < timedelta(seconds=1)


async def test_more_than_is_known_at_once_is_read_on_in_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten slices come due within a moment: all are worked without a second look, and no more than a few
    slices are ever known."""
    no_second_look(monkeypatch)
    monkeypatch.setattr(horizon, "SLICE", 20)
    recorder = Recorder(database, awaited=200)
    most = 0

    async def count() -> None:
        nonlocal most
        most = max(most, *(len(known) for known in made.horizon.lanes.values()))

    recorder.before = count
    async with running(recorder) as made:
        await arm(database, *(timedelta(milliseconds=n) for n in range(200)))
        made.wake()
        await recorder.until_done()
    assert len({timer.id for timer, _ in recorder.worked}) == 200
    assert most <= 3 * horizon.SLICE


async def test_what_nobody_can_take_hides_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three slices of timers that stay due stand before one that can be worked: it is found (B055)."""
    no_second_look(monkeypatch)
    monkeypatch.setattr(horizon, "SLICE", 10)
    recorder = Recorder(database)
    handle = recorder.handle

    async def stubborn(due: Sequence[Timer]) -> int:
        return await handle([timer for timer in due if timer.subject_id == 30])

    recorder.handle = stubborn  # type: ignore[method-assign]  # somebody holds the others
    async with running(recorder) as made:
        await arm(database, *(timedelta(seconds=n - 60) for n in range(31)))
        made.wake()
        await recorder.until_done()
    assert [timer.subject_id for timer, _ in recorder.worked] == [30]


async def test_people_who_read_delay_no_page(any_database_url: str, clock: FakeClock) -> None:
    """Every connection for people's reads is held: an alert is accepted, somebody is paged for it, and
    their answer is taken."""
    pager = await Pager(any_database_url, clock, LADDER).start()
    service_id = await pager.service_id("checkout")
    sms = pager.transports[Method.SMS] = gate(Method.SMS)
    sms.opened.set()
    await pager.restart()
    await pager.app.worker.start()
    async with AsyncExitStack() as held:
        for _ in range(sum(db.PEOPLE.values())):
            tx = await held.enter_async_context(pager.app.database.snapshot())
            await tx.execute(sa.select(1))
        async with asyncio.timeout(PATIENCE):
            await pager.app.receiver.accept(ORG, service_id, Body("test", (fire(),)))
            await sms.entered.wait()
            incident_id = await pager.app.responder.find(1)
            answer = await pager.app.responder.acknowledge(incident_id or 0, Actor("ann", Via.SMS))
            assert answer.incident.status is IncidentStatus.ACKNOWLEDGED
    await pager.app.worker.stop()
    pager.expect_page("ann", "sms")
    await pager.close()


async def test_claims_are_few_at_a_time(database: Database) -> None:
    """Work that leaves SQL is leased in small lots, so that none waits under a lease for the others."""
    lots: list[int] = []

    class Slow:
        async def handle(self, claimed: Sequence[Timer]) -> None:
            lots.append(len(claimed))
            async with database.snapshot() as tx:
                left = await queue.due(tx, LaneName.CARD, START, 100)
            lots.append(len(left))

    armings = [Arming(TimerKind.CARD, n, START) for n in range(40)]
    await database.write(lambda tx: timers.arm(tx, ORG, armings))
    slow, clock = Claiming(database, FakeClock(), "me", Slow()), FakeClock()
    lane = Lane(LaneName.CARD, slow, Horizon(database, clock), database, clock)
    assert await lane.run_due() == 40
    assert lots == [16, 24, 16, 8, 8, 0]


async def test_stopping_records_what_is_in_flight(any_database_url: str, clock: FakeClock) -> None:
    """At the end no work is begun, the message under way is sent and recorded, no lease is left (F-08)."""
    pager = await Pager(any_database_url, clock, LADDER).start()
    held = pager.transports[Method.SMS] = gate(Method.SMS)
    await pager.restart()
    await pager.app.worker.start()
    await pager.receive(fire())
    await asyncio.wait_for(held.entered.wait(), PATIENCE)
    stopping = asyncio.create_task(pager.app.worker.stop())
    await asyncio.sleep(0)
    await pager.receive(fire("too late for this process"))
    assert not stopping.done()
    held.opened.set()
    await asyncio.wait_for(stopping, PATIENCE)
    pager.expect_page("ann", "sms")
    pager.expect_silence()
    assert (await only(pager, Method.SMS)).status is DeliveryStatus.SENT
    await pager.restart()
    await pager.advance(minutes=1)  # nobody is texted twice in a minute
    assert pager.expect_page("ann", "sms").incident is not None
    await pager.close()


async def test_time_does_not_move_while_something_is_in_flight(
    any_database_url: str, clock: FakeClock
) -> None:
    """Whoever moves a clock waits until no lease is held by it."""
    pager = await Pager(any_database_url, clock, LADDER).start()
    held = pager.transports[Method.SMS] = gate(Method.SMS)
    await pager.restart()
    await pager.receive(fire())
    for lane in pager.app.worker.lanes:
        await lane.run_due()
    await asyncio.wait_for(held.entered.wait(), PATIENCE)
    moved: list[Any] = []

    async def move() -> None:
        async with pager.app.worker.paused():
            moved.append((await only(pager, Method.SMS)).status)

    moving = asyncio.create_task(move())
    await asyncio.sleep(0)
    assert moved == []
    held.opened.set()
    await asyncio.wait_for(moving, PATIENCE)
    assert moved == [DeliveryStatus.SENT]
    pager.expect_page("ann", "sms")
    await pager.close()
