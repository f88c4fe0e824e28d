"""The invariants, broken by hand: each is found, said once, and repaired where that is safe."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from engine import invariants, schema
from engine.db import Tx
from engine.models import ORG, LaneName, Rank, Severity
from engine.pager.alarm import raise_alarm
from engine.rota import addressed, notice
from tests.fakes import FakeClock
from tests.scenario.harness import Pager
from tests.scenario.sending import alarms, counted

Break = Callable[[Tx, Pager], Awaitable[Any]]


async def run(pager: Pager) -> set[str]:
    """One audit and what it makes due; the invariants that it found broken."""
    found = await pager.app.sweeps.audit.run()
    await pager.app.worker.run_due()
    return {finding.invariant.value for finding in found}


async def broken(pager: Pager, *statements: Any) -> None:
    async def unit(tx: Tx) -> None:
        for statement in statements:
            await tx.execute(statement)

    await pager.app.database.write(unit)


async def test_a_sound_pager_has_no_findings(pager: Pager) -> None:
    """From alert to resolve nothing is found, whenever one looks."""
    await pager.alert()
    for _ in range(25):
        await pager.advance(minutes=1)
        assert await run(pager) == set()
    await pager.ack()
    assert await run(pager) == set()
    await pager.resolve()
    assert await run(pager) == set()
    assert await alarms(pager) == []
    pager._collect().clear()


async def test_a_triggered_incident_without_a_timer_goes_on(pager: Pager) -> None:
    """Its ladder is taken up again at once; the finding is an alarm and a metric."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    await pager.advance(seconds=11)
    await broken(pager, sa.delete(schema.timers).where(schema.timers.c.kind == "escalate"))
    repaired = counted("audit_repairs_total", invariant="incident_without_timer")
    assert await run(pager) == {"incident_without_timer"}
    pager.expect_page("bob", "slack")
    assert counted("audit_findings", invariant="incident_without_timer") == 1
    assert counted("audit_repairs_total", invariant="incident_without_timer") == repaired + 1
    assert [text for text, _ in await alarms(pager)] == [
        "The audit found 1 × incident without timer: #1. They go on now."
    ] * 2
    assert await run(pager) == set()
    await pager.ack()


async def test_a_snooze_without_a_timer_ends_when_it_was_to_end(pager: Pager) -> None:
    """A snoozed incident is armed for the end of its snooze, not for now."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    await pager.answer("snooze", until=pager.clock.now() + timedelta(hours=1))
    await pager.advance(seconds=11)
    await broken(pager, sa.delete(schema.timers))
    assert await run(pager) == {"incident_without_timer"}
    pager.silence_ops()
    pager.expect_silence()
    await pager.advance(hours=1)
    pager.expect_page("alice", "slack")
    await pager.ack()


async def test_an_unanswered_incident_without_a_timer_asks_the_fallback_again(pager: Pager) -> None:
    """What nobody answered stays loud: its own timer is armed, not the ladder's."""
    await pager.alert()
    await pager.advance(minutes=21)
    assert (await pager.incident()).status == "unanswered"
    pager._collect().clear()
    await broken(pager, sa.delete(schema.timers))
    assert "incident_without_timer" in await run(pager)
    pager.silence_ops()
    pager.expect_page("carol", "sms")
    await pager.ack(by="carol")
    pager._collect().clear()


