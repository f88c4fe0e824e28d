"""A send meets an ack, a stalled worker, a full house: no page begins after an ack, no lease is trusted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from engine import schema
from engine.db import LOCK_TIMEOUT, PEOPLE, Database, Tx
from engine.models import ORG, DeliveryKind, DeliveryStatus, Method, NewDelivery, Retry, Via
from engine.notify import begin, pipeline
from engine.notify.paces import Paces
from engine.pager.apply import deliver_armings
from engine.store import deliveries, incidents, timers
from tests.fakes import START, FakeClock
from tests.scenario.harness import Pager, fire
from tests.scenario.sending import LADDER, Gate, counted, gate, only, statuses, tries

PATIENCE = 10  # seconds that a test waits for something that happens at once


@pytest.fixture
async def pager(any_database_url: str, clock: FakeClock) -> AsyncIterator[Pager]:
    made = await Pager(any_database_url, clock, LADDER).start()
    yield made
    await made.close()
    made.silence_ops()
    made.expect_silence()


async def with_gate(pager: Pager, method: Method = Method.SMS) -> Gate:
    """The same pager, with a transport that holds its messages."""
    held = gate(method)
    pager.transports[method] = held
    await pager.restart()
    return held


async def acknowledge(pager: Pager, via: Via = Via.SLACK_BUTTON) -> None:
    """An ack from elsewhere: nothing is worked by it."""
    incident = await pager.app.responder.find(1)
    assert incident is not None
    await pager.app.responder.acknowledge(incident, await pager.person("ben", via))


async def test_an_ack_between_reading_and_beginning_stops_the_page(
    pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever acknowledges before the attempt has begun is not paged any more (I5)."""
    admission = pager.app.pipeline._admission
    admit = admission.admit

    async def admit_and_ack(due: Any, now: Any, **options: Any) -> Any:
        admitted = await admit(due, now, **options)
        monkeypatch.setattr(admission, "admit", admit)
        await acknowledge(pager)
        return admitted

    monkeypatch.setattr(admission, "admit", admit_and_ack)
    await pager.alert()
    pager.expect_silence()
    assert await statuses(pager) == {"sms": "cancelled", "voice": "cancelled"}
    assert await tries(pager, (await only(pager, Method.SMS)).id) == []


