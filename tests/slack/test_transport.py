"""Pages reach people and channels, once, and every failure is an outcome."""

from __future__ import annotations

from typing import Any

import pytest

from bot.sandbox.content import visible_text
from bot.slack.health import SlackState
from engine.models import DeliveryKind, Method, Outcome, Page, Rejected, Retry, Sent, Throttled
from tests.slack.conftest import Desk
from tests.slack.views import a_view


def a_page(**changes: Any) -> Page:
    given: dict[str, Any] = {
        "id": 77,
        "attempt": 1,
        "kind": DeliveryKind.PAGE,
        "method": Method.SLACK,
        "address": "U0ANA",
        "incident": a_view(),
    }
    return Page(**(given | changes))


async def send(desk: Desk, **changes: Any) -> Outcome:
    return await desk.slack.transport.send(a_page(**changes))


async def test_a_page_is_a_direct_message_with_the_buttons_of_the_card(desk: Desk) -> None:
    """The person gets the card in their direct messages; the delivery id goes with it."""
    outcome = await send(desk)
    (message,) = desk.direct("ana")
    channel = desk.sandbox.state.direct("U0ANA").id
    assert outcome == Sent(f"{channel}:{message.ts}", "slack", {"channel_id": channel, "ts": message.ts})
    assert message.text.startswith("🔴 FIRING · *#42 db-1 is down*")
    assert message.metadata == {"event_type": "midwatch_delivery", "event_payload": {"delivery_id": 77}}
    elements = message.attachments[0]["blocks"][-1]["elements"]
    assert [element["action_id"] for element in elements] == [
        "incident_ack",
        "incident_resolve",
        "incident_more",
    ]


async def test_a_channel_target_is_mentioned(desk: Desk) -> None:
    """A card for a channel of the policy calls the channel."""
    outcome = await send(desk, method=Method.CHANNEL, address="#payments")
    assert isinstance(outcome, Sent)
    (message,) = desk.said("#payments")
    assert message.text.endswith("<!channel>")


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        (DeliveryKind.OPS, "Nobody <!channel> is on call", "🚨 Nobody &lt;!channel&gt; is on call"),
        (DeliveryKind.NOTICE, "Your shift begins", "Your shift begins"),
        (DeliveryKind.VERIFICATION, "Your code is 123456", "🔑 Your code is 123456"),
        (DeliveryKind.NOTICE, "", "Midwatch"),
    ],
)
async def test_what_is_no_page_is_text(desk: Desk, kind: DeliveryKind, text: str, shown: str) -> None:
    """Alarms and notices are escaped text without buttons."""
    await send(desk, kind=kind, text=text, incident=None)
    assert [visible_text(message) for message in desk.direct("ana")] == [shown]


async def test_a_line_about_an_incident_stands_in_its_thread(desk: Desk) -> None:
    """With a thread given, the line is a reply; elsewhere it names its incident."""
    first = await send(desk, method=Method.CHANNEL, address="#payments")
    assert isinstance(first, Sent)
    body = {"text": "Note by ana: x", "thread": True, "thread_ts": first.detail["ts"]}
    await send(desk, kind=DeliveryKind.STATUS, method=Method.CHANNEL, address="#payments", body=body)
    assert [visible_text(m) for m in desk.said("#payments") if m.thread_ts] == ["Note by ana: x"]
    await send(desk, kind=DeliveryKind.STATUS, body={"text": "2 more alerts"})
    assert "#42 db-1 is down" in visible_text(desk.direct("ana")[0])


async def test_a_page_for_the_channel_of_the_card_is_a_call_below_it(desk: Desk) -> None:
    """Where the card stands already no second one is posted: a mention, shown in the channel too."""
    card = await send(desk, method=Method.CHANNEL, address="#payments")
    assert isinstance(card, Sent)
    body = {"thread_ts": card.detail["ts"], "channel_id": card.detail["channel_id"]}
    assert isinstance(await send(desk, method=Method.CHANNEL, address="#payments", body=body), Sent)
    (call,) = [m for m in desk.said("#payments") if m.thread_ts]
    assert call.text.startswith("<!channel> 🔴 FIRING · *#42")
    assert call.attachments == []
    assert desk.sandbox.ledger.calls("chat.postMessage")[-1].args["reply_broadcast"] is True


