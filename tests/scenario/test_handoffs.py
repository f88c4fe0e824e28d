"""Handoffs: told once, accepted once, and by whoever is on call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import sqlalchemy as sa

from engine.errors import Refused
from engine.models import Method, Rejected, Retry
from engine.schema import deliveries, handoffs
from tests.fakes import FakeClock
from tests.scenario.harness import Pager
from tests.scenario.shifts import (
    MONDAY,
    accept,
    begun,
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
