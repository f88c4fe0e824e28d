"""A timer whose work ends the process, each time: it is given up, and the others go on (F-10)."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from engine import schema
from engine.db import Database
from engine.errors import Unavailable
from engine.models import LaneName, Method, Retry
from engine.notify import pipeline
from engine.pager import escalate
from engine.pager.escalate import TRIES
from engine.pager.unclean import UncleanEnd
from engine.store import timers
from tests.crash.faults import Killed
from tests.fakes import FakeClock
from tests.scenario.harness import Pager, fire
from tests.scenario.sending import alarms
from tests.store import queue

pytestmark = pytest.mark.crash


def ends_the_process(monkeypatch: pytest.MonkeyPatch, title: str) -> list[str]:
    """Whoever rules on this incident dies, unless it is given up. Returns what was ruled on."""
    ruled, tried = escalate.ruled, []

    def die(timer: Any, incident: Any, *more: Any) -> Any:
        if more[-1] != "failed":
            tried.append(incident.title)
            if incident.title == title:
                raise Killed(title)
        return ruled(timer, incident, *more)

    monkeypatch.setattr(escalate, "ruled", die)
    return tried


def dies_when_begun(monkeypatch: pytest.MonkeyPatch, title: str) -> Counter[str]:
    """Whoever begins a delivery of this incident dies before the commit. Returns what was begun."""
    begin, begun = pipeline.begin, Counter[str]()

    async def die(*arguments: Any, **more: Any) -> Any:
        beginning = await begin(*arguments, **more)
        titles = [one.view.title for one in beginning.begun if one.view is not None]
        begun.update(titles)
        if title in titles:
            raise Killed(title)
        return beginning

    monkeypatch.setattr(pipeline, "begin", die)
    return begun


async def one_life(pager: Pager) -> set[str]:
    """A process, until it dies or has nothing more to do. Returns what was paged for so far."""
    with contextlib.suppress(Killed):
        for lane in reversed(pager.app.worker.lanes):  # in a process they run side by side
            await lane.run_due()
    await pager.app.pipeline.drain()
    return {page.incident.title for page in pager.pages() if page.incident}


async def next_process(pager: Pager) -> None:
    pager.clock.move(seconds=3)
    await pager.restart()


async def lives(pager: Pager, until: str, at_most: int = 12) -> int:
    """Start a process every few seconds, as a supervisor does, until somebody was paged for this."""
    for life in range(1, at_most + 1):
        if until in await one_life(pager):
            return life
        await next_process(pager)
    raise AssertionError(f"nobody was paged for {until!r}")


async def attempts(pager: Pager) -> dict[int, int]:
    """Of the fate timers, by incident."""
    table = schema.timers
    async with pager.app.database.snapshot() as tx:
        rows = await tx.execute(sa.select(table).where(table.c.lane == "fate"))
        return {row.subject_id: row.attempt for row in rows}


@pytest.fixture
async def pager(any_database_url: str, clock: FakeClock) -> Any:
    made = await Pager(any_database_url, clock).start()
    yield made
    await made.close()


async def test_what_ends_every_process_is_given_up_and_the_others_go_on(
    pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The good one in its batch is paged a few restarts later, and for the bad one the fallback after
    its fifth try: loud, and not for ever."""
    ends_the_process(monkeypatch, "bad")
    await pager.receive(fire("bad"), fire("good"))
    assert await lives(pager, "good") <= 5
    pager.pages()
    pager._heard.clear()
    assert await lives(pager, "bad") <= TRIES
    assert ("carol", "sms") in {(page.person, page.method.value) for page in pager.pages()}
    assert any(f"a escalate timer failed {TRIES} times" in text for text, _ in await alarms(pager))