async def test_who_is_asked_to_help_is_told_so(desk: Desk) -> None:
    """A responder's page begins with what is wanted of them."""
    await send(desk, kind=DeliveryKind.RESPONDER)
    assert desk.direct("ana")[0].text.startswith("🙋 You are asked to help with #42: 🔴 FIRING")


@pytest.mark.parametrize(
    ("fault", "reach", "expected"),
    [
        ("outage", {}, Retry("Slack: http_503")),
        ("429_empty", {"method": "chat.postMessage"}, Throttled),
        ("token_revoked", {}, Retry("Slack is down for us: token_revoked", down=True)),
        ("channel_not_found", {"method": "chat.postMessage"}, Rejected("Slack: channel_not_found")),
        ("user_not_found", {"method": "conversations.open"}, Rejected("Slack: user_not_found")),
        ("message_limit_exceeded", {}, Retry("Slack: message_limit_exceeded")),
        ("missing_scope", {"method": "conversations.open"}, Rejected),
    ],
)
async def test_a_failure_is_an_outcome(desk: Desk, fault: str, reach: dict[str, str], expected: Any) -> None:
    """Nothing that Slack does raises, and nothing is sent."""
    desk.breaks(fault, **reach)
    outcome = await send(desk)
    assert outcome == expected if not isinstance(expected, type) else isinstance(outcome, expected)
    assert desk.direct("ana") == []


async def test_a_throttle_says_until_when(desk: Desk) -> None:
    """Retry-After becomes an instant of our clock."""
    desk.breaks("429", retry_after=7, method="chat.postMessage")
    outcome = await send(desk)
    assert isinstance(outcome, Throttled)
    assert (outcome.until - desk.clock.now()).total_seconds() == 7


async def test_a_dead_token_is_a_slack_that_is_down(desk: Desk) -> None:
    """After a refused token nobody believes that Slack works, until a call succeeds."""
    await send(desk)
    assert desk.slack.health.posting
    desk.breaks("account_inactive")
    await send(desk)
    assert not desk.slack.health.posting
    assert desk.slack.health.state is SlackState.DOWN
    desk.mends()
    await send(desk)
    assert desk.slack.health.posting


async def test_what_slack_finds_malformed_is_sent_plainly_at_once(desk: Desk) -> None:
    """A refused card goes out as text with the two buttons that matter."""
    desk.breaks("invalid_blocks", method="chat.postMessage", times=1)
    assert isinstance(await send(desk), Sent)
    (message,) = desk.direct("ana")
    assert message.attachments == []
    assert [e["action_id"] for e in message.blocks[-1]["elements"]] == ["incident_ack", "incident_resolve"]


async def test_a_lost_answer_is_looked_up_before_sending_again(desk: Desk) -> None:
    """Posted, then reset: the second attempt finds the message and does not post another."""
    desk.breaks("reset_after", method="chat.postMessage", times=1)
    assert isinstance(await send(desk), Retry)
    (message,) = desk.direct("ana")
    outcome = await send(desk, attempt=2)
    assert isinstance(outcome, Sent)
    assert outcome.detail["ts"] == message.ts
    assert len(desk.direct("ana")) == 1


async def test_a_lost_answer_is_looked_up_in_a_channel_given_by_its_name(desk: Desk) -> None:
    """History wants an id: the channel is found by its name, and by what an earlier post said of it."""
    desk.breaks("reset_after", method="chat.postMessage", times=1)
    to = {"method": Method.CHANNEL, "address": "#payments"}
    assert isinstance(await send(desk, **to), Retry)
    (message,) = desk.said("#payments")
    outcome = await send(desk, attempt=2, **to)
    assert isinstance(outcome, Sent)
    assert outcome.detail == {"channel_id": "C0PAYMENTS", "ts": message.ts}
    assert len(desk.said("#payments")) == 1
    assert isinstance(await send(desk, id=78, **to), Sent)
    listed = len(desk.sandbox.ledger.calls("conversations.list"))
    assert isinstance(await send(desk, attempt=2, **to), Sent)
    assert len(desk.said("#payments")) == 2
    assert len(desk.sandbox.ledger.calls("conversations.list")) == listed


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": DeliveryKind.NOTICE, "incident": None, "text": "Your shift begins"},
        {"method": Method.CHANNEL, "address": "#payments"},
        {"method": Method.CHANNEL, "address": "#payments", "body": {"thread_ts": "1.1"}},
    ],
)
async def test_a_repeat_is_seen_where_the_words_are_read(desk: Desk, changes: dict[str, Any]) -> None:
    """Slack shows the blocks and not the text beside them: the mark stands in both, on every message."""
    desk.breaks("missing_scope", method="conversations.history")
    for attempt, marked in ((1, False), (2, True)):
        await send(desk, attempt=attempt, **changes)
        said = desk.sandbox.ledger.calls("chat.postMessage")[-1].args
        assert str(said["text"]).startswith("(repeat) ") is marked
        if said["blocks"]:
            assert str(said["blocks"][0]["text"]["text"]).startswith("(repeat) ") is marked


