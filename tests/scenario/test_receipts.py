"""A provider that says nothing is asked what became of a page; what nobody confirms goes by the next way."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from engine.models import ORG, DeliveryStatus, Method, Retry, Sent, TimerKind
from engine.notify.status import ProviderStatus
from engine.notify.transport import Told
from engine.store import timers
from tests.fakes import FakeClock, FakeTransport
from tests.scenario.harness import Pager
from tests.scenario.sending import only

CONFIG = """
people:
  - {name: alice, timezone: UTC, contact: {sms: "+12025550101", voice: "+12025550101"},
     rules: {high: [sms, voice after 15m]}}
policies: [{name: payments, levels: [{targets: [{person: alice}], timeout: 30m}]}]
services: [{name: checkout, policy: payments}]
fallback: [{person: alice}]
"""


@pytest.fixture
async def pager(any_database_url: str, clock: FakeClock) -> AsyncIterator[Pager]:
    made = await Pager(any_database_url, clock, CONFIG).start()
    for method in (Method.SMS, Method.VOICE):
        made.transports[method].receipts = True
    yield made
    await made.close()
    made.silence_ops()
    made.expect_silence()


def sms(pager: Pager) -> FakeTransport:
    return pager.transports[Method.SMS]


async def receipt_timers(pager: Pager) -> int:
    delivery = await only(pager, Method.SMS)
    async with pager.app.database.snapshot() as tx:
        return len(await timers.of_subjects(tx, ORG, [TimerKind.RECEIPT], [delivery.id]))


async def test_a_provider_that_does_not_call_back_is_asked_after_a_minute(pager: Pager) -> None:
    """It says that the text arrived: nothing else is sent early, and it is not asked again (F-61)."""
    await pager.alert()
    pager.expect_page("alice", "sms")
    sms(pager).says = Told("delivered")
    await pager.advance(seconds=59)
    assert sms(pager).asked == []
    await pager.advance(seconds=2)
    assert len(sms(pager).asked) == 1
    await pager.advance(minutes=10)
    assert len(sms(pager).asked) == 1
    assert (await only(pager, Method.SMS)).status is DeliveryStatus.DELIVERED
    pager.expect_silence()


async def test_two_minutes_without_a_word_are_unconfirmed_and_the_next_rule_fires(pager: Pager) -> None:
    """The call that was to come after a quarter of an hour comes now (F-61)."""
    await pager.alert()
    pager.expect_page("alice", "sms")
    await pager.advance(seconds=119)
    pager.expect_silence()
    await pager.advance(seconds=2)
    pager.expect_page("alice", "voice")
    told = await only(pager, Method.SMS)
    assert (told.status, told.reason) == (DeliveryStatus.UNCONFIRMED, "nobody confirmed that it arrived")
    assert len(sms(pager).asked) == 2


async def test_what_is_confirmed_late_is_delivered_all_the_same(pager: Pager) -> None:
    """The word that comes after we gave up waiting is taken; a second one changes nothing (F-62)."""
    await pager.alert()
    await pager.advance(minutes=3)
    pager.expect_pages(("alice", "sms"), ("alice", "voice"))
    app = pager.app
    say = ProviderStatus(app.database, app.clock, app.roster.directory, app.nudge)
    ref = (await only(pager, Method.SMS)).provider_ref
    assert await say(ref, "delivered")
    assert not await say(ref, "undelivered", "30008")
    assert (await only(pager, Method.SMS)).status is DeliveryStatus.DELIVERED


async def test_a_call_back_ends_the_waiting(pager: Pager) -> None:
    """Who calls back is never asked, and no timer stays behind."""
    await pager.alert()
    pager.expect_page("alice", "sms")
    assert await receipt_timers(pager) == 1
    app = pager.app
    say = ProviderStatus(app.database, app.clock, app.roster.directory, app.nudge)
    await say((await only(pager, Method.SMS)).provider_ref, "delivered")
    assert await receipt_timers(pager) == 0
    await pager.advance(minutes=10)
    assert sms(pager).asked == []


async def test_who_died_meanwhile_is_asked_about_by_the_next_process(pager: Pager) -> None:
    """The waiting is a timer, not a task in memory."""
    await pager.alert()
    pager.expect_page("alice", "sms")
    await pager.restart()
    await pager.advance(minutes=3)
    pager.expect_page("alice", "voice")


async def test_after_an_ack_nobody_is_called_because_of_silence(pager: Pager) -> None:
    """An unconfirmed text of an incident that somebody has is unconfirmed, and nothing more."""
    await pager.alert()
    pager.expect_page("alice", "sms")
    await pager.ack()
    await pager.advance(minutes=20)
    assert (await only(pager, Method.SMS)).status is DeliveryStatus.UNCONFIRMED
    pager.expect_silence()


async def test_a_busy_line_is_called_again(pager: Pager) -> None:
    """Once, half a minute later, while it is still wanted; then it is given up, and that is said (F-63)."""
    sms(pager).says = Told("delivered")
    await pager.alert()
    await pager.advance(minutes=15)
    pager.expect_pages(("alice", "sms"), ("alice", "voice"))
    pager.transports[Method.VOICE].says = Told("busy")
    await pager.advance(seconds=100)
    pager.expect_page("alice", "voice")
    await pager.advance(seconds=65)
    call = await only(pager, Method.VOICE)
    assert (call.status, call.reason) == (DeliveryStatus.DEAD, "the line was busy")
    pager.silence_ops()
    await pager.ack()


async def test_a_call_that_is_going_on_is_not_given_up_on(pager: Pager) -> None:
    """Somebody listens for longer than two minutes: asked again until it ends, without a key pressed."""
    sms(pager).says = Told("delivered")
    voice = pager.transports[Method.VOICE]
    await pager.alert()
    voice.says = Told("in-progress")
    await pager.advance(minutes=18)
    pager.expect_pages(("alice", "sms"), ("alice", "voice"))
    assert (await only(pager, Method.VOICE)).status is DeliveryStatus.SENT
    voice.says = Told("completed")
    await pager.advance(minutes=1)
    assert (await only(pager, Method.VOICE)).status is DeliveryStatus.UNCONFIRMED


async def test_what_was_sent_though_nobody_heard_so_is_not_sent_again(pager: Pager) -> None:
    """After an answer that was lost the provider is asked for the message before it is sent again (F-59)."""
    sms(pager).fail_next(Retry("no answer in time: it may have been sent"))
    sms(pager).before = Sent("SM-found", "sms")
    await pager.alert()
    pager.expect_page("alice", "voice")  # the next rule does not wait for that
    await pager.advance(seconds=40)
    found = await only(pager, Method.SMS)
    assert (found.status, found.provider_ref) == (DeliveryStatus.SENT, "SM-found")
    pager.expect_silence()
