"""Reminders of shifts and handoffs: told once, to whom they concern, and never late beyond their sense."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from bot.app import App
from engine.errors import Refused
from engine.models import ORG, LaneName, Method, Page, Rejected, Retry, Throttled, TimerKind, Via
from engine.rota.handoff import HandoffAnswer, Handoffs
from engine.rota.reminders import Choices
from engine.rota.shift_plan import Reminder
from engine.schema import deliveries, handoffs, timers
from engine.store.timers import disarm
from tests.fakes import FakeClock
from tests.scenario.harness import Pager, fire

CONFIG = """
people:
  - {name: alice, slack: U0ALICE, timezone: Europe/Berlin, contact: {sms: "+12025550101"},
     rules: {high: [slack], low: [slack]}}
  - {name: bob, slack: U0BOB, timezone: America/New_York, rules: {high: [slack], low: [slack]}}
  - {name: carol, slack: U0CAROL, timezone: UTC, admin: true, rules: {high: [slack], low: [slack]}}
  - {name: dan, contact: {email: dan@example.com}, rules: {high: [email], low: [email]}}
schedules:
  - name: primary
    timezone: UTC
    %s
    layers:
      - {name: week, users: [alice, bob], start: "2026-01-05T09:00", rotation: {every: 1, unit: week}}
policies:
  - {name: payments, levels: [{targets: [{schedule: primary}], timeout: 5m}]}
services:
  - {name: checkout, policy: payments}
fallback: [{person: carol}]
"""
CHANNEL = 'channel: "#payments"'
MONDAY = datetime(2026, 3, 9, 9, 0, tzinfo=UTC)  # alice hands over to bob


@pytest.fixture
async def pager(any_database_url: str, clock: FakeClock) -> AsyncIterator[Pager]:
    """A schedule with a channel, looked at once."""
    made = await begun(any_database_url, clock, CHANNEL)
    yield made
    await made.close()
    made.expect_silence()


async def begun(url: str, clock: FakeClock, channel: str = "") -> Pager:
    made = await Pager(url, clock, CONFIG % channel).start()
    await rounds(made)
    made.expect_silence()
    return made


async def rounds(pager: Pager) -> None:
    """What a sweep does each two seconds, and what that makes due."""
    await pager.app.sweeps.abreast.go()
    await only_shifts(pager)
    await pager.advance(seconds=2)  # one message a second to each


async def only_shifts(pager: Pager) -> None:
    """Without the look ahead of each morning, whose messages have tests of their own."""
    ids = list((await pager.app.roster.directory()).schedules)
    await pager.app.database.write(lambda tx: disarm(tx, ORG, [TimerKind.COVERAGE], ids))


def handing(app: App) -> Handoffs:
    return Handoffs(app.database, app.clock, app.roster, app.nudge)


async def to(pager: Pager, when: datetime) -> None:
    await pager.advance(seconds=(when - pager.clock.now()).total_seconds())


async def accept(pager: Pager, page: Page, by: str) -> HandoffAnswer:
    number = int(page.body["buttons"][0]["value"])
    answer = await handing(pager.app).accept(number, await pager.person(by, Via.SLACK_BUTTON))
    await pager.advance(seconds=2)
    return answer


async def carol_stands_in(
    pager: Pager, lasting: timedelta, start: datetime | None = None, kind: str = "replace_all"
) -> None:
    carol, start = await pager.person("carol"), start or pager.clock.now()
    assert carol.person_id is not None
    await pager.app.roster.overrides.set(
        schedule_id=None,
        person_id=carol.person_id,
        start_at=start,
        end_at=start + lasting,
        actor=carol,
        kind=kind,
    )
    await pager.app.worker.run_due()
    pager._collect().clear()  # what an override itself tells


async def taken_over(pager: Pager) -> Page:
    """The handoff of Monday, told; the reminders before it are taken as heard."""
    await to(pager, MONDAY)
    for _ in range(3):
        pager.expect_page("bob", kind="notice")
    pager.expect_page("alice", kind="notice")
    return pager.expect_message("channel", "#payments")


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


async def test_a_handoff_says_what_one_must_know(pager: Pager) -> None:
    """Open incidents, snoozes that end in the shift, and what made most noise in the last one."""
    for summary, times in (("disk full", 1), ("db-1 is slow", 3), ("late <!channel>", 1)):
        for _ in range(times):
            await pager.alert(summary)
    await pager.resolve(1)
    await pager.ack(2)
    await pager.answer("snooze", 3, until=MONDAY + timedelta(hours=3))
    pager._collect().clear()
    await to(pager, MONDAY - timedelta(minutes=1))
    pager._collect().clear()
    await to(pager, MONDAY)
    post = pager.expect_message("channel", "#payments")
    pager._collect().clear()
    lines = post.text.splitlines()
    assert "Open incidents: 2" in lines
    assert "• #2 db-1 is slow (acknowledged by alice)" in lines
    assert "• #3 late <!channel> (snoozed)" in lines
    assert "💤 #3 wakes up Mon 09 Mar 12:00 UTC" in lines
    assert lines[lines.index("Noisiest in the last shift:") + 1] == "• 3 × db-1 is slow"
    await accept(pager, post, "bob")
    pager._collect().clear()


async def test_an_old_snooze_is_told_beside_many_new_incidents(pager: Pager) -> None:
    """Only the newest incidents are listed, but whatever wakes up in the shift is said."""
    await to(pager, MONDAY - timedelta(minutes=1))
    await pager.alert("long ago")
    await pager.answer("snooze", 1, until=MONDAY + timedelta(hours=3))
    for number in range(2, 14):
        await pager.alert(f"disk {number}")
        await pager.ack(number)
    pager._collect().clear()
    await to(pager, MONDAY)
    post = pager.expect_message("channel", "#payments")
    pager._collect().clear()
    assert "Open incidents: 13" in post.text
    assert "#1 long ago" not in post.text
    assert "💤 #1 wakes up Mon 09 Mar 12:00 UTC" in post.text
    await accept(pager, post, "bob")
    pager._collect().clear()


async def test_accept_is_shown_and_ends_the_wait(pager: Pager) -> None:
    """The post says who accepted and loses its button; after a quarter of an hour nothing more comes."""
    post = await taken_over(pager)
    assert (await accept(pager, post, "bob")).changed
    shown = pager.expect_message("channel", "#payments")
    assert shown.text.endswith("✅ Accepted by bob Mon 09 Mar 09:00.")
    assert shown.body["replaces"] == post.id
    assert "buttons" not in shown.body
    await pager.advance(minutes=20)


async def test_only_who_is_on_call_accepts_and_only_once(pager: Pager) -> None:
    """Somebody else is refused, and a second click is told who was first."""
    post = await taken_over(pager)
    with pytest.raises(Refused, match="Only who is on call can accept this: bob"):
        await accept(pager, post, "alice")
    assert (await accept(pager, post, "bob")).changed
    pager.expect_message("channel", "#payments")
    again = await accept(pager, post, "bob")
    assert (again.changed, again.text) == (False, "It was accepted by you already.")
    assert (await accept(pager, post, "alice")).text == "It was accepted by bob already."


async def test_a_late_accept_is_told_who_is_on_call_now(pager: Pager) -> None:
    """The button of last week's post does nothing."""
    post = await taken_over(pager)
    await to(pager, MONDAY + timedelta(days=7))
    pager._collect().clear()
    answer = await accept(pager, post, "bob")
    assert (answer.changed, answer.text) == (False, "That handoff is over: alice is on call now.")
    await pager.advance(minutes=20)
    pager._collect().clear()