async def test_an_attempt_waits_for_an_ack_that_holds_the_incident(
    postgresql_url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ack that commits while the attempt wants to begin wins: the attempt sees it under the lock."""
    pager = await Pager(postgresql_url, clock, LADDER).start()
    lock_shared = incidents.lock_shared

    async def lock_after_an_ack(tx: Tx, ids: Any, **options: Any) -> Any:
        if ids and (await pager.incident()).status == "triggered":
            await acknowledge(pager)  # on another connection: this transaction has read and not locked yet
        return await lock_shared(tx, ids, **options)

    monkeypatch.setattr(begin.incidents, "lock_shared", lock_after_an_ack)
    await pager.alert()
    pager.expect_silence()
    assert await statuses(pager) == {"sms": "cancelled", "voice": "cancelled"}
    await pager.close()


async def test_incidents_that_somebody_holds_are_waited_for_a_moment_only(
    postgresql_url: str, clock: FakeClock
) -> None:
    """Three held incidents keep the lane for less than one wait for a lock; let go, they are paged."""
    pager, holder = await Pager(postgresql_url, clock, LADDER).start(), Database(postgresql_url)
    await pager.receive(*(fire(f"held {n}", group_key=f"held {n}") for n in range(pipeline.WAIT_FOR)))
    fates, sends, *_ = pager.app.worker.lanes
    await fates.run_due()
    clock.move(seconds=2)
    async with holder.writer_engine.begin() as tx:
        await tx.execute(sa.select(schema.incidents.c.id).with_for_update())
        async with asyncio.timeout(LOCK_TIMEOUT.total_seconds()):
            assert await sends.run_due() == 0
    await pager.app.worker.run_due()
    assert len(pager.expect_page("ann", "sms").incidents) == pipeline.WAIT_FOR
    await holder.close()
    await pager.close()


async def test_a_worker_that_stands_still_with_a_line_keeps_no_page_waiting(
    postgresql_url: str, clock: FakeClock
) -> None:
    """The pace of a line is worth less than a page: who cannot have it in half a second sends without."""
    pager, holder = await Pager(postgresql_url, clock, LADDER).start(), Database(postgresql_url)
    await pager.alert("the first makes the line")
    pager.expect_page("ann", "sms")
    await pager.ack(by="ann")
    clock.move(minutes=2)
    async with holder.writer_engine.begin() as tx:
        await tx.execute(sa.select(schema.paces.c.line).with_for_update())
        async with asyncio.timeout(LOCK_TIMEOUT.total_seconds()):
            await pager.alert("the second")
        pager.expect_page("ann", "sms")
    await pager.ack(2, by="ann")
    await holder.close()
    await pager.close()


async def test_what_was_due_before_the_start_waits_for_no_reader(
    postgresql_url: str, clock: FakeClock
) -> None:
    """People ask ten slow questions at once: a page that a stopped process left goes out meanwhile."""
    pager = await Pager(postgresql_url, clock, LADDER).start()
    await pager.receive(fire())
    await pager.app.worker.lanes[0].run_due()
    clock.move(seconds=5)
    await pager.restart()
    async with AsyncExitStack() as asked:
        for _ in range(sum(PEOPLE.values())):
            tx = await asked.enter_async_context(pager.app.database.snapshot())
            await tx.execute(sa.select(1))
        await asyncio.wait_for(pager.app.worker.lanes[1].run_due(), PATIENCE)
        await asyncio.wait_for(pager.app.pipeline.drain(), PATIENCE)
        pager.expect_page("ann", "sms")
    await pager.close()


async def test_suspects_that_somebody_holds_do_not_keep_the_others_from_their_turn(
    postgresql_url: str, clock: FakeClock
) -> None:
    """Of more suspects than are begun in one go the first are held: the next go has the last."""
    pager, holder = await Pager(postgresql_url, clock, LADDER).start(), Database(postgresql_url)
    titles = [f"suspect {n}" for n in range(pipeline.SUSPECTS + 1)]
    await pager.receive(*(fire(title, group_key=title) for title in titles))
    await pager.app.worker.lanes[0].run_due()
    clock.move(seconds=5)
    died = sa.update(schema.timers).where(schema.timers.c.kind == "deliver").values(attempt=1)
    await pager.app.database.write(lambda tx: tx.execute(died))
    await pager.restart()
    async with holder.writer_engine.begin() as tx:
        await tx.execute(
            sa.select(schema.incidents.c.id).where(schema.incidents.c.title != titles[-1]).with_for_update()
        )
        for _ in range(2):
            await pager.app.worker.lanes[1].run_due()
        await pager.app.pipeline.drain()
        assert pager.expect_page("ann", "sms").incident.title == titles[-1]
    await pager.app.worker.run_due()
    for _ in titles[:-1]:
        pager.expect_page("ann", "sms")  # each alone
    await holder.close()
    await pager.close()


async def test_an_ack_while_a_page_is_in_flight_is_recorded_and_counted(pager: Pager) -> None:
    """What is on its way cannot be called back: it is recorded as sent, counted, and nothing follows."""
    late, held = counted("sent_after_ack_total"), await with_gate(pager)
    await pager.receive(fire())
    working = asyncio.create_task(pager.app.worker.run_due())
    await asyncio.wait_for(held.entered.wait(), PATIENCE)
    assert (await only(pager, Method.SMS)).status is DeliveryStatus.SENDING
    await acknowledge(pager)
    held.opened.set()
    await asyncio.wait_for(working, PATIENCE)
    pager.expect_page("ann", "sms")
    assert await statuses(pager) == {"sms": "sent", "voice": "cancelled"}
    assert counted("sent_after_ack_total") == late + 1
    await pager.advance(hours=1)
    pager.expect_silence()


async def test_a_retry_in_flight_during_an_ack_is_not_made(pager: Pager) -> None:
    """An attempt that fails after the ack has no successor."""
    held = await with_gate(pager)
    held.fail_next(Retry("lost"))
    await pager.receive(fire())
    working = asyncio.create_task(pager.app.worker.run_due())
    await asyncio.wait_for(held.entered.wait(), PATIENCE)
    await acknowledge(pager)
    held.opened.set()
    await asyncio.wait_for(working, PATIENCE)
    await pager.advance(hours=1)
    pager.expect_silence()
    assert await statuses(pager) == {"sms": "cancelled", "voice": "cancelled"}


async def test_a_call_that_was_placed_during_an_ack_is_hung_up(pager: Pager) -> None:
    """A telephone that would ring for something acknowledged falls silent."""
    held = await with_gate(pager, Method.VOICE)
    await pager.alert()
    pager.expect_page("ann", "sms")
    pager.clock.move(minutes=3)
    working = asyncio.create_task(pager.app.worker.run_due())
    await asyncio.wait_for(held.entered.wait(), PATIENCE)
    await acknowledge(pager)
    held.opened.set()
    await asyncio.wait_for(working, PATIENCE)
    await pager.app.pipeline.drain()
    call = pager.expect_page("ann", "voice")
    assert held.hung_up == [f"voice-{call.id}-1"]


@pytest.mark.parametrize(("via", "by"), [(Via.SMS, "ann"), (Via.VOICE, "ann"), (Via.VOICE, "ben")])
async def test_ringing_calls_end_with_the_ack_but_for_the_one_it_came_by(
    pager: Pager, via: Via, by: str
) -> None:
    """Who pressed 4 hears the answer in that call; every other call ends."""
    await pager.alert()
    pager.expect_page("ann", "sms")
    await pager.advance(minutes=3)
    pager.expect_page("ann", "voice")
    await pager.ack(by=by, via=via)
    await pager.app.pipeline.drain()
    own = (via, by) == (Via.VOICE, "ann")
    voice = pager.transports[Method.VOICE]
    assert len(voice.hung_up) == (0 if own else 1)


async def test_the_result_of_a_stalled_worker_is_dropped(pager: Pager, clock: FakeClock) -> None:
    """Who comes back after its lease changes nothing; the message went out twice, with one delivery id."""
    lost, unknown = counted("leases_lost_total"), counted("attempts_unknown_total")
    held = await with_gate(pager)
    held.fail_next(Retry("this result comes too late"))
    await pager.receive(fire())
    stalled = asyncio.create_task(pager.app.worker.run_due())
    await asyncio.wait_for(held.entered.wait(), PATIENCE)
    other = Pager(pager.url, clock, LADDER)
    clock.move(seconds=31)
    await other.app.worker.run_due()
    again = other.expect_page("ann", "sms")
    held.opened.set()
    await asyncio.wait_for(stalled, PATIENCE)
    sms = await only(pager, Method.SMS)
    assert (again.id, again.attempt) == (sms.id, 2)
    assert (sms.status, sms.attempts, sms.reason) == (DeliveryStatus.SENT, 2, "")
    assert [outcome for _, outcome, _ in await tries(pager, sms.id)] == ["unknown", "sent"]
    assert counted("leases_lost_total") == lost + 1
    assert counted("attempts_unknown_total") == unknown + 1
    await acknowledge(pager)
    await other.close()


async def test_an_unknown_attempt_is_counted_even_if_nobody_wants_the_page_any_more(
    pager: Pager, clock: FakeClock
) -> None:
    """A process dies while it sends, and somebody acknowledges: the attempt is closed as unknown."""
    unknown, held = counted("attempts_unknown_total"), await with_gate(pager)
    await pager.receive(fire())
    dead = asyncio.create_task(pager.app.worker.run_due())
    await asyncio.wait_for(held.entered.wait(), PATIENCE)
    await acknowledge(pager)
    clock.move(seconds=31)
    other = Pager(pager.url, clock, LADDER)
    await other.app.worker.run_due()
    sms = await only(pager, Method.SMS)
    assert (sms.status, sms.attempts) == (DeliveryStatus.CANCELLED, 1)
    assert [outcome for _, outcome, _ in await tries(pager, sms.id)] == ["unknown"]
    assert counted("attempts_unknown_total") == unknown + 1
    await other.close()
    held.always = Retry("nobody hears this")
    held.opened.set()
    await asyncio.wait_for(dead, PATIENCE)


async def test_a_send_that_could_not_start_within_a_second_is_put_back(
    pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt begun long ago is not sent as begun: an ack may have come meanwhile. It costs no try."""
    ticks = iter([0.0, 1.5])
    monkeypatch.setattr(pipeline, "monotonic", lambda: next(ticks, 100.0))
    await pager.alert()
    pager.expect_page("ann", "sms")
    sms = await only(pager, Method.SMS)
    assert (sms.status, sms.attempts) == (DeliveryStatus.SENT, 1)
    assert [outcome for _, outcome, _ in await tries(pager, sms.id)] == ["not_started", "sent"]
    await pager.ack(by="ann")


async def test_a_provider_that_does_not_answer_is_left_and_tried_again(
    pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A send ends after a third of its lease at the latest; it may have arrived (F-34)."""
    assert pipeline.SEND_TIMEOUT < begin.LEASE / 3
    monkeypatch.setattr(pipeline, "SEND_TIMEOUT", timedelta(milliseconds=20))
    held = await with_gate(pager)
    await pager.alert()
    assert (await only(pager, Method.SMS)).reason == "no answer in time: it may have been sent"
    held.opened.set()
    await pager.advance(seconds=34)
    pager.expect_pages(("ann", "voice"), ("ann", "sms"))
    await pager.ack(by="ann")


async def test_nothing_waits_under_a_lease(pager: Pager, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every place taken the rest stays free for other workers, and goes out when there is room."""
    more = 6
    held = await with_gate(pager)
    monkeypatch.setattr(pager.app.pipeline._admission, "_paces", Paces())
    held.awaited = pipeline.IN_FLIGHT
    ann = (await pager.person("ann")).person_id

    async def queue(tx: Tx) -> None:
        new = [
            NewDelivery(None, DeliveryKind.NOTICE, Method.SMS, f"notice:{n}", START, person_id=ann)
            for n in range(pipeline.IN_FLIGHT + more)
        ]
        await timers.arm(tx, ORG, deliver_armings(await deliveries.queue(tx, ORG, new, START)))

    await pager.app.database.write(queue)
    working = asyncio.create_task(pager.app.worker.run_due())
    await asyncio.wait_for(held.entered.wait(), PATIENCE)
    assert pager.app.pipeline.capacity == 0
    assert await leased(pager.app.database) == pipeline.IN_FLIGHT
    held.opened.set()
    await asyncio.wait_for(working, PATIENCE)
    assert len(pager.pages()) == pipeline.IN_FLIGHT + more
    assert await leased(pager.app.database) == 0
    pager._heard.clear()


async def leased(database: Database) -> int:
    async with database.snapshot() as tx:
        held = sa.select(sa.func.count()).where(schema.timers.c.lease_until.is_not(None))
        return int(await tx.scalar(held) or 0)


async def test_nothing_is_sent_inside_a_transaction(pager: Pager) -> None:
    """A transport that is called while a transaction is open refuses, whoever calls it."""
    (sms,) = pager.app.transports.for_method(Method.SMS)

    async def unit(_: Tx) -> None:
        await sms.send(None)  # refused before it looks at the page

    with pytest.raises(RuntimeError, match="inside a transaction"):
        await pager.app.database.write(unit)


async def test_two_workers_send_each_page_once(pager: Pager, clock: FakeClock) -> None:
    """Workers that see the same due timers share them: nobody is paged twice (F-33, B044)."""
    await pager.receive(*[fire(f"alert {n}") for n in range(10)])
    others = [pager, Pager(pager.url, clock, LADDER)]
    async with asyncio.timeout(60):
        for _ in range(2):
            await asyncio.gather(*(one.app.worker.run_due() for one in others for _ in range(2)))
            clock.move(minutes=1)
    heard = [page for one in others for page in one.pages() if page.method is Method.SMS]
    assert sorted(view.number for page in heard for view in page.incidents) == [*range(1, 11)]
    await others[1].close()
    pager._heard.clear()
