"""Cards converge on the truth, whatever happens to the messages that show it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from bot.sandbox.content import visible_text
from bot.sandbox.state import Message
from engine.db import Tx
from engine.models import ORG, Actor, DeliveryKind, IncidentView, Method, Timer, TimerKind, Via
from engine.schema import cards as cards_table
from engine.schema import deliveries
from engine.store import cards, timers
from engine.store.timers import Arming
from tests.slack.conftest import Desk

ANA = Actor("ana", Via.SMS)


async def with_card(desk: Desk, title: str = "db-1 is down", channel: str = "#payments") -> IncidentView:
    """An incident whose card stands in the channel."""
    incident = await desk.open(title)
    await desk.card(incident, channel)
    await desk.slack.cards.show(incident.id)
    await desk.run_cards()
    return incident


def texts(messages: list[Message]) -> list[str]:
    return [message.text.partition(" *#")[0] for message in messages]


async def test_a_card_is_posted_once_and_then_changed(desk: Desk) -> None:
    """A new card is a message, and an ack changes this message."""
    incident = await with_card(desk)
    (posted,) = desk.said("#payments")
    assert posted.text.startswith("🔴 FIRING ·")
    await desk.responder.acknowledge(incident.id, ANA)
    await desk.run_cards()
    (shown,) = desk.said("#payments")
    assert shown.ts == posted.ts
    assert shown.text.startswith("🟡 ACKED by @ana ·")
    assert "Acked by @ana via SMS · <!date^" in visible_text(shown)
    assert await desk.card_due() == []


async def test_a_change_during_the_update_is_shown_too(desk: Desk) -> None:
    """A timer re-armed while its card is being shown is due again afterwards."""
    incident = await with_card(desk)
    await desk.slack.cards.show(incident.id)
    claimed = await desk.claim()
    await desk.responder.acknowledge(incident.id, ANA)
    await desk.slack.cards.handle(claimed)
    desk.clock.move(seconds=31)
    assert await desk.run_cards() == 1
    assert texts(desk.said("#payments")) == ["🟡 ACKED by @ana ·"]


async def test_newest_first_is_not_the_order_in_which_they_are_written_down(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever arms many card timers locks them by card: in another order each could wait for the other."""
    shown = [await with_card(desk, f"db-{n} is down") for n in range(3)]
    for incident in shown:
        await desk.slack.cards.show(incident.id)
    written: list[int] = []

    def watched(write: Callable[..., Awaitable[bool]]) -> Callable[..., Awaitable[bool]]:
        async def note(tx: Tx, timer: Timer, *more: Any) -> bool:
            written.append(timer.subject_id)
            return await write(tx, timer, *more)

        return note

    for name in ("finish", "postpone"):
        monkeypatch.setattr(timers, name, watched(getattr(timers, name)))
    desk.clock.move(seconds=9)
    await desk.run_cards()
    assert len(written) == len(shown)
    assert written == sorted(written)


@pytest.mark.parametrize("fault", ["message_not_found", "cant_update_message", "edit_window_closed"])
async def test_a_lost_card_is_posted_again(desk: Desk, fault: str) -> None:
    """What cannot be changed any more is replaced by a new message, which is changed from then on."""
    incident = await with_card(desk)
    desk.breaks(fault, method="chat.update", times=1)
    desk.clock.move(seconds=2)
    await desk.responder.acknowledge(incident.id, ANA)
    await desk.run_cards()
    assert texts(desk.said("#payments")) == ["🔴 FIRING ·", "🟡 ACKED by @ana ·"]
    await desk.responder.resolve(incident.id, ANA)
    await desk.run_cards()
    assert texts(desk.said("#payments")) == ["🔴 FIRING ·", "🟢 RESOLVED ·"]


async def test_a_deleted_card_of_a_closed_incident_stays_deleted(desk: Desk) -> None:
    """Nobody needs a new message about what is over."""
    incident = await with_card(desk)
    desk.sandbox.state.remove(desk.said("#payments")[0])
    await desk.responder.resolve(incident.id, ANA)
    desk.clock.move(seconds=2)
    await desk.run_cards()
    assert desk.said("#payments") == []
    assert await desk.card_due() == []