async def test_no_accept_in_a_quarter_of_an_hour_is_said(pager: Pager) -> None:
    """In the channel, once, with whom it waits for; a late Accept still counts."""
    post = await taken_over(pager)
    await pager.advance(minutes=14)
    pager.expect_silence()
    await pager.advance(minutes=1)
    said = pager.expect_message("channel", "#payments")
    assert said.text.startswith("⏰ bob did not accept the handoff of primary in 15 minutes.")
    await pager.advance(hours=2)
    pager.expect_silence()
    assert (await accept(pager, post, "bob")).changed
    pager.expect_message("channel", "#payments")


async def test_without_a_channel_the_people_are_told(any_database_url: str, clock: FakeClock) -> None:
    """The sheet and its button come by direct message, in place of the line that the shift begins; its
    times, and that of the accept, are on the reader's clock."""
    pager = await begun(any_database_url, clock)
    await to(pager, MONDAY)
    texts = [pager.expect_page("bob", kind="notice").text[:2] for _ in range(2)]
    post = pager.expect_page("bob", kind="notice")
    assert texts == ["📟 ", "📟 "]
    clock_of_bob = "Mon 09 Mar 05:00 to Mon 16 Mar 05:00 America/New_York"
    assert post.text.startswith(f"🔁 primary: bob on call, {clock_of_bob}.")
    pager.expect_page("alice", kind="notice")
    await pager.advance(minutes=15)
    assert "You did not accept" in pager.expect_page("bob", kind="notice").text
    await accept(pager, post, "bob")
    shown = pager.expect_page("bob", kind="notice")
    assert shown.body["replaces"] == post.id
    assert shown.text.endswith("✅ Accepted by bob Mon 09 Mar 05:15.")
    await pager.close()
    pager.expect_silence()


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


