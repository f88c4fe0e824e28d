"""Outcomes that share a commit: each counts for itself, and none keeps another from being recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from engine import schema
from engine.db import LOCK_TIMEOUT, Database, Tx
from engine.models import (
    ORG,
    DeliveryKind,
    DeliveryStatus,
    Method,
    NewDelivery,
    Outcome,
    Rejected,
    Retry,
    Sent,
    Throttled,
    Timer,
    TimerKind,
)
from engine.notify import record, recorder
from engine.notify.begin import Begun, begin
from engine.notify.record import Done, Ended, record_all
from engine.notify.recorder import Recorder
from engine.notify.verdict import Unstarted
from engine.store import cards, deliveries, incidents, leases, timers
from engine.store.timers import Arming
from tests.fakes import START, FakeClock
from tests.scenario.harness import Pager, fire
from tests.scenario.sending import counted, stored

TEAM = """
people:
  - {name: ann, timezone: UTC, contact: {sms: "+12025550111"}, rules: {high: [sms]}}
  - {name: ben, timezone: UTC, contact: {sms: "+12025550112"}, rules: {high: [sms]}}
  - {name: cem, timezone: UTC, contact: {sms: "+12025550113"}, rules: {high: [sms]}}
policies:
  - name: team
    levels:
      - {targets: [{person: ann}, {person: ben}], timeout: 10m}
      - {targets: [{person: cem}], timeout: 10m}
services: [{name: checkout, policy: team}]
fallback: [{person: cem}]
"""
NO = Rejected("no such number")
PATIENCE = 10


@pytest.fixture
async def pager(any_database_url: str, clock: FakeClock) -> AsyncIterator[Pager]:
    made = await Pager(any_database_url, clock, TEAM).start()
    yield made
    await made.close()
    made._heard.clear()


async def begun(pager: Pager, alerts: int = 1) -> list[Begun]:
    """Incidents that fired, with both pages of each about to be sent, by a worker whose hand is ours."""
    await pager.receive(*[fire(f"alert {n}", group_key=f"alert {n}") for n in range(alerts)])
    await pager.app.worker.lanes[0].run_due()
    beginning = await pager.app.database.write(begin_all)
    each = [one for message in beginning.begun for one in (message, *message.carried)]
    assert len(each) == 2 * alerts
    return each


async def begin_all(tx: Tx) -> Any:
    return await begin(tx, await due(tx), "us", START)


async def due(tx: Tx) -> list[Timer]:
    table = schema.timers
    ids = await tx.scalars(sa.select(table.c.id).where(table.c.kind == "deliver", table.c.due_at <= START))
    return [*(await timers.live(tx, [*ids])).values()]


def ended(one: Begun, outcome: Outcome | Unstarted | None = None) -> Ended:
    return Ended(one, "+1", outcome or Sent(f"r{one.delivery.id}", "p"), 0.0)


async def write(pager: Pager, batch: Sequence[Ended]) -> Done:
    known = await pager.app.roster.directory()
    return await pager.app.database.write(lambda tx: record_all(tx, batch, known, pager.clock.now()))


async def states(pager: Pager, number: int = 1) -> list[str]:
    return [one.status.value for one in await stored(pager, Method.SMS, number)]


async def left_to_fire(pager: Pager, kind: TimerKind) -> list[Timer]:
    async with pager.app.database.snapshot() as tx:
        rows = await tx.scalars(sa.select(schema.timers.c.id).where(schema.timers.c.kind == kind.value))
        return [*(await timers.live(tx, [*rows])).values()]


# --- one batch ---------------------------------------------------------------------------------------------


async def test_a_lost_lease_takes_no_effect_and_the_others_do(pager: Pager) -> None:
    """Of four results one comes too late: its row is the other worker's, the rest are recorded (I8)."""
    batch = await begun(pager, alerts=2)
    stale = batch[0].timer
    take = sa.update(schema.timers).where(schema.timers.c.id == stale.id).values(attempt=stale.attempt + 1)
    await pager.app.database.write(lambda tx: tx.execute(take))
    done = await write(pager, [ended(one, NO if one is batch[0] else None) for one in batch])
    assert done.recorded.keys() == {(one.timer.id, one.timer.attempt) for one in batch[1:]}
    assert done.held == frozenset()
    assert sorted(await states(pager, 1) + await states(pager, 2)) == ["sending", "sent", "sent", "sent"]
    assert [timer.id for timer in await left_to_fire(pager, TimerKind.DELIVER)] == [stale.id]