async def test_a_queued_page_without_a_timer_is_sent_when_it_is_due(pager: Pager) -> None:
    """A delivery that nothing would send any more is sent: the call three minutes after the alert."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    await pager.advance(seconds=11)
    await broken(pager, sa.delete(schema.timers).where(schema.timers.c.kind == "deliver"))
    assert await run(pager) == {"delivery_without_timer"}
    pager.silence_ops()
    pager.expect_silence()
    await pager.advance(seconds=49)
    pager.expect_page("alice", "sms")
    pager.expect_silence()
    await pager.advance(minutes=2)
    pager.expect_page("alice", "voice")
    await pager.ack()


async def test_a_repair_raises_nobody_in_rank(pager: Pager) -> None:
    """A page that is armed anew is a page, and a notice stays behind it."""
    await pager.alert()
    pager._collect().clear()
    now = pager.clock.now()
    await pager.app.database.write(lambda tx: raise_alarm(tx, ORG, "test", "it burns", now))
    line = addressed.to_channel("#payments", "a notice", {"text": "Your shift begins."}, now)
    await pager.app.database.write(lambda tx: notice.tell(tx, ORG, [line], now))
    await pager.advance(seconds=0)
    pager._collect().clear()
    await broken(
        pager,
        sa.delete(schema.timers).where(schema.timers.c.kind == "deliver"),
        sa.update(schema.deliveries).where(schema.deliveries.c.kind != "page").values(status="queued"),
    )
    pager.clock.move(seconds=11)
    await pager.app.sweeps.audit.run()
    async with pager.app.database.snapshot() as tx:
        of = schema.timers.join(schema.deliveries, schema.deliveries.c.id == schema.timers.c.subject_id)
        ranks = await tx.execute(
            sa.select(schema.deliveries.c.kind, schema.timers.c.rank)
            .select_from(of)
            .where(schema.timers.c.kind == "deliver")
        )
        found = {tuple(row) for row in ranks}
        assert found == {("page", Rank.PAGE), ("ops", Rank.NOTICE), ("notice", Rank.NOTICE)}
    await pager.ack()
    pager._collect().clear()


async def test_an_incident_that_cannot_be_read_keeps_no_other_from_its_repair(pager: Pager) -> None:
    """The others go on, the alarms are raised, and which one could not be repaired is an alarm too."""
    await pager.alert("one", group_key="one")
    await pager.alert("two", group_key="two")
    await pager.advance(seconds=11)
    pager._collect().clear()
    numbers = schema.incidents.c.number
    await broken(
        pager,
        sa.update(schema.incidents)
        .where(numbers == 1)
        .values(acknowledged_name="ann", acknowledged_via="a newer way"),
        sa.delete(schema.timers).where(schema.timers.c.kind == "escalate"),
    )
    assert await run(pager) == {"incident_without_timer"}
    said = {text for text, _ in await alarms(pager)}
    assert any("2 × incident without timer: #1, #2." in text for text in said)
    assert any("could not repair these, by id: incident without timer 1. " in text for text in said)
    pager.silence_ops()
    pager.expect_page("bob", "slack")
    pager.expect_silence()
    await broken(pager, sa.update(schema.incidents).values(acknowledged_name=None, acknowledged_via=None))
    await run(pager)
    await pager.advance(seconds=11)  # a second page to the same person waits
    pager.silence_ops()
    pager.expect_page("bob", "slack")
    await pager.ack(1)
    await pager.ack(2)
    pager._collect().clear()


async def test_an_incident_that_somebody_holds_keeps_no_other_from_its_repair_races(
    postgresql_url: str, clock: FakeClock
) -> None:
    """Its lock is not waited for: the next audit repairs it."""
    pager = await Pager(postgresql_url, clock).start()
    await pager.alert("one", group_key="one")
    await pager.alert("two", group_key="two")
    await pager.advance(seconds=11)
    pager._collect().clear()
    await broken(pager, sa.delete(schema.timers).where(schema.timers.c.kind == "escalate"))
    async with pager.app.database.writer_engine.begin() as holder:
        await holder.execute(
            sa.select(schema.incidents).where(schema.incidents.c.number == 1).with_for_update()
        )
        async with asyncio.timeout(2):  # less than anybody would wait for a lock
            await run(pager)
        assert len(await alarms(pager)) == 2
        pager.silence_ops()
        pager.expect_page("bob", "slack")
        pager.expect_silence()
    await run(pager)
    await pager.advance(seconds=11)  # a second page to the same person waits
    pager.silence_ops()
    pager.expect_page("bob", "slack")
    pager.expect_silence()
    await pager.close()


async def test_a_timer_of_another_epoch_moves_nothing(pager: Pager) -> None:
    """It would do nothing when it fires: as good as none, and repaired as such (I7)."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    await pager.advance(seconds=11)
    await broken(pager, sa.update(schema.timers).where(schema.timers.c.kind == "escalate").values(epoch=9))
    assert await run(pager) == {"incident_without_timer"}
    pager.silence_ops()
    pager.expect_page("bob", "slack")
    await pager.ack()


async def test_findings_that_no_machine_can_repair_are_said(pager: Pager) -> None:
    """A firing alert on a resolved incident, an incident of nothing: said with its #, left as it is."""
    await pager.alert("one")
    await pager.alert("two")
    await pager.ack(1)
    await pager.ack(2)
    await pager.advance(minutes=2)
    pager._collect().clear()
    one, two = (
        sa.select(schema.incidents.c.id).where(schema.incidents.c.number == n).scalar_subquery()
        for n in (1, 2)
    )
    await broken(
        pager,
        sa.update(schema.incidents)
        .where(schema.incidents.c.id == one)
        .values(status="resolved", open_alerts=0),
        sa.update(schema.alerts).where(schema.alerts.c.incident_id == two).values(incident_id=one),
    )
    expected = {"alert_on_resolved_incident", "incident_without_alert", "alerts_miscounted"}
    assert await run(pager) == expected
    assert await run(pager) == expected
    said = await alarms(pager)
    assert len(said) == 2 * len(expected), "each cause is said once, in two places"
    assert any("alert on resolved incident: #1. Nobody is paged" in text for text, _ in said)
    assert any("incident without alert: #2." in text for text, _ in said)