async def test_one_post_a_second_and_channel_newest_first(desk: Desk) -> None:
    """Of three new cards the newest stands there at once, and the others follow a second apart."""
    for number in (1, 2, 3):
        incident = await desk.open(f"problem {number}")
        await desk.card(incident, "#payments")
        await desk.slack.cards.show(incident.id)
    seen = []
    for _ in range(4):
        await desk.run_cards()
        seen.append(sorted(message.text[-10:-1] for message in desk.said("#payments")))
        desk.clock.move(seconds=1)
    newest = ["problem 3"], ["problem 2", "problem 3"], ["problem 1", "problem 2", "problem 3"]
    assert seen == [*newest, newest[2]]


async def test_cards_of_two_channels_do_not_wait_for_each_other(desk: Desk) -> None:
    """The pace is one of each channel."""
    incident = await desk.open()
    for channel in ("#payments", "#general"):
        await desk.card(incident, channel)
    await desk.slack.cards.show(incident.id)
    await desk.run_cards()
    assert (len(desk.said("#payments")), len(desk.said("#general"))) == (1, 1)


async def test_a_throttled_update_is_postponed_not_tried(desk: Desk) -> None:
    """429: the card is due after Retry-After, other updates wait as well, and none is lost."""
    incident = await with_card(desk)
    desk.breaks("429", retry_after=20, method="chat.update", times=1)
    await desk.responder.acknowledge(incident.id, ANA)
    await desk.run_cards()
    assert await desk.card_due() == [desk.clock.now() + timedelta(seconds=20)]
    await desk.slack.cards.show(incident.id)
    await desk.run_cards()
    assert len(desk.sandbox.ledger.calls("chat.update")) == 1
    desk.clock.move(seconds=21)
    await desk.run_cards()
    assert texts(desk.said("#payments")) == ["🟡 ACKED by @ana ·"]


async def test_an_outage_only_delays_cards(desk: Desk) -> None:
    """While Slack is down the card is tried again later and later, and is right in the end."""
    incident = await with_card(desk)
    desk.breaks("outage")
    await desk.responder.acknowledge(incident.id, ANA)
    delays = []
    for _ in range(7):
        await desk.run_cards()
        (due,) = await desk.card_due()
        delays.append(int((due - desk.clock.now()).total_seconds()))
        desk.clock.move_to(due)
    assert delays == [10, 20, 40, 80, 160, 300, 300]
    desk.mends()
    await desk.run_cards()
    assert texts(desk.said("#payments")) == ["🟡 ACKED by @ana ·"]


@pytest.mark.parametrize("fault", ["channel_not_found", "is_archived", "restricted_action"])
async def test_a_broken_channel_is_said_once(desk: Desk, fault: str) -> None:
    """No card can stand there: the card is given up with one alarm, and later changes do not try again."""
    desk.breaks(fault, method="chat.postMessage", channel="#gone")
    incident = await with_card(desk, channel="#gone")
    await desk.responder.acknowledge(incident.id, ANA)
    await desk.run_cards()
    tried = [
        call for call in desk.sandbox.ledger.calls("chat.postMessage") if call.args["channel"] == "#gone"
    ]
    assert len(tried) == 1
    desk.clock.move(seconds=2)
    second = await with_card(desk, title="web-1 is down", channel="#gone")
    async with desk.database.snapshot() as tx:
        found = [row._mapping for row in await tx.execute(cards_table.select())]
        told = [row._mapping for row in await tx.execute(deliveries.select())]
    assert {row["broken"] for row in found if row["channel"] == "#gone"} == {fault}
    alarms = [row for row in told if row["kind"] == DeliveryKind.OPS and row["method"] == Method.CHANNEL]
    assert len(alarms) == 1
    assert f"#gone for #{incident.number} ({fault})" in alarms[0]["body"]["text"]
    assert second.number != incident.number


async def test_a_card_that_slack_refuses_is_shown_plainly(desk: Desk) -> None:
    """Blocks refused: the state is shown as text, never nothing."""
    incident = await with_card(desk)
    desk.breaks("msg_blocks_too_long", method="chat.update", times=1)
    await desk.responder.acknowledge(incident.id, ANA)
    await desk.run_cards()
    (shown,) = desk.said("#payments")
    assert shown.text.startswith("🟡 ACKED by @ana ·")
    assert shown.attachments == []