async def test_an_override_hands_over_and_back(pager: Pager) -> None:
    """Set, noticed within a round, told; at its end the other is told again."""
    await carol_stands_in(pager, timedelta(hours=2))
    await rounds(pager)  # the two are told by the override itself, and not once more
    assert "carol on call" in (post := pager.expect_message("channel", "#payments")).text
    assert (await accept(pager, post, "carol")).changed
    pager.expect_message("channel", "#payments")
    await rounds(pager)
    await pager.advance(hours=1)
    assert "In 1 h" in pager.expect_page("alice", kind="notice").text
    await pager.advance(hours=1)
    assert "You are on call on primary now" in pager.expect_page("alice", kind="notice").text
    pager.expect_page("carol", kind="notice")
    await accept(pager, pager.expect_message("channel", "#payments"), "alice")
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


async def test_down_over_the_shift_change_it_is_one_handoff(pager: Pager) -> None:
    """Three weeks in a drawer: one post of what is now, and no reminder of shifts long over."""
    await to(pager, MONDAY - timedelta(days=2))
    await pager.outage(days=2, hours=2)
    pager.expect_page("bob", kind="notice")
    post = pager.expect_message("channel", "#payments")
    assert "bob on call, Mon 09 Mar 09:00" in post.text
    pager.expect_silence()
    await pager.outage(days=21)
    pager.expect_page("alice", kind="notice")
    late = pager.expect_message("channel", "#payments")
    assert "alice on call, Mon 30 Mar 09:00" in late.text
    pager.expect_silence()
    await accept(pager, late, "alice")
    pager.expect_message("channel", "#payments")


async def test_nobody_is_blamed_for_what_could_not_be_pressed(pager: Pager) -> None:
    """Down when the quarter of an hour was over: it begins anew when Accept works again."""
    post = await taken_over(pager)
    await pager.outage(hours=1)
    pager.expect_silence()
    await pager.advance(minutes=15)
    assert "did not accept" in pager.expect_message("channel", "#payments").text
    await accept(pager, post, "bob")
    pager.expect_message("channel", "#payments")


@pytest.mark.slow
async def test_old_handoffs_are_forgotten(pager: Pager) -> None:
    """A schedule that hands over for years keeps those of a season."""
    await taken_over(pager)
    week = timedelta(weeks=1)
    for weeks in range(1, 16):
        await to(pager, MONDAY + weeks * week)
        pager._collect().clear()
    async with pager.app.database.snapshot() as tx:
        kept = list(await tx.scalars(sa.select(handoffs.c.at).order_by(handoffs.c.at)))
    assert kept == [MONDAY + weeks * week for weeks in range(3, 16)]


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


async def test_a_handoff_that_nobody_could_read_is_told_again(pager: Pager) -> None:
    """Slack is away for half an hour when people change: the sheet comes when it is back, once."""
    await to(pager, MONDAY - timedelta(seconds=1))
    pager._collect().clear()
    slack = pager.transports[Method.SLACK]
    slack.always = Retry("Slack is away")
    await pager.advance(minutes=29)
    slack.always = None
    pager.silence_ops()
    pager.expect_silence()
    await pager.advance(minutes=10)
    pager.silence_ops()
    post = pager.expect_message("channel", "#payments")
    assert post.text.startswith("🔁 primary: bob on call")
    pager.expect_silence()
    await accept(pager, post, "bob")
    assert pager.expect_message("channel", "#payments").body["replaces"] == post.id


async def test_a_channel_that_is_not_there_is_tried_once(pager: Pager) -> None:
    """What can never be delivered is an alarm, and no post each quarter of an hour."""
    await to(pager, MONDAY - timedelta(seconds=1))
    pager._collect().clear()
    pager.transports[Method.SLACK].always = Rejected("Slack: channel_not_found")
    await pager.advance(hours=3)
    async with pager.app.database.snapshot() as tx:
        of_handoffs = deliveries.c.idem_key.like("handoff:%")
        keys = list(await tx.scalars(sa.select(deliveries.c.idem_key).where(of_handoffs)))
        tried = list(await tx.scalars(sa.select(deliveries.c.attempts).where(of_handoffs)))
    assert sorted(keys) == ["handoff:1", "handoff:1:unaccepted"]
    assert tried == [1, 1]
    pager.silence_ops()


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
