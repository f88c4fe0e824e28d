"""The Web API as Midwatch uses it: one session, five seconds a call, no retries of its own.

Never decides what an error means (see `errors`), and never calls Slack twice for one message,
except once more in plain words when Slack refuses the blocks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.slack.errors import FaultyMessage, Kind, trouble_of
from bot.slack.lint import builder_url, lint_message
from bot.slack.message import Message

log = structlog.get_logger(__name__)
T = TypeVar("T")

TIMEOUT: Final = timedelta(seconds=5)
DELIVERY: Final = "midwatch_delivery"
CARD: Final = "midwatch_card"
HISTORY: Final = 50  # messages looked through for one that may have been sent already
PAGES: Final = 10  # of channels looked through for a name
_LOCAL: Final = {"127.0.0.1", "localhost", "::1"}


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a message stands: what chat.update needs. `channel_id` is never a person's id."""

    channel_id: str
    ts: str


class UnknownChannel(Exception):
    """No channel of this name is listed, so its history cannot be read."""


class SlackClient:
    """The session is made at the first call, inside the loop that uses it."""

    def __init__(self, token: str, base_url: str = AsyncWebClient.BASE_URL) -> None:
        # Why no retry handlers: the default one posts again when the connection dies after the
        # request was read, and a page would stand there twice. Retries belong to the delivery.
        self.web = AsyncWebClient(
            token=token, base_url=base_url, timeout=int(TIMEOUT.total_seconds()), retry_handlers=[]
        )
        if urlsplit(base_url).hostname in _LOCAL:
            self.web.proxy = None  # the library takes HTTP_PROXY for this machine too
        self._direct: dict[str, str] = {}
        self._ids: dict[str, str] = {}  # of channels given by name, as the answers to posts say them

    async def call(self, request: Awaitable[T]) -> T:
        """Await one request of `web`, at most five seconds."""
        self.session()
        async with asyncio.timeout(TIMEOUT.total_seconds()):
            return await request

    def session(self) -> aiohttp.ClientSession:
        if self.web.session is None or self.web.session.closed:
            timeout = aiohttp.ClientTimeout(total=TIMEOUT.total_seconds())
            self.web.session = aiohttp.ClientSession(timeout=timeout)
        return self.web.session

    async def post(
        self,
        channel: str,
        message: Message,
        *,
        plain: Message | None = None,
        thread_ts: str | None = None,
        broadcast: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> Placed:
        """Post, joining a public channel first if need be; `plain` is sent if the blocks are refused."""

        async def send(content: Message) -> AsyncSlackResponse:
            return await self.call(
                self.web.chat_postMessage(
                    channel=channel,
                    thread_ts=thread_ts,
                    reply_broadcast=broadcast or None,
                    metadata=dict(metadata) if metadata else None,
                    parse="none",
                    link_names=False,
                    unfurl_links=False,
                    unfurl_media=False,
                    **content.payload(),
                )
            )

        answer = await self._joined(channel, lambda: _or_plainly(send, message, plain))
        placed = Placed(str(answer["channel"]), str(answer["ts"]))
        if not _is_id(channel):
            self._ids[channel] = placed.channel_id
        return placed

    async def _joined(
        self, channel: str, send: Callable[[], Awaitable[AsyncSlackResponse]]
    ) -> AsyncSlackResponse:
        """Send; when only members may, join and send again."""
        try:
            return await send()
        except SlackApiError as error:
            if trouble_of(error).code != "not_in_channel":
                raise
        await self.join(channel)
        return await send()

    async def update(self, at: Placed, message: Message, *, plain: Message | None = None) -> None:
        async def send(content: Message) -> AsyncSlackResponse:
            return await self.call(
                self.web.chat_update(
                    channel=at.channel_id, ts=at.ts, parse="none", link_names=False, **content.payload()
                )
            )

        await _or_plainly(send, message, plain)

    async def whisper(self, channel: str, user: str, message: Message, thread_ts: str | None = None) -> None:
        """Show a message to one person only."""
        await self.call(
            self.web.chat_postEphemeral(
                channel=channel, user=user, thread_ts=thread_ts, parse="none", **message.payload()
            )
        )

    async def open_view(self, trigger_id: str, view: Mapping[str, Any]) -> str:
        """Open a modal; its id."""
        answer = await self.call(self.web.views_open(trigger_id=trigger_id, view=dict(view)))
        return str(answer["view"]["id"])

    async def update_view(self, view_id: str, view: Mapping[str, Any], expected: str = "") -> None:
        """Show something else in a modal; with `expected` only if it is still the one of that hash."""
        await self.call(self.web.views_update(view_id=view_id, view=dict(view), hash=expected or None))

    async def respond(self, response_url: str, message: Message, *, replace: bool = False) -> None:
        """Answer a command or a click afterwards; works where the bot cannot post.

        With `replace` it takes the place of the message that was clicked.
        """
        body = {"response_type": "ephemeral", "replace_original": replace, **message.payload()}
        async with asyncio.timeout(TIMEOUT.total_seconds()):
            async with self.session().post(response_url, json=body, proxy=self.web.proxy) as answer:
                answer.raise_for_status()

    async def direct(self, user: str) -> str:
        """The id of the channel of direct messages with a person."""
        if user not in self._direct:
            answer = await self.call(self.web.conversations_open(users=[user]))
            self._direct[user] = str(answer["channel"]["id"])
        return self._direct[user]

    async def tell(self, user: str, message: Message) -> None:
        """Say something to one person by direct message."""
        await self.post(await self.direct(user), message)

    async def join(self, channel: str) -> None:
        """Join a public channel, found by its id or its name."""
        channel_id = channel if _is_id(channel) else await self._find_channel(channel.lstrip("#"))
        if channel_id:
            await self.call(self.web.conversations_join(channel=channel_id))

    async def _find_channel(self, name: str, types: str = "public_channel") -> str | None:
        cursor = ""
        for _ in range(PAGES):
            answer = await self.call(
                self.web.conversations_list(
                    limit=1000, exclude_archived=True, cursor=cursor or None, types=types
                )
            )
            for channel in answer["channels"]:
                if channel.get("name") == name:
                    return str(channel["id"])
            cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                break
        return None

    async def find_sent(self, channel: str, metadata: Mapping[str, Any]) -> Placed | None:
        """The newest message that carries this metadata, among the latest in the channel."""
        channel_id = await self.channel_id(channel)
        answer = await self.call(
            self.web.conversations_history(channel=channel_id, include_all_metadata=True, limit=HISTORY)
        )
        for message in answer["messages"]:
            carried = message.get("metadata") or {}
            if all(carried.get(name) == value for name, value in metadata.items()):
                return Placed(channel_id, str(message["ts"]))
        return None

    async def channel_id(self, channel: str) -> str:
        """Slack posts to a name, and reads by an id only."""
        if _is_id(channel):
            return channel
        if channel not in self._ids:
            found = await self._find_channel(channel.lstrip("#"), "public_channel,private_channel")
            if found is None:
                raise UnknownChannel
            self._ids[channel] = found
        return self._ids[channel]

    async def user(self, user_id: str) -> Mapping[str, Any]:
        answer = await self.call(self.web.users_info(user=user_id))
        user: Mapping[str, Any] = answer["user"]
        return user

    async def do_not_disturb(self, user_id: str) -> Mapping[str, Any]:
        """dnd.info: when Slack is silent for them."""
        answer = await self.call(self.web.dnd_info(user=user_id))
        said: Mapping[str, Any] = answer.data if isinstance(answer.data, dict) else {}
        return said

    async def close(self) -> None:
        if self.web.session is not None:
            await self.web.session.close()


async def _or_plainly(send: Any, message: Message, plain: Message | None) -> AsyncSlackResponse:
    """Send; when it is refused for its form, send `plain` instead, once."""
    try:
        faults = lint_message(message)
        if faults and plain is not None:
            log.error("slack.message_faulty", faults=faults[:5], look=builder_url(message.blocks)[:500])
            raise FaultyMessage
        answer: AsyncSlackResponse = await send(message)
    except Exception as error:
        if plain is None or trouble_of(error).kind is not Kind.FORMAT:
            raise
        log.warning("slack.sent_plainly", code=trouble_of(error).code)
        answer = await send(plain)
    return answer


def delivery_metadata(delivery_id: int) -> dict[str, Any]:
    return {"event_type": DELIVERY, "event_payload": {"delivery_id": delivery_id}}


def card_metadata(card_id: int) -> dict[str, Any]:
    return {"event_type": CARD, "event_payload": {"card_id": card_id}}


def _is_id(channel: str) -> bool:
    return channel[:1] in {"C", "G", "D"} and channel.isalnum() and channel.isupper()