async def test_a_card_whose_answer_was_lost_is_adopted(desk: Desk) -> None:
    """Posted, then cut off: the next try finds the card, brings it up to date and posts no second one."""
    desk.breaks("reset_after", method="chat.postMessage", times=1)
    incident = await with_card(desk)
    (posted,) = desk.said("#payments")
    await desk.responder.acknowledge(incident.id, ANA)
    desk.clock.move(seconds=11)
    await desk.run_cards()
    (shown,) = desk.said("#payments")
    assert shown.ts == posted.ts
    assert shown.text.startswith("🟡 ACKED by @ana ·")
    await desk.responder.resolve(incident.id, ANA)
    await desk.run_cards()
    assert texts(desk.said("#payments")) == ["🟢 RESOLVED ·"]


async def test_a_card_posted_just_before_the_end_is_adopted(desk: Desk) -> None:
    """The process ended before it wrote where the card stands: whoever claims it next finds it."""
    incident = await with_card(desk)
    card_id = await desk.card(incident, "#payments")
    await desk.database.write(lambda tx: cards.lost(tx, card_id))
    await desk.slack.cards.show(incident.id)
    await desk.claim()
    desk.clock.move(seconds=31)
    assert await desk.run_cards() == 1
    assert len(desk.said("#payments")) == 1
    async with desk.database.snapshot() as tx:
        (card,) = await cards.read(tx, [card_id])
    assert (card.channel_id, card.ts) == ("C0PAYMENTS", desk.said("#payments")[0].ts)


async def test_a_card_that_cannot_be_changed_is_not_adopted(desk: Desk) -> None:
    """What stands there but is lost is replaced, also when the first replacement fails."""
    incident = await with_card(desk)
    (old,) = desk.said("#payments")
    desk.breaks("cant_update_message", method="chat.update")
    desk.breaks("outage", method="chat.postMessage", times=1)
    await desk.responder.acknowledge(incident.id, ANA)
    for _ in range(2):
        desk.clock.move(seconds=11)
        await desk.run_cards()
    assert [m.ts == old.ts for m in desk.said("#payments")] == [True, False]
    assert await desk.card_due() == []


async def test_a_card_that_only_waited_its_turn_is_not_looked_for(desk: Desk) -> None:
    """What this process itself put off was not posted: in a storm no call is spent on asking."""
    for number in (1, 2, 3):
        incident = await desk.open(f"problem {number}")
        await desk.card(incident, "#payments")
        await desk.slack.cards.show(incident.id)
    for _ in range(3):
        await desk.run_cards()
        desk.clock.move(seconds=1)
    assert len(desk.said("#payments")) == 3
    assert desk.sandbox.ledger.calls("conversations.history") == []


async def test_a_history_that_cannot_be_read_does_not_keep_a_card_away(desk: Desk) -> None:
    """Without the scope a second card is better than none."""
    desk.breaks("reset_after", method="chat.postMessage", times=1)
    desk.breaks("missing_scope", method="conversations.history")
    await with_card(desk)
    desk.clock.move(seconds=11)
    await desk.run_cards()
    assert len(desk.said("#payments")) == 2
    assert await desk.card_due() == []


async def test_a_timer_without_its_card_is_finished(desk: Desk) -> None:
    """A card that is no more leaves nothing due."""
    armings = [Arming(TimerKind.CARD, 999, desk.clock.now())]
    await desk.database.write(lambda tx: timers.arm(tx, ORG, armings))
    assert await desk.run_cards() == 1
    assert await desk.card_due() == []


async def test_a_lost_lease_records_nothing(desk: Desk) -> None:
    """Whoever claimed the timer meanwhile records; the slower one changes no row."""
    incident = await desk.open()
    card_id = await desk.card(incident, "#payments")
    await desk.slack.cards.show(incident.id)
    stale = await desk.claim()
    desk.clock.move(seconds=31)
    current = await desk.claim()
    await desk.slack.cards.handle(current)
    async with desk.database.snapshot() as tx:
        (before,) = await cards.read(tx, [card_id])
    desk.clock.move(seconds=2)
    await desk.slack.cards.handle(stale)
    async with desk.database.snapshot() as tx:
        (after,) = await cards.read(tx, [card_id])
    assert after == before


async def test_a_burst_of_updates_is_spread(desk: Desk) -> None:
    """More updates than the bucket holds are postponed, and none is dropped."""
    first = await with_card(desk)
    for _ in range(25):
        await desk.slack.cards.show(first.id)
        await desk.run_cards()
    assert len(desk.sandbox.ledger.calls("chat.update")) == 20
    (due,) = await desk.card_due()
    assert timedelta() < due - desk.clock.now() <= timedelta(seconds=2)
