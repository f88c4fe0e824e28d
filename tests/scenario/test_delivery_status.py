"""What the phone company says later, in whatever order; and where pages leave their cards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import permutations

import pytest
import sqlalchemy as sa

from engine import schema
from engine.models import ORG, DeliveryStatus, Method
from engine.store import cards
from tests.fakes import FakeClock
from tests.scenario.harness import Pager
from tests.scenario.sending import LADDER, alarms, only, provider, statuses, tries

FINAL = {"delivered": "delivered", "undelivered": "dead", "failed": "dead"}


@pytest.fixture
async def phones(any_database_url: str, clock: FakeClock) -> AsyncIterator[Pager]:
    made = await Pager(any_database_url, clock, LADDER).start()
    yield made
    await made.close()
    made.silence_ops()
    made.expect_silence()


async def sent(pager: Pager, method: Method = Method.SMS) -> str:
    """A page that the provider has accepted; its reference."""
    await pager.alert()
    if method is Method.VOICE:
        await pager.advance(minutes=3)
    pager.pages()
    pager._heard.clear()
    return (await only(pager, method)).provider_ref


async def test_the_first_final_word_stays_whatever_comes_after(phones: Pager) -> None:
    """Words come late, twice and out of order: a message that arrived or died stays so (F-62)."""
    orders = list(permutations(["queued", *FINAL]))[::4]
    for number, words in enumerate(orders, 1):
        await phones.alert(f"alert {number}")
        incident = await phones.app.responder.find(number)
        views = await phones.app.views.deliveries(incident)
        ref = next(one.provider_ref for one in views if one.method is Method.SMS)
        said = provider(phones)
        changed = [await said(ref, word) for word in (*words, *words)]
        expected = FINAL[next(word for word in words if word in FINAL)]
        status = next(
            one.status for one in await phones.app.views.deliveries(incident) if one.method is Method.SMS
        )
        assert (status.value, changed.count(True)) == (expected, 1), words
        await phones.resolve(number, by="ann")
        await phones.advance(minutes=1)  # nobody is texted twice in a minute
    phones.pages()
    phones._heard.clear()


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("completed", "unconfirmed"),
        ("busy", "queued"),
        ("no-answer", "dead"),
        ("failed", "dead"),
        ("ringing", "sent"),
        ("COMPLETED", "unconfirmed"),
    ],
)
async def test_a_call_that_nobody_answered_did_not_reach_anybody(
    phones: Pager, word: str, status: str
) -> None:
    """A call that was taken may have been taken by a machine: only a key pressed is an answer (F-63)."""
    ref = await sent(phones, Method.VOICE)
    await provider(phones)(ref, word)
    assert (await statuses(phones))["voice"] == status
    await phones.ack(by="ann")


@pytest.mark.parametrize("code", ["30004", "30005", "30006", "30007"])
async def test_a_message_that_was_not_delivered_fires_the_next_rule(phones: Pager, code: str) -> None:
    """Accepted is not delivered: the failure that comes later is as loud as one at once (F-60)."""
    ref = await sent(phones)
    assert await provider(phones)(ref, "undelivered", code)
    await phones.app.worker.run_due()
    phones.expect_page("ann", "voice")
    sms = await only(phones, Method.SMS)
    assert (sms.status, sms.reason) == (DeliveryStatus.DEAD, f"the carrier did not deliver it ({code})")
    assert len(await alarms(phones)) == 2
    await phones.ack(by="ann")


@pytest.mark.parametrize("code", ["30001", "30003", "30008"])
async def test_what_the_carrier_lost_is_sent_once_more(phones: Pager, code: str) -> None:
    """A queue that is full, a telephone out of reach, no reason at all: the next rule now, and one more try
    of this one (F-60)."""
    ref = await sent(phones)
    said = provider(phones)
    assert await said(ref, "undelivered", code)
    assert not await said(ref, "undelivered", code), "the same word again is about the old attempt"
    await phones.app.worker.run_due()
    phones.expect_page("ann", "voice")
    await phones.advance(seconds=30)
    phones.expect_page("ann", "sms")
    again = await only(phones, Method.SMS)
    assert [outcome for _, outcome, _ in await tries(phones, again.id)] == ["sent", "sent"]
    assert not await said(ref, "delivered")
    assert await said(again.provider_ref, "undelivered", code)
    assert (await only(phones, Method.SMS)).status is DeliveryStatus.DEAD
    await phones.ack(by="ann")


async def test_a_word_that_comes_before_our_record_is_kept(phones: Pager) -> None:
    """The provider calls back while its answer is still on the way: what it says is not lost."""
    await phones.alert()
    phones.expect_page("ann", "sms")
    sms = await only(phones, Method.SMS)
    not_recorded = (
        sa.update(schema.deliveries)
        .where(schema.deliveries.c.id == sms.id)
        .values(status="sending", provider_ref="")
    )
    await phones.app.database.write(lambda tx: tx.execute(not_recorded))
    said = provider(phones)
    assert not await said("SM1", "delivered")
    assert await said("SM1", "delivered", None, sms.id)
    assert not await said("SM1", "failed", None, sms.id)
    assert (await only(phones, Method.SMS)).status is DeliveryStatus.DELIVERED
    await phones.ack(by="ann")


async def test_nobody_knows_that_reference(phones: Pager) -> None:
    """A word about a message that is not ours, and a word we do not know, change nothing."""
    said = provider(phones)
    assert not await said("SM-of-somebody-else", "failed")
    assert not await said("SM-of-somebody-else", "failed", None, 4711)
    ref = await sent(phones)
    assert not await said(ref, "teleported")
    await phones.ack(by="ann")


# --- cards ---------------------------------------------------------------------------------------------

CHANNEL_LEVEL = """
people:
  - {name: alice, slack: U0ALICE, timezone: UTC, rules: {high: [slack], low: [slack]}}