async def test_of_two_results_of_one_delivery_the_one_with_the_lease_counts(pager: Pager) -> None:
    """A process that stood still wakes to find its own next attempt just ended: one is recorded (I8)."""
    one, other = await begun(pager)
    earlier = Ended(one, "+1", NO, 0.0)
    pager.clock.move(seconds=31)
    now = pager.clock.now()
    again = await pager.app.database.write(lambda tx: begin_again(tx, one.timer, now))
    done = await write(pager, [earlier, ended(again), ended(other)])
    assert done.recorded.keys() == {ended(again).key, ended(other).key}
    assert await states(pager) == ["sent", "sent"]


async def begin_again(tx: Tx, timer: Timer, now: Any) -> Begun:
    (one,) = (await begin(tx, [timer], "us", now)).begun
    return one


async def test_two_pages_of_a_level_that_die_together_pull_the_next_level_once(pager: Pager) -> None:
    """Each alone would leave the other alive; together they are the end of the level (I10)."""
    batch = await begun(pager)
    dead = await write(pager, [ended(one, NO) for one in batch])
    assert all(one.dead for one in dead.recorded.values())
    assert await states(pager) == ["dead", "dead"]
    (escalate,) = await left_to_fire(pager, TimerKind.ESCALATE)
    assert (escalate.due_at, escalate.rev) == (START, 2)
    alarms = [one for one in await everything(pager) if one.kind is DeliveryKind.OPS]
    assert len(alarms) == 2, "one cause, said in two places"
    await pager.app.worker.run_due()
    pager.expect_page("cem", "sms")


async def everything(pager: Pager) -> list[Any]:
    async with pager.app.database.snapshot() as tx:
        ids = await tx.scalars(sa.select(schema.deliveries.c.id))
        return [*(await deliveries.read(tx, [*ids])).values()]


async def test_one_of_two_that_dies_leaves_the_level_its_time(pager: Pager) -> None:
    """While its neighbour in the batch was sent, or is tried again, the next level waits."""
    batch = await begun(pager, alerts=2)
    outcomes = [NO, Sent("r", "p"), NO, Retry("lost")]
    by_incident = sorted(batch, key=lambda one: (one.delivery.incident_id or 0, one.delivery.id))
    await write(pager, [ended(one, what) for one, what in zip(by_incident, outcomes, strict=True)])
    assert (await states(pager, 1), await states(pager, 2)) == (["dead", "sent"], ["dead", "queued"])
    assert all(timer.due_at > START for timer in await left_to_fire(pager, TimerKind.ESCALATE))


async def test_an_ack_between_begin_and_record_is_seen_by_each_of_the_batch(pager: Pager) -> None:
    """Of two incidents one is answered while four pages are on their way: its two are counted as late,
    the failed one is not the ladder's business any more (F-36)."""
    late = counted("sent_after_ack_total")
    batch = await begun(pager, alerts=2)
    incident = await pager.app.responder.find(1)
    assert incident is not None
    await pager.app.responder.acknowledge(incident, await pager.person("cem"))
    done = await write(pager, [ended(one) for one in batch])
    for one in done.recorded.values():
        record.count(one)
    assert sorted(one.too_late for one in done.recorded.values()) == [False, False, True, True]
    assert counted("sent_after_ack_total") == late + 2
    assert await left_to_fire(pager, TimerKind.DELIVER) == []


async def test_outcomes_of_every_kind_share_a_batch(pager: Pager) -> None:
    """Whatever is in it, however it comes in: each ends as it would alone, with the locks in their order."""
    batch = sorted(await begun(pager, alerts=3), key=lambda one: one.delivery.id)
    posted = Sent("r", "p", {"channel_id": "C1", "ts": "1.0"})
    outcomes = [NO, Retry("lost"), posted, Unstarted(), Throttled(START, "slow"), posted]
    mixed = [ended(one, what) for one, what in zip(batch, outcomes, strict=True)]
    await write(pager, mixed[::-1])
    found = {one.id: (one.status.value, one.attempts) for one in await everything(pager)}
    assert [found[one.delivery.id] for one in batch] == [
        ("dead", 1),
        ("queued", 1),
        ("sent", 1),
        ("queued", 0),
        ("queued", 0),
        ("sent", 1),
    ]
    about = {
        one.delivery.incident_id or 0 for one, what in zip(batch, outcomes, strict=True) if what is posted
    }
    async with pager.app.database.snapshot() as tx:
        shown = await cards.of_incidents(tx, ORG, sorted(about))
    assert {(card.incident_id, card.channel, card.ts) for card in shown} == {
        (incident, "+1", "1.0") for incident in about
    }


