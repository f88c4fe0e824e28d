"""Reminders of shifts: told once, to whom they concern, and never late beyond their sense."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import sqlalchemy as sa

from engine.models import LaneName, Method, Throttled
from engine.rota.reminders import Choices
from engine.rota.shift_plan import Reminder
from engine.schema import deliveries, handoffs, timers
from tests.fakes import FakeClock
from tests.scenario.harness import Pager, fire
from tests.scenario.shifts import (
    CHANNEL,
    CONFIG,
    MONDAY,
    accept,
    carol_stands_in,
    rounds,
    taken_over,
    to,
    with_channel,
)


@pytest.fixture
async def pager(any_database_url: str, clock: FakeClock) -> AsyncIterator[Pager]:
    async with with_channel(any_database_url, clock) as made:
        yield made


async def test_a_shift_is_announced_and_handed_over(pager: Pager) -> None:
    """A day and an hour before, at its start and at its end: each to whom it concerns, on their clocks."""
    await to(pager, MONDAY - timedelta(hours=24, seconds=1))
    pager.expect_silence()
    await to(pager, MONDAY - timedelta(hours=24))
    page = pager.expect_page("bob", kind="notice")
    assert page.text.startswith("📟 In 24 h you are on call on primary: Mon 09 Mar 05:00 to Mon 16 Mar 05:00")
    assert "No phone of yours is set up" in page.text
    await to(pager, MONDAY - timedelta(hours=1))
    assert pager.expect_page("bob", kind="notice").text.startswith("📟 In 1 h you are on call")
    pager.expect_silence()
    await to(pager, MONDAY)
    assert pager.expect_page("bob", kind="notice").text.startswith("📟 You are on call on primary now")
    assert "is over" in pager.expect_page("alice", kind="notice").text
    post = pager.expect_message("channel", "#payments")
    assert post.text.startswith("🔁 primary: bob on call, Mon 09 Mar 09:00 to Mon 16 Mar 09:00 UTC.")
    assert "Off call: alice." in post.text
    assert "Next: alice." in post.text
    assert post.body["mentions"] == ["U0BOB"]
    await accept(pager, post, "bob")
    pager.expect_message("channel", "#payments")


async def test_each_kind_can_be_turned_off(pager: Pager) -> None:
    """For oneself; what was not turned off still comes, and so does the handoff."""
    choices = Choices(pager.app.database)
    bob, alice = await pager.person("bob"), await pager.person("alice")
    assert bob.person_id is not None
    assert alice.person_id is not None
    on = await choices.turn(bob.person_id, [Reminder.DAY, Reminder.START], on=False)
    assert on == [Reminder.HOUR, Reminder.END]
    await choices.turn(alice.person_id, list(Reminder), on=False)
    await to(pager, MONDAY)
    assert "In 1 h" in pager.expect_page("bob", kind="notice").text
    post = pager.expect_message("channel", "#payments")
    assert await choices.turn(bob.person_id, [Reminder.DAY], on=True) == [
        Reminder.DAY, Reminder.HOUR, Reminder.END
    ]  # fmt: skip
    await accept(pager, post, "bob")
    pager.expect_message("channel", "#payments")


async def test_an_override_set_shortly_before_tells_its_person_once(pager: Pager) -> None:
    """Whoever was told just now that they come on in half an hour is not told the same by a reminder."""
    await pager.advance(hours=3)
    soon = pager.clock.now() + timedelta(minutes=30)
    await carol_stands_in(pager, timedelta(hours=2), soon)
    await rounds(pager)
    pager.expect_silence()
    await to(pager, soon)
    assert "You are on call on primary now" in pager.expect_page("carol", kind="notice").text
    pager.expect_page("alice", kind="notice")
    await accept(pager, pager.expect_message("channel", "#payments"), "carol")
    pager.expect_message("channel", "#payments")


async def test_an_added_person_hears_once_that_it_is_taken_back(pager: Pager) -> None:
    """The cancelled override has told them; that their shift is over is the same."""
    await carol_stands_in(pager, timedelta(hours=9), kind="add")
    await rounds(pager)
    await accept(pager, pager.expect_message("channel", "#payments"), "carol")
    pager.expect_message("channel", "#payments")
    carol, (override,) = await pager.person("carol"), await pager.app.roster.overrides.listed()
    await pager.app.roster.overrides.cancel(override.id, carol)
    await pager.app.worker.run_due()
    assert "was cancelled" in pager.expect_page("carol", kind="notice").text
    pager._collect().clear()  # the line in the channel
    await rounds(pager)
    pager.expect_silence()


async def test_an_edit_is_told_like_any_change(pager: Pager) -> None:
    """Another rotation applied from the file: whoever is on call by it takes over now."""
    await pager.configure((CONFIG % CHANNEL).replace("users: [alice, bob]", "users: [carol]"))
    await rounds(pager)
    pager.expect_page("carol", kind="notice")
    pager.expect_page("alice", kind="notice")
    post = pager.expect_message("channel", "#payments")
    await accept(pager, post, "carol")
    pager.expect_message("channel", "#payments")
    await pager.advance(days=15)


async def test_a_restart_over_a_change_makes_up_for_it(pager: Pager) -> None:
    """An override set while nobody worked is found at the first round of the next process."""
    await carol_stands_in(pager, timedelta(hours=9))
    await pager.restart()
    await rounds(pager)
    await accept(pager, pager.expect_message("channel", "#payments"), "carol")
    pager.expect_message("channel", "#payments")
    await rounds(pager)


async def test_a_schedule_without_a_timer_gets_one_at_the_start(pager: Pager) -> None:
    """Whatever became of it: one live timer for each schedule."""
    async with pager.app.database.writer_engine.begin() as tx:
        await tx.execute(sa.delete(timers).where(timers.c.kind == "shift"))
    await pager.restart()
    await rounds(pager)
    async with pager.app.database.snapshot() as tx:
        kinds = list(await tx.scalars(sa.select(timers.c.kind)))
    assert kinds == ["shift"]
    await accept(pager, await taken_over(pager), "bob")
    pager.expect_message("channel", "#payments")


async def test_a_deleted_schedule_is_forgotten(pager: Pager) -> None:
    """Its timer ends, and when it comes back it announces nothing that is so already."""
    async with pager.app.database.writer_engine.begin() as tx:
        await tx.execute(sa.text("UPDATE schedules SET deleted_at = 1"))
        await tx.execute(sa.text("UPDATE counters SET value = value + 1 WHERE name = 'directory'"))
    await rounds(pager)
    async with pager.app.database.snapshot() as tx:
        assert list(await tx.scalars(sa.select(timers.c.kind))) == []
    await to(pager, MONDAY + timedelta(days=1))
    async with pager.app.database.writer_engine.begin() as tx:
        await tx.execute(sa.text("UPDATE schedules SET deleted_at = NULL"))
        await tx.execute(sa.text("UPDATE counters SET value = value + 1 WHERE name = 'directory'"))
    await rounds(pager)


async def test_a_clock_that_jumps_says_nothing_twice(pager: Pager) -> None:
    """Looked at again and again around the change, also by a second process, each thing is said once."""
    await to(pager, MONDAY - timedelta(seconds=1))
    for _ in range(2):
        pager.expect_page("bob", kind="notice")
    other = pager._build()
    pager.clock.move_to(MONDAY + timedelta(seconds=5))
    await other.sweeps.abreast.go()
    await asyncio.gather(pager.app.worker.run_due(), other.worker.run_due())
    await other.sweeps.abreast.go()
    await pager.app.sweeps.abreast.go()
    await asyncio.gather(other.worker.run_due(), pager.app.worker.run_due())
    await other.pipeline.drain()
    pager.expect_page("bob", kind="notice")
    pager.expect_page("alice", kind="notice")
    post = pager.expect_message("channel", "#payments")
    pager.expect_silence()
    async with pager.app.database.snapshot() as tx:
        assert await tx.scalar(sa.select(sa.func.count()).select_from(handoffs)) == 1
    await other.database.close()
    await accept(pager, post, "bob")
    pager.expect_message("channel", "#payments")


async def test_a_reminder_that_waited_past_its_sense_is_not_sent(pager: Pager) -> None:
    """Slack asks us to wait until the shift has begun: "in 1 h" would be wrong by then."""
    await to(pager, MONDAY - timedelta(hours=1, seconds=1))
    pager._collect().clear()
    slack = pager.transports[Method.SLACK]
    slack.fail_next(Throttled(MONDAY + timedelta(minutes=1)))
    await to(pager, MONDAY - timedelta(minutes=1))
    pager.expect_silence()
    await to(pager, MONDAY + timedelta(minutes=2))
    assert pager.expect_page("bob", kind="notice").text.startswith("📟 You are on call on primary now")
    pager.expect_page("alice", kind="notice")
    await accept(pager, pager.expect_message("channel", "#payments"), "bob")
    pager.expect_message("channel", "#payments")


async def test_a_page_goes_before_every_notice(pager: Pager) -> None:
    """In one moment a shift begins and an alert fires: the page has the first rank."""
    await to(pager, MONDAY - timedelta(seconds=1))
    pager._collect().clear()
    pager.clock.move_to(MONDAY)
    await pager.receive(fire())
    for lane in pager.app.worker.lanes:
        if lane.name in {LaneName.FATE, LaneName.ROTA}:
            await lane.run_due()
    async with pager.app.database.snapshot() as tx:
        rows = await tx.execute(
            sa.select(deliveries.c.kind, timers.c.rank)
            .join(timers, sa.and_(timers.c.subject_id == deliveries.c.id, timers.c.kind == "deliver"))
            .distinct()
        )
        ranks = {row.kind: row.rank for row in rows}
    assert ranks["page"] < ranks["notice"]
    await pager.app.worker.run_due()
    pager._collect().clear()
    await pager.resolve(1)
    await pager.advance(minutes=20)
    pager._collect().clear()
