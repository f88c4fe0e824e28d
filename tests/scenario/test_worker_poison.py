"""Timers that cannot be worked: counted, put off, and loud in the end; the others do not wait for them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from engine import schema
from engine.models import ORG, TimerKind
from engine.pager import escalate
from engine.store import timers
from engine.store.timers import Arming
from tests.scenario.harness import Pager, fire
from tests.scenario.sending import alarms


def nothing_can_be_ruled(monkeypatch: pytest.MonkeyPatch) -> None:
    """But what becomes of a timer that cannot be worked."""
    ruled = escalate.ruled

    def fail(*arguments: Any) -> Any:
        if arguments[-1] != "failed":
            raise RuntimeError("a bug")
        return ruled(*arguments)

    monkeypatch.setattr(escalate, "ruled", fail)


ACK_TIMES_OUT = "policies:\n  - ack_timeout: 1h\n    name: payments"


async def corrupt(pager: Pager, title: str, **values: Any) -> None:
    """What no version of ours writes, and a hand or a disk may."""
    broken = sa.update(schema.incidents).where(schema.incidents.c.title == title).values(values)
    await pager.app.database.write(lambda tx: tx.execute(broken))


async def test_a_row_that_cannot_be_read_does_not_hold_up_the_others(pager: Pager) -> None:
    """The good incident pages on time; the bad one is tried again, and said to be unreadable (B047)."""
    await pager.receive(fire("bad"), fire("good"))
    await corrupt(pager, "bad", severity="purple")
    await pager.app.worker.run_due()
    assert pager.expect_page("alice", "slack").incident.title == "good"
    await pager.ack(2)
    await pager.advance(minutes=3)
    assert any("cannot be read, and nobody is paged" in text for text, _ in await alarms(pager))
    await corrupt(pager, "bad", severity="critical")
    await pager.advance(minutes=1)
    pager.silence_ops()
    assert pager.expect_page("alice", "slack").incident.title == "bad"
    await pager.ack(1)


async def test_a_timer_that_fails_five_times_pages_the_fallback(
    pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be decided is not dropped: the fallback is paged, and whoever runs Midwatch is told."""

    nothing_can_be_ruled(monkeypatch)
    await pager.alert()
    await pager.advance(seconds=119)
    pager.expect_silence()
    await pager.advance(seconds=1)
    monkeypatch.undo()
    pager.expect_page("carol", "sms")
    assert any("a escalate timer failed 5 times" in text for text, _ in await alarms(pager))
    (incident,) = await pager.open_incidents()
    assert "failed" in [entry.kind for entry in await pager.app.views.timeline(incident.id)]
    await pager.ack(by="carol")


@pytest.mark.parametrize("how", ["acknowledged", "snoozed"])
async def test_a_stuck_timer_of_an_answered_incident_pages_again(
    pager: Pager, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """An ack that should time out, a snooze that should end: paging goes on, and is never over for good."""
    await pager.configure(pager.config.replace("policies:\n  - name: payments", ACK_TIMES_OUT))
    await pager.alert()
    pager.expect_page("alice", "slack")
    if how == "acknowledged":
        await pager.ack()
    else:
        await pager.answer("snooze", until=pager.clock.now() + timedelta(hours=1))
    nothing_can_be_ruled(monkeypatch)
    await pager.advance(hours=1, minutes=2)
    monkeypatch.undo()
    pager.expect_page("carol", "sms")
    await alarms(pager)
    assert (await pager.incident()).status == "triggered"
    await pager.advance(minutes=5)
    assert (await pager.incident()).status == "unanswered"
    pager.pages().clear()
    pager._heard.clear()
    await pager.ack(by="carol")


async def test_a_delivery_that_cannot_be_read_does_not_hold_up_the_others(pager: Pager) -> None:
    """One bad row costs its own page, loudly; the SMS of another incident goes on time."""
    await pager.receive(fire("bad"), fire("good"))
    await pager.app.worker.run_due()
    pager.expect_page("alice", "slack")
    await pager.advance(seconds=2)
    pager.expect_page("alice", "slack")
    await corrupt(pager, "bad", severity="purple")
    await pager.advance(minutes=1)
    assert pager.expect_page("alice", "sms").incident.title == "good"
    await corrupt(pager, "bad", severity="critical")
    await pager.advance(seconds=70)  # tried again after 30 s, and a minute after the other
    assert pager.expect_page("alice", "sms").incident.title == "bad"
    await pager.ack(1)
    await pager.ack(2)
    await alarms(pager)


async def test_one_failure_costs_half_a_minute(pager: Pager, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure that passes is tried again, and the page goes out."""
    ruled, fails = escalate.ruled, [RuntimeError("once"), RuntimeError("and alone")]

    def sometimes(*arguments: Any) -> Any:
        if fails:
            raise fails.pop()
        return ruled(*arguments)

    monkeypatch.setattr(escalate, "ruled", sometimes)
    await pager.alert()
    pager.expect_silence()
    await pager.advance(seconds=30)
    pager.expect_page("alice", "slack")
    await pager.ack()


async def test_the_timer_of_an_incident_that_is_no_more_is_finished(pager: Pager) -> None:
    """A timer without a subject is not due for ever."""
    await pager.app.database.write(
        lambda tx: timers.arm(tx, ORG, [Arming(TimerKind.ESCALATE, 4711, pager.clock.now())])
    )
    await pager.app.worker.run_due()
    await pager.advance(seconds=1)
    assert await pager.app.next_due() is None