async def test_the_first_page_of_an_incident_is_one_however_many_are_sent_at_once(pager: Pager) -> None:
    """Both people of a level are told in one batch: the time to the first page is measured once."""
    batch = await begun(pager)
    done = await write(pager, [ended(one) for one in batch])
    waits = [one.waited for one in done.recorded.values() if one.waited is not None]
    assert waits == [pager.clock.now() - (await pager.incident()).opened_at]


async def test_a_batch_costs_the_same_number_of_statements_whatever_is_in_it(pager: Pager) -> None:
    """Thirty outcomes are as few round trips as one."""
    batch = await begun(pager, alerts=16)
    counts = []
    for few in (batch[:1], batch[2:]):
        with Statements() as statements:
            await write(pager, [ended(one) for one in few])
        counts.append(statements.count)
    assert counts[0] == counts[1] <= 12


class Statements:
    """Counts them, BEGIN too where it is one."""

    def __init__(self) -> None:
        self.count = 0

    def _one(self, *_: Any) -> None:
        self.count += 1

    def __enter__(self) -> Statements:
        sa.event.listen(sa.Engine, "before_cursor_execute", self._one)
        return self

    def __exit__(self, *_: object) -> None:
        sa.event.remove(sa.Engine, "before_cursor_execute", self._one)


# --- who shares a commit -----------------------------------------------------------------------------------


async def together(pager: Pager, batch: Sequence[Ended]) -> list[Any]:
    made, known = Recorder(pager.app.database, pager.clock), await pager.app.roster.directory()
    recording = (made.record(one, known) for one in batch)
    return await asyncio.wait_for(asyncio.gather(*recording, return_exceptions=True), PATIENCE)