async def test_a_send_that_its_holder_never_ended_goes_out_again(pager: Pager) -> None:
    """A `sending` row whose lease ended long ago is taken up now, whatever its timer says (B037, I4)."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    await pager.advance(seconds=11)
    now = pager.clock.now()
    text = schema.deliveries.c.method == "sms"
    ids = sa.select(schema.deliveries.c.id).where(text).scalar_subquery()
    await broken(
        pager,
        sa.update(schema.timers)
        .where(schema.timers.c.kind == "deliver", schema.timers.c.subject_id == ids)
        .values(due_at=now + timedelta(days=1), lease_until=now - timedelta(minutes=2), attempt=1),
        sa.update(schema.deliveries).where(text).values(status="sending", attempts=1),
    )
    assert await run(pager) == {"sending_past_lease"}
    pager.silence_ops()
    pager.expect_page("alice", "sms")
    assert await run(pager) == set()
    await pager.ack()
    pager._collect().clear()


async def test_what_no_worker_takes_is_said(pager: Pager) -> None:
    """A minute after they were due, and free: a page and the ladder wait for a worker that is not there."""
    await pager.alert()
    pager._collect().clear()
    pager.clock.move(minutes=10)
    found = {finding.invariant.value for finding in await pager.app.sweeps.audit.run()}
    assert found == {"fate_timer_overdue", "delivery_overdue"}
    said = str({text for text, _ in await alarms(pager)})
    assert "The audit found 1 × fate timer overdue: #1. No worker takes them" in said
    assert "delivery overdue: #1. No worker" in said
    await pager.app.worker.run_due()
    assert await run(pager) == set()
    await pager.ack()
    pager._collect().clear()


async def test_what_a_worker_holds_is_not_overdue(pager: Pager) -> None:
    """A lease in force is somebody's work, however late it is."""
    await pager.alert()
    pager._collect().clear()
    pager.clock.move(minutes=10)
    lease = pager.clock.now() + timedelta(seconds=20)
    await broken(pager, sa.update(schema.timers).values(lease_until=lease))
    assert await pager.app.sweeps.audit.run() == []
    await broken(pager, sa.update(schema.timers).values(lease_until=None))
    await pager.ack()
    pager._collect().clear()


async def test_a_timer_of_nothing_is_taken_away(pager: Pager) -> None:
    """Its subject is gone: nobody can work it, and it is deleted; kinds of a newer version stay."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    at = pager.clock.now() + timedelta(hours=1)
    kinds = {"escalate": "fate", "unsnooze": "fate", "deliver": "deliver", "card": "card", "newer": "fate"}
    rows = [
        {"org_id": ORG, "kind": kind, "lane": lane, "subject_id": 999_999, "due_at": at}
        for kind, lane in kinds.items()
    ]
    await broken(pager, *(sa.insert(schema.timers).values(**row) for row in rows))
    assert await run(pager) == {"timer_without_subject"}
    async with pager.app.database.snapshot() as tx:
        left = await tx.scalars(sa.select(schema.timers.c.kind).where(schema.timers.c.subject_id == 999_999))
        assert list(left) == ["newer"]
    pager.silence_ops()
    assert await run(pager) == set()
    await pager.ack()


async def test_a_miscount_is_counted_again(pager: Pager) -> None:
    """`open_alerts` decides when an incident is over: two that fire are two, whatever was written."""
    group = {"group_key": "disk"}
    await pager.alert("one", **group)
    await pager.alert("two", **group)
    pager._collect().clear()
    await broken(pager, sa.update(schema.incidents).values(open_alerts=7))
    assert await run(pager) == {"alerts_miscounted"}
    assert await run(pager) == set()
    await pager.resolved_by_source("one", **group)
    assert (await pager.incident()).status == "triggered"
    await pager.resolved_by_source("two", **group)
    assert (await pager.incident()).status == "resolved"
    pager._collect().clear()


async def test_several_audits_at_once_repair_once(pager: Pager) -> None:
    """Every worker has an audit: what one repaired is whole for the others."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    await pager.advance(seconds=11)
    await broken(pager, sa.delete(schema.timers).where(schema.timers.c.kind == "escalate"))
    await asyncio.gather(*(pager.app.sweeps.audit.run() for _ in range(3)))
    await pager.app.worker.run_due()
    pager.silence_ops()
    pager.expect_page("bob", "slack")
    pager.expect_silence()
    await pager.ack()


def test_every_timer_of_paging_has_a_subject_that_the_audit_knows() -> None:
    """A new lane of paging must say in which table its subjects lie; schedules' timers look themselves."""
    assert set(LaneName) - set(invariants.SUBJECTS) == {LaneName.ROTA, LaneName.OUTSIDE}


@pytest.mark.parametrize("severity", [Severity.WARNING, Severity.INFO])
async def test_quiet_incidents_need_no_timer(pager: Pager, severity: Severity) -> None:
    """Urgency none has no ladder, and an unanswered incident of low urgency is left in peace."""
    await pager.alert(service="quiet", severity=severity)
    await pager.advance(hours=1)
    assert await run(pager) == set()
    pager._collect().clear()