policies:
  - name: p
    levels: [{targets: [{person: alice}, {channel: "#war-room"}, {channel: "#payments"}], timeout: 5m}]
services:
  - {name: checkout, policy: p, channel: "#payments"}
fallback: [{person: alice}]
"""


async def placed(pager: Pager) -> dict[str, tuple[int | None, str | None]]:
    """Where cards of #1 stand: channel to (person, ts)."""
    async with pager.app.database.snapshot() as tx:
        found = await cards.of_incidents(tx, ORG, [(await pager.incident()).id])
    return {card.channel: (card.person_id, card.ts) for card in found}


async def test_a_direct_message_is_a_card_from_then_on(pager: Pager) -> None:
    """Where the page was posted the card stands: it shows the truth later, like the one in the channel."""
    await pager.alert()
    page = pager.expect_page("alice", "slack")
    alice = (await pager.person("alice")).person_id
    assert await placed(pager) == {"#payments": (None, None), "U0ALICE": (alice, f"{page.id}.1")}
    await pager.ack()


async def test_a_channel_is_paged_in_the_thread_of_its_card(any_database_url: str, clock: FakeClock) -> None:
    """Where the card of the service stands the page is a line under it; elsewhere it is a card itself."""
    pager = await Pager(any_database_url, clock, CHANNEL_LEVEL).start()
    await pager.alert()
    pager.expect_page("alice", "slack")
    room = pager.expect_message("channel", "#war-room")
    assert "thread_ts" not in room.body
    pager.expect_silence()
    async with pager.app.database.snapshot() as tx:
        shown = await cards.of_incidents(tx, ORG, [(await pager.incident()).id])
    card = next(card.id for card in shown if card.channel == "#payments")
    await pager.app.database.write(lambda tx: cards.placed(tx, card, "C1", "1.0", clock.now()))
    await pager.advance(seconds=1)
    line = pager.expect_message("channel", "#payments")
    assert (line.body["thread_ts"], line.body["channel_id"]) == ("1.0", "C1")
    assert (await placed(pager))["#payments"] == (None, "1.0"), "a line is no card"
    assert (await placed(pager))["#war-room"][1] == f"{room.id}.1"
    await pager.ack()
    await pager.close()


async def test_a_channel_page_does_not_wait_for_its_card_for_ever(
    any_database_url: str, clock: FakeClock
) -> None:
    """After ten seconds without a card the page goes out by itself."""
    pager = await Pager(any_database_url, clock, CHANNEL_LEVEL).start()
    await pager.alert()
    pager.expect_page("alice", "slack")
    pager.expect_message("channel", "#war-room")
    await pager.advance(seconds=9)
    pager.expect_silence()
    await pager.advance(seconds=2)
    assert "thread_ts" not in pager.expect_message("channel", "#payments").body
    await pager.ack()
    await pager.close()
