"""The invariants, broken by hand: each is found, said once, and repaired where that is safe."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from engine import schema
from engine.db import Tx
from engine.models import Severity
from tests.scenario.harness import Pager
from tests.scenario.sending import alarms, counted

Break = Callable[[Tx, Pager], Awaitable[Any]]


async def run(pager: Pager) -> set[str]:
    """One audit and what it makes due; the invariants that it found broken."""
    found = await pager.app.sweeps.audit.run()
    await pager.app.worker.run_due()
    return {finding.invariant for finding in found}


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
    assert await run(pager) == {"incident_without_timer"}
    pager.expect_page("bob", "slack")
    assert counted("audit_findings", invariant="incident_without_timer") == 1
    assert [text for text, _ in await alarms(pager)] == [
        "The audit found 1 × incident without timer; what is safe was repaired."
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


async def test_a_queued_page_without_a_timer_is_sent(pager: Pager) -> None:
    """A delivery that nothing would send any more is sent."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    await pager.advance(seconds=11)
    await broken(pager, sa.delete(schema.timers).where(schema.timers.c.kind == "deliver"))
    assert await run(pager) == {"delivery_without_timer"}
    pager.silence_ops()
    pager.expect_pages(("alice", "sms"), ("alice", "voice"))
    await pager.ack()


async def test_findings_that_no_machine_can_repair_are_said(pager: Pager) -> None:
    """A firing alert on a resolved incident, an incident of nothing, a lost send: said, untouched."""
    await pager.alert("one")
    await pager.alert("two")
    await pager.ack(1)
    await pager.ack(2)
    await pager.advance(minutes=2)
    pager._collect().clear()
    now = pager.clock.now()
    one = sa.select(schema.incidents.c.id).where(schema.incidents.c.number == 1).scalar_subquery()
    two = sa.select(schema.incidents.c.id).where(schema.incidents.c.number == 2).scalar_subquery()
    await broken(
        pager,
        sa.update(schema.incidents)
        .where(schema.incidents.c.id == one)
        .values(status="resolved", open_alerts=0),
        sa.update(schema.alerts).where(schema.alerts.c.incident_id == two).values(incident_id=one),
        sa.update(schema.deliveries).values(status="sending"),
        sa.insert(schema.timers).from_select(
            ["org_id", "kind", "lane", "subject_id", "due_at", "lease_until"],
            sa.select(
                schema.deliveries.c.org_id,
                sa.literal("deliver", sa.Text),
                sa.literal("deliver", sa.Text),
                schema.deliveries.c.id,
                sa.literal(now + timedelta(hours=1), schema.timers.c.due_at.type),
                sa.literal(now - timedelta(minutes=2), schema.timers.c.lease_until.type),
            ),
        ),
    )
    expected = {"alert_on_resolved_incident", "incident_without_alert", "sending_past_lease"}
    assert await run(pager) == expected
    assert await run(pager) == expected
    assert len(await alarms(pager)) == 2 * len(expected), "each cause is said once, in two places"


@pytest.mark.parametrize("severity", [Severity.WARNING, Severity.INFO])
async def test_quiet_incidents_need_no_timer(pager: Pager, severity: Severity) -> None:
    """Urgency none has no ladder, and an unanswered incident of low urgency is left in peace."""
    await pager.alert(service="quiet", severity=severity)
    await pager.advance(hours=1)
    assert await run(pager) == set()
    pager._collect().clear()
