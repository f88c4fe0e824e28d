"""Posting, changing and reading messages through the real Slack client."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import timedelta

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.server import SandboxServer
from tests.sandbox.conftest import Script

CARD = [
    {"type": "section", "text": {"type": "mrkdwn", "text": "Disk full &amp; hot"}},
    {
        "type": "actions",
        "elements": [
            {
                "type": "button",
                "action_id": "ack",
                "value": "42",
                "text": {"type": "plain_text", "text": "Ack"},
            }
        ],
    },
]


async def refused(call: Awaitable[object]) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])


async def test_a_posted_card_is_changed_in_place(slack: AsyncWebClient, script: Script) -> None:
    """Posting by name answers the channel's id and a ts, and these two find the message again."""
    posted = await slack.chat_postMessage(channel="#payments", text="firing", blocks=CARD)
    assert posted["channel"] == "C0PAYMENTS"
    await slack.chat_update(channel=posted["channel"], ts=posted["ts"], text="acknowledged", blocks=CARD[:1])
    (shown,) = await script.messages("#payments")
    assert shown["ts"] == posted["ts"]
    assert (shown["text"], shown["edited"], len(shown["blocks"])) == ("acknowledged", True, 1)
    assert shown["blocks"][0]["text"]["text"] == "Disk full &amp; hot"


async def test_text_alone_takes_the_blocks_away(slack: AsyncWebClient, script: Script) -> None:
    """An update with text and no blocks leaves no blocks."""
    posted = await slack.chat_postMessage(channel="C0OPS", text="firing", blocks=CARD)
    await slack.chat_update(channel=posted["channel"], ts=posted["ts"], text="plain")
    (shown,) = await script.messages("ops")
    assert shown["blocks"] == []


async def test_a_person_is_reached_by_id_and_their_direct_channel(
    slack: AsyncWebClient, script: Script
) -> None:
    """Posting to U… lands in the D… channel that conversations.open names; updates need the D…."""
    posted = await slack.chat_postMessage(channel="U0ANA", text="you are on call")
    opened = await slack.conversations_open(users=["U0ANA"])
    assert posted["channel"] == opened["channel"]["id"] == "D0ANA"
    error = await refused(slack.chat_update(channel="U0ANA", ts=posted["ts"], text="x"))
    assert error == "channel_not_found"
    assert len(await script.messages("@ana")) == 1


async def test_the_history_shows_metadata_when_asked(slack: AsyncWebClient) -> None:
    """A delivery is found again by its metadata after an ambiguous failure."""
    metadata = {"event_type": "midwatch_delivery", "event_payload": {"delivery": 7}}
    await slack.chat_postMessage(channel="C0OPS", text="page", metadata=metadata)
    with_it = await slack.conversations_history(channel="C0OPS", include_all_metadata=True)
    without = await slack.conversations_history(channel="C0OPS")
    assert with_it["messages"][0]["metadata"] == metadata
    assert "metadata" not in without["messages"][0]


async def test_a_thread_needs_its_root(slack: AsyncWebClient) -> None:
    """Replies are listed under their root and not in the history; a root that is not there is refused."""
    root = await slack.chat_postMessage(channel="C0OPS", text="card")
    await slack.chat_postMessage(channel="C0OPS", text="note", thread_ts=root["ts"])
    listed = await slack.conversations_replies(channel="C0OPS", ts=root["ts"])
    assert [m["text"] for m in listed["messages"]] == ["card", "note"]
    history = await slack.conversations_history(channel="C0OPS")
    assert [m["text"] for m in history["messages"]] == ["card"]
    assert (
        await refused(slack.chat_postMessage(channel="C0OPS", text="x", thread_ts="1.2"))
        == "thread_not_found"
    )