async def test_what_ends_while_a_commit_runs_shares_the_next(
    pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One at a time, without a waiting window: two commits for all that ended during the first."""
    batch = [ended(one) for one in await begun(pager, alerts=4)]
    made, known = Recorder(pager.app.database, pager.clock), await pager.app.roster.directory()
    sizes: list[int] = []
    entered, opened = asyncio.Event(), asyncio.Event()

    async def slowly(tx: Tx, few: Sequence[Ended], *more: Any, **options: Any) -> Done:
        sizes.append(len(few))
        entered.set()
        await opened.wait()
        return await record_all(tx, few, *more, **options)

    monkeypatch.setattr(recorder, "record_all", slowly)
    first = asyncio.create_task(made.record(batch[0], known))
    await asyncio.wait_for(entered.wait(), PATIENCE)
    rest = [asyncio.create_task(made.record(one, known)) for one in batch[1:]]
    await asyncio.sleep(0)
    assert len(made._waiting) == len(rest), "each of them has come"
    opened.set()
    await asyncio.wait_for(asyncio.gather(first, *rest), PATIENCE)
    assert sizes == [1, len(batch) - 1]


async def test_one_poisoned_record_does_not_keep_the_others_waiting(
    pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that fails is taken apart: each alone, and only the one that fails is not recorded."""
    batch = [ended(one) for one in await begun(pager, alerts=2)]
    bad = batch[1]

    async def poisoned(tx: Tx, few: Sequence[Ended], *more: Any, **options: Any) -> Done:
        if bad in few:
            raise ValueError("poison")
        return await record_all(tx, few, *more, **options)

    monkeypatch.setattr(recorder, "record_all", poisoned)
    results = await together(pager, batch)
    assert [type(one).__name__ for one in results] == ["Recorded", "ValueError", "Recorded", "Recorded"]
    assert sorted(await states(pager, 1) + await states(pager, 2)) == ["sending", "sent", "sent", "sent"]


async def test_an_incident_that_somebody_holds_keeps_no_other_record_waiting(
    postgresql_url: str, clock: FakeClock
) -> None:
    """Its own wait for it, alone; the others are recorded meanwhile."""
    pager, holder = await Pager(postgresql_url, clock, TEAM).start(), Database(postgresql_url)
    batch = [ended(one) for one in await begun(pager, alerts=2)]
    held = min(one.delivery.incident_id or 0 for one in batch)
    free = [one for one in batch if one.delivery.incident_id != held]
    made, known = Recorder(pager.app.database, clock), await pager.app.roster.directory()
    async with holder.writer_engine.begin() as tx:
        await incidents.lock(tx, [held])
        tasks = {one.key: asyncio.create_task(made.record(one, known)) for one in batch}
        await asyncio.wait_for(asyncio.gather(*(tasks[one.key] for one in free)), PATIENCE)
        assert not any(tasks[one.key].done() for one in batch if one not in free)
    await asyncio.wait_for(asyncio.gather(*tasks.values()), PATIENCE)
    assert await states(pager, 1) == await states(pager, 2) == ["sent", "sent"]
    await holder.close()
    await pager.close()
    pager._heard.clear()


async def test_results_that_wait_for_their_incidents_leave_connections_to_who_answers(
    postgresql_url: str, clock: FakeClock
) -> None:
    """A worker that stands still holds six incidents with twelve pages in flight: whoever acknowledges
    another is not kept waiting by the results."""
    pager, holder = await Pager(postgresql_url, clock, TEAM).start(), Database(postgresql_url)
    batch = [ended(one) for one in await begun(pager, alerts=6)]
    made, known = Recorder(pager.app.database, clock), await pager.app.roster.directory()
    async with holder.writer_engine.begin() as tx:
        await incidents.lock(tx, sorted({one.delivery.incident_id or 0 for one in batch}))
        recording = [asyncio.create_task(made.record(one, known)) for one in batch]
        async with asyncio.timeout(PATIENCE):
            while await waiting_for_a_lock(holder) < recorder.ALONE_AT_ONCE:
                pass
        async with asyncio.timeout(LOCK_TIMEOUT.total_seconds() / 2):
            for _ in batch:
                await pager.app.database.write(lambda tx: tx.execute(sa.select(1)))
    await asyncio.wait_for(asyncio.gather(*recording), PATIENCE)
    assert [await states(pager, one) for one in range(1, 7)] == [["sent", "sent"]] * 6
    await holder.close()
    await pager.close()
    pager._heard.clear()


async def waiting_for_a_lock(database: Database) -> int:
    """How many transactions of this database wait for a row."""
    theirs = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    async with database.snapshot() as tx:
        return int(await tx.scalar(sa.text(f"{theirs} AND wait_event_type = 'Lock'")) or 0)


# --- leases ------------------------------------------------------------------------------------------------


async def test_what_was_armed_again_meanwhile_is_due_when_that_said(pager: Pager) -> None:
    """A timer that moved under its lease is neither forgotten with it nor put off."""
    one, other = await begun(pager)
    soon = START.replace(minute=START.minute + 1)
    moved = [Arming(TimerKind.DELIVER, each.delivery.id, soon) for each in (one, other)]
    await pager.app.database.write(lambda tx: timers.arm(tx, ORG, moved))
    ends = [leases.End(one.timer), leases.End(other.timer, START.replace(minute=START.minute + 9))]
    assert await pager.app.database.write(lambda tx: leases.end(tx, ends)) == [True, True]
    left = await left_to_fire(pager, TimerKind.DELIVER)
    assert [timer.due_at for timer in left] == [soon, soon]


async def test_a_message_about_no_incident_is_recorded_like_any_other(pager: Pager) -> None:
    """A notice has no incident to lock, and dies without a ladder."""
    ann = (await pager.person("ann")).person_id

    async def queue(tx: Tx) -> None:
        new = NewDelivery(None, DeliveryKind.NOTICE, Method.SMS, "notice", START, person_id=ann)
        ((one, at),) = await deliveries.queue(tx, ORG, [new], START)
        await timers.arm(tx, ORG, [Arming(TimerKind.DELIVER, one, at)])

    await pager.app.database.write(queue)
    (notice,) = (await pager.app.database.write(begin_all)).begun
    done = await write(pager, [ended(notice, NO)])
    assert [one.dead for one in done.recorded.values()] == [True]
    found = next(one for one in await everything(pager) if one.id == notice.delivery.id)
    assert (found.status, found.reason) == (DeliveryStatus.DEAD, NO.reason)