async def test_a_delivery_whose_begin_ends_every_process_is_given_up_and_the_others_go_on(
    pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its neighbours are sent a few restarts later; it is begun five times, and then dead and loud."""
    begun = dies_when_begun(monkeypatch, "bad")
    await pager.receive(fire("bad"), fire("good"))
    assert await lives(pager, "good") <= 5
    for _ in range(TRIES):
        await next_process(pager)
        await one_life(pager)
    assert begun["bad"] == TRIES
    dead = sa.select(schema.deliveries.c.reason).where(schema.deliveries.c.status == "dead")
    async with pager.app.database.snapshot() as tx:
        assert (await tx.scalars(dead)).all() == ["it could not be worked"]
    assert any(f"could not be worked {TRIES} times" in text for text, _ in await alarms(pager))


async def test_what_was_counted_and_begun_is_not_suspected(pager: Pager) -> None:
    """A delivery that was left behind and is tried again later has only its own attempts against it."""
    pager.transports[Method.SLACK].fail_next(Retry("no answer"))
    await pager.receive(fire())
    await pager.app.worker.lanes[0].run_due()
    pager.clock.move(seconds=3)
    await pager.restart()
    await pager.app.worker.run_due()
    table = schema.timers
    async with pager.app.database.snapshot() as tx:
        waiting = sa.select(table.c.attempt).where(table.c.kind == "deliver", table.c.attempt > 0)
        assert (await tx.scalars(waiting)).all() == [1]


async def test_a_try_is_committed_before_the_work(pager: Pager, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next process reads how often the ones before it have begun."""
    ends_the_process(monkeypatch, "bad")
    await pager.receive(fire("bad"))
    for life in range(TRIES):
        pager.clock.move(seconds=3)
        await pager.restart()
        with pytest.raises(Killed):
            await pager.app.worker.run_due()
        assert list((await attempts(pager)).values()) == [life + 1]


async def test_a_database_that_is_away_counts_nothing_against_a_timer(
    pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that lives on takes back what it counted, however often it has to begin again."""
    await pager.receive(fire())
    pager.clock.move(seconds=3)
    await pager.restart()
    work, fails = escalate.Escalator._work, [Unavailable()] * (TRIES + 2)

    async def away(self: Any, *arguments: Any, **more: Any) -> Any:
        if fails:
            raise fails.pop()
        return await work(self, *arguments, **more)

    monkeypatch.setattr(escalate.Escalator, "_work", away)
    while fails:
        with pytest.raises(Unavailable):
            await pager.app.worker.run_due()
        assert list((await attempts(pager)).values()) == [0]
    await pager.app.worker.run_due()
    pager.expect_page("alice", "slack")


async def test_what_is_only_late_is_worked_together(pager: Pager, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an outage nothing is suspected: one transaction counts a batch, and one works it."""
    await pager.receive(*(fire(f"alert {n}") for n in range(20)))
    pager.clock.move_to(pager.clock.now() + timedelta(minutes=10))
    await pager.restart()
    units: list[int] = []
    unit = escalate.Escalator._unit

    async def counted(self: Any, tx: Any, batch: Any, *more: Any) -> Any:
        units.append(len(batch))
        return await unit(self, tx, batch, *more)

    monkeypatch.setattr(escalate.Escalator, "_unit", counted)
    await pager.app.worker.run_due()
    assert units[0] == 20


async def suspected(pager: Pager, incidents: int) -> None:
    """As many incidents whose timers somebody began to work and never ended, and a new process."""
    await pager.receive(*(fire(f"old {n}") for n in range(incidents)))
    fate = schema.timers.c.lane == "fate"
    await pager.app.database.write(
        lambda tx: tx.execute(sa.update(schema.timers).where(fate).values(attempt=1))
    )
    pager.clock.move(seconds=60)
    await pager.restart()


async def test_what_is_new_does_not_wait_for_the_suspects(
    pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are worked one by one, so few of them are taken each time the lane looks."""
    await suspected(pager, 30)
    await pager.receive(fire("new"))
    escalator = pager.app.worker.lanes[0]._handler
    async with pager.app.database.snapshot() as tx:
        due = await queue.due(tx, LaneName.FATE, pager.clock.now(), 100)
    left = len(due) - await escalator.handle(due)
    assert left == 30 - escalate.SUSPECTS
    await pager.app.worker.run_due()
    assert set((await attempts(pager)).values()) == {0}, "in the end all are worked"


async def hold(url: str, title: str, held: asyncio.Event, release: asyncio.Event) -> None:
    """Somebody has this incident in a transaction of their own."""
    database = Database(url)
    table = schema.incidents
    async with database.writer_engine.begin() as tx:
        await tx.execute(sa.select(table.c.id).where(table.c.title == title).with_for_update())
        held.set()
        await release.wait()
    await database.close()


async def test_an_incident_that_is_held_is_not_counted_by_each_process_that_starts(
    postgresql_url: str, clock: FakeClock
) -> None:
    """More processes begin than it has tries while a hand holds its row: whoever is on call is paged
    for it in the end, and not the fallback."""
    pager = await Pager(postgresql_url, clock).start()
    await pager.receive(fire())
    held, release = asyncio.Event(), asyncio.Event()
    hand = asyncio.create_task(hold(postgresql_url, "db-1 is down", held, release))
    await held.wait()
    for _ in range(TRIES + 1):
        pager.clock.move(seconds=3)
        await pager.restart()
        await pager.app.worker.run_due()
        assert list((await attempts(pager)).values()) == [0]
    release.set()
    await hand
    await pager.app.worker.run_due()
    pager.expect_page("alice", "slack")
    assert await alarms(pager) == []
    await pager.close()


async def test_processes_that_begin_together_count_once(pager: Pager) -> None:
    """All have read the same rows: one counts them and works them, and the others leave them to it."""
    await pager.receive(fire("one"), fire("two"))
    pager.clock.move(seconds=3)
    async with pager.app.database.snapshot() as tx:
        due = await queue.due(tx, LaneName.FATE, pager.clock.now(), 100)
    database = pager.app.database
    processes = [UncleanEnd(database, pager.clock.now()) for _ in range(TRIES)]
    ours = await asyncio.gather(*(one.count(due) for one in processes))
    assert sorted(timer.id for few in ours for timer in few) == sorted(timer.id for timer in due)
    assert set((await attempts(pager)).values()) == {1}
    for one in processes:
        await one.survived(due)
    assert set((await attempts(pager)).values()) == {0}


async def test_counting_waits_for_nobody(postgresql_url: str, clock: FakeClock) -> None:
    """Who has the row of a timer may want one that we have: it is left out (no deadlock)."""
    pager = await Pager(postgresql_url, clock).start()
    await pager.receive(fire("one"), fire("two"))
    table = schema.timers
    async with pager.app.database.snapshot() as tx:
        due = await queue.due(tx, LaneName.FATE, pager.clock.now(), 100)
    async with pager.app.database.writer_engine.begin() as tx:
        await tx.execute(sa.update(table).where(table.c.id == due[0].id).values(epoch=table.c.epoch))
        async with asyncio.timeout(1):
            counted = await pager.app.database.write(lambda own: timers.count_attempts(own, due))
    assert counted == {due[1].id}
    await pager.close()