async def test_a_deleted_card_is_gone(slack: AsyncWebClient, script: Script, sandbox: SandboxServer) -> None:
    """After somebody deletes the message, updating it says message_not_found."""
    posted = await slack.chat_postMessage(channel="C0OPS", text="card")
    message = sandbox.state.channels["C0OPS"].messages[posted["ts"]]
    sandbox.state.remove(message)
    assert await refused(slack.chat_update(channel="C0OPS", ts=posted["ts"], text="x")) == "message_not_found"
    assert await script.messages("C0OPS") == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"channel": "#nowhere", "text": "x"}, "channel_not_found"),
        ({"channel": "C0OLD", "text": "x"}, "is_archived"),
        ({"channel": "UMIDWATCH", "text": "x"}, "cannot_dm_bot"),
        ({"channel": "C0OPS", "text": " "}, "no_text"),
        ({"channel": "C0OPS", "text": "x", "blocks": [{"type": "header"}]}, "invalid_blocks"),
        ({"channel": "C0OPS", "text": "x", "blocks": [{"type": "divider"}] * 51}, "invalid_blocks"),
        (
            {
                "channel": "C0OPS",
                "text": "x",
                "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "m" * 2900}}] * 5,
            },
            "msg_blocks_too_long",
        ),
        (
            {
                "channel": "C0OPS",
                "text": "x",
                "attachments": [{"color": "#f00", "blocks": [{"type": "nope"}]}],
            },
            "invalid_attachments",
        ),
    ],
)
async def test_a_bad_post_is_refused_in_slacks_words(
    slack: AsyncWebClient, sandbox: SandboxServer, arguments: dict[str, object], error: str
) -> None:
    """Each way to be refused has Slack's own error, and nothing is posted."""
    old = sandbox.state.channels["C0GENERAL"]
    sandbox.state.channels["C0OLD"] = type(old)("C0OLD", "old", set(old.members), archived=True)
    assert await refused(slack.api_call("chat.postMessage", json=arguments)) == error
    assert sandbox.ledger.calls("chat.postMessage", ok=True) == []


async def test_posts_to_one_channel_are_throttled(slack: AsyncWebClient, sandbox: SandboxServer) -> None:
    """A burst to one channel ends in 429 with Retry-After; another channel and a second later are fine."""
    for number in range(5):
        await slack.chat_postMessage(channel="C0OPS", text=str(number))
    with pytest.raises(SlackApiError) as caught:
        await slack.chat_postMessage(channel="C0OPS", text="too many")
    assert caught.value.response.status_code == 429
    assert caught.value.response["error"] == "ratelimited"
    assert int(caught.value.response.headers["Retry-After"]) == 1
    await slack.chat_postMessage(channel="C0GENERAL", text="elsewhere")
    sandbox.world.clock.move_to(sandbox.world.clock.now() + timedelta(seconds=1))
    await slack.chat_postMessage(channel="C0OPS", text="a second later")


async def test_tokens_and_scopes_are_told(slack: AsyncWebClient, sandbox: SandboxServer) -> None:
    """auth.test names its scopes and the time; a wrong token and none have their own errors."""
    answer = await slack.auth_test()
    assert answer["user_id"] == "UMIDWATCH"
    assert "chat:write" in answer.headers["x-oauth-scopes"].split(",")
    assert answer.headers["Date"].endswith("GMT")
    wrong = AsyncWebClient(token="xoxb-wrong", base_url=sandbox.api_url)
    assert await refused(wrong.auth_test()) == "invalid_auth"
    none = AsyncWebClient(base_url=sandbox.api_url)
    assert await refused(none.auth_test()) == "not_authed"
    assert await refused(slack.apps_connections_open(app_token="xoxb-demo")) == "not_allowed_token_type"


async def test_people_say_who_they_are(slack: AsyncWebClient) -> None:
    """Guests, strangers and time zones are to be seen in users.info."""
    gus = (await slack.users_info(user="U0GUS"))["user"]
    eve = (await slack.users_info(user="U0EVE"))["user"]
    assert gus["is_restricted"]
    assert gus["is_ultra_restricted"]
    assert eve["is_stranger"]
    assert eve["team_id"] == "T0OTHER"
    assert (await slack.users_info(user="U0CHO"))["user"]["tz"] == "Asia/Tokyo"
    assert await refused(slack.users_info(user="U0NOBODY")) == "user_not_found"


async def test_unknown_names_come_with_the_known_ones(script: Script) -> None:
    """A script that misspells a name is told which there are."""
    answer = await script.post("command", status=404, user="anna", channel="#payments", text="/oncall")
    assert "ana" in answer["known"]
    answer = await script.post("command", status=404, user="ana", channel="#paymnts", text="/oncall")
    assert "#payments" in answer["known"]
