"""Slack as a transport: direct messages to people, cards in channels, lines in threads.

Delivery is at least once: a post whose answer was lost is looked for by its delivery id before it
is sent again, and marked "(repeat)" when that cannot be told. Never raises for what Slack answers.
"""

from __future__ import annotations

from typing import Final

import structlog
from slack_sdk.errors import SlackApiError

from bot.slack import blocks, notices
from bot.slack.client import Placed, SlackClient, delivery_metadata
from bot.slack.errors import Kind, outcome_of, trouble_of
from bot.slack.health import SlackHealth
from bot.slack.message import Message
from engine.clock import Clock
from engine.models import DeliveryKind, Method, Outcome, Page, Sent

log = structlog.get_logger(__name__)

PAGES: Final = frozenset({DeliveryKind.PAGE, DeliveryKind.RESPONDER})
# Why the whole channel: a policy that names a channel as a level wants somebody, anybody, to come.
CHANNEL_MENTION: Final = "<!channel>"


class SlackTransport:
    methods: Final = frozenset({Method.SLACK, Method.CHANNEL})
    provider: Final = "slack"

    def __init__(self, client: SlackClient, health: SlackHealth, clock: Clock) -> None:
        self._client = client
        self._health = health
        self._clock = clock

    async def send(self, page: Page) -> Outcome:
        try:
            placed = await self._send(page)
        except Exception as error:  # every failure is an outcome with a reason
            trouble = trouble_of(error)
            self._health.failed(trouble)
            log.warning("slack.not_sent", delivery=page.id, code=trouble.code, kind=trouble.kind.value)
            return outcome_of(trouble, self._clock.now())
        self._health.works()
        detail = {"channel_id": placed.channel_id, "ts": placed.ts}
        return Sent(f"{placed.channel_id}:{placed.ts}", self.provider, detail)

    async def close(self) -> None:
        await self._client.close()

    async def _send(self, page: Page) -> Placed:
        channel = await self._channel(page)
        message, plain = self._messages(page)
        if "replaces" in page.body:
            return await self._change(page, channel, message, plain)
        if page.attempt > 1:
            found, certain = await self._sent_before(channel, page.id)
            if found is not None:
                return found
            if not certain:
                message, plain = message.prefixed("(repeat)"), plain.prefixed("(repeat)")
        return await self._client.post(
            channel,
            message,
            plain=plain,
            thread_ts=page.body.get("thread_ts"),
            broadcast=_calls_channel(page),
            metadata=delivery_metadata(page.id),
        )

    async def _change(self, page: Page, channel: str, message: Message, plain: Message) -> Placed:
        """Let an earlier message say this; one that is not there any more needs no change."""
        place, _, ts = str(page.body.get("at") or "").partition(":")
        at = Placed(place, ts) if ts else None
        if at is None:
            at = await self._client.find_sent(channel, delivery_metadata(int(page.body["replaces"])))
        if at is None:
            return Placed(channel, "")
        try:
            await self._client.update(at, message, plain=plain)
        except SlackApiError as error:
            if trouble_of(error).kind is not Kind.GONE:
                raise
        return at

    async def _channel(self, page: Page) -> str:
        """A person's id becomes their channel of direct messages; anything else is a channel."""
        if page.address[:1] in {"U", "W"}:
            return await self._client.direct(page.address)
        return str(page.body.get("channel_id") or page.address)

    def _messages(self, page: Page) -> tuple[Message, Message]:
        """The message and its plain form."""
        view = page.incident
        if view is None or page.kind not in PAGES:
            text = notices.of_page(page)
            return text, Message(text.text)
        if _calls_channel(page):
            call = notices.call_for_anybody(view, CHANNEL_MENTION)
            return call, Message(call.text)
        mention = CHANNEL_MENTION if page.method is Method.CHANNEL else ""
        card, plain = blocks.card(view, mention=mention), blocks.plain(view)
        if page.kind is DeliveryKind.RESPONDER:
            lead = notices.asked_to_help(view)
            return card.prefixed(lead), plain.prefixed(lead)
        return card, plain

    async def _sent_before(self, channel: str, delivery_id: int) -> tuple[Placed | None, bool]:
        """Where an earlier attempt put it, if it did; and whether that can be told at all."""
        try:
            return await self._client.find_sent(channel, delivery_metadata(delivery_id)), True
        except Exception as error:  # not knowing is an answer; the page must go out
            log.info("slack.history_unreadable", delivery=delivery_id, code=trouble_of(error).code)
            return None, False


def _calls_channel(page: Page) -> bool:
    """A page for the channel in which the card stands already: a second card would soon be stale.

    Why broadcast: a mention inside a thread calls nobody.
    """
    return page.kind is DeliveryKind.PAGE and page.incident is not None and "thread_ts" in page.body