async def test_a_repeat_that_cannot_be_told_is_marked(desk: Desk) -> None:
    """If Slack does not show its history the page goes out again, and says that it may be a repeat."""
    desk.breaks("missing_scope", method="conversations.history")
    assert isinstance(await send(desk, attempt=2), Sent)
    assert desk.direct("ana")[0].text.startswith("(repeat) 🔴 FIRING")


async def test_another_attempt_after_a_clear_failure_is_no_repeat(desk: Desk) -> None:
    """Looked up and not there: it is sent as the first."""
    assert isinstance(await send(desk, attempt=3), Sent)
    assert desk.direct("ana")[0].text.startswith("🔴 FIRING")


async def test_a_public_channel_is_joined_when_need_be(desk: Desk) -> None:
    """Not in the channel: Midwatch joins it by its name and posts."""
    channel = desk.sandbox.state.find_channel("#payments")
    assert channel is not None
    channel.members.discard("UMIDWATCH")
    desk.breaks("not_in_channel", method="chat.postMessage", times=1)
    assert isinstance(await send(desk, method=Method.CHANNEL, address="#payments"), Sent)
    assert "UMIDWATCH" in channel.members


async def test_a_notice_may_mention_people_and_have_buttons(desk: Desk) -> None:
    """By their ids and their actions; its text stays escaped."""
    button = {"do": "cover_accept", "label": "Accept", "value": "1:all", "style": "primary"}
    body = {"text": "Who takes <it>?", "mentions": ["U0BEN", "<!channel>"], "buttons": [button]}
    await send(desk, kind=DeliveryKind.NOTICE, incident=None, body=body)
    (message,) = desk.direct("ana")
    assert message.text == "<@U0BEN> Who takes &lt;it&gt;?"
    (made,) = message.blocks[-1]["elements"]
    assert (made["action_id"], made["value"], made["style"]) == ("cover_accept", "1:all", "primary")


@pytest.mark.parametrize("known", [True, False])
async def test_a_notice_takes_the_place_of_an_earlier_one(desk: Desk, known: bool) -> None:
    """By where it stands, or if its answer was lost by its delivery id; nothing new is posted."""
    first = await send(desk, kind=DeliveryKind.NOTICE, incident=None, text="Who takes it?")
    assert isinstance(first, Sent)
    body = {"text": "Ben has it.", "replaces": 77, "at": first.ref if known else ""}
    outcome = await send(desk, id=78, kind=DeliveryKind.NOTICE, incident=None, body=body)
    assert isinstance(outcome, Sent)
    assert [visible_text(message) for message in desk.direct("ana")] == ["Ben has it."]


async def test_a_change_of_what_is_not_there_any_more_is_done(desk: Desk) -> None:
    """Somebody deleted it, or it never stood there: no alarm, and no message out of nowhere."""
    first = await send(desk, kind=DeliveryKind.NOTICE, incident=None, text="Who takes it?")
    assert isinstance(first, Sent)
    (message,) = desk.direct("ana")
    del desk.sandbox.state.channels[message.channel].messages[message.ts]
    for at in (first.ref, ""):
        body = {"text": "Ben has it.", "replaces": 77, "at": at}
        assert isinstance(await send(desk, id=78, kind=DeliveryKind.NOTICE, incident=None, body=body), Sent)
    assert desk.direct("ana") == []
