"""The Events API: what happened in the workspace, told to Midwatch, again if it did not listen.

Sends only what the app has subscribed to. Retries at once, after 1 minute and after 5, in
sandbox time.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from bot.sandbox.content import as_slack
from bot.sandbox.state import Json, Message
from bot.sandbox.wire import EVENT, Parcel

if TYPE_CHECKING:
    from bot.sandbox.world import World

RETRY_DELAYS = (timedelta(), timedelta(minutes=1), timedelta(minutes=5))


class EventFeed:
    def __init__(self, world: World) -> None:
        self._world = world

    def emit(self, event: Json, subscription: str | None = None) -> None:
        """Tell Midwatch, unless it does not want to know."""
        if (subscription or event["type"]) not in self._world.options.events:
            return
        payload = self._callback(event)
        self._world.errands.run(self._send(payload, 0, ""))

    def message(self, message: Message) -> None:
        """A message was posted: told where the app reads messages, and wherever it is mentioned."""
        team, channel = self._world.space.team, self._world.space.channels[message.channel]
        shown = {**as_slack(self._world.space, message), "channel": message.channel, "event_ts": message.ts}
        if message.bot is False and f"<@{team.bot_user}>" in message.text and not channel.is_im:
            self.emit({**shown, "type": "app_mention"})
        kind = "im" if channel.is_im else "group" if channel.private else "channel"
        subscription = "message.im" if channel.is_im else f"message.{kind}s"
        self.emit({**shown, "channel_type": kind}, subscription)

    def message_changed(self, message: Message, before: Json) -> None:
        self._altered(message, "message_changed", before, {"message": as_slack(self._world.space, message)})

    def message_deleted(self, message: Message, before: Json) -> None:
        self._altered(message, "message_deleted", before, {"deleted_ts": message.ts})

    def _altered(self, message: Message, subtype: str, before: Json, extra: Json) -> None:
        ts = self._world.space.new_ts()
        channel = self._world.space.channels[message.channel]
        kind = "im" if channel.is_im else "group" if channel.private else "channel"
        event = {
            "type": "message",
            "subtype": subtype,
            "hidden": True,
            "channel": message.channel,
            "channel_type": kind,
            "previous_message": before,
            "ts": ts,
            "event_ts": ts,
            **extra,
        }
        self.emit(event, "message.im" if channel.is_im else f"message.{kind}s")

    def _callback(self, event: Json) -> Json:
        team = self._world.space.team
        return {
            "token": "sandbox",
            "team_id": team.id,
            "api_app_id": team.app_id,
            "event": event,
            "type": "event_callback",
            "event_id": self._world.space.new_id("Ev"),
            "event_time": int(self._world.clock.now().timestamp()),
            "authorizations": [
                {"team_id": team.id, "user_id": team.bot_user, "is_bot": True, "enterprise_id": None}
            ],
            "is_ext_shared_channel": False,
        }

    async def _send(self, payload: Json, attempt: int, reason: str) -> None:
        parcel = Parcel(EVENT, payload["event"]["type"], payload, attempt, reason)
        reply = await self._world.wire.deliver(parcel)
        if reply.ok or reply.no_retry or attempt >= len(RETRY_DELAYS):
            return
        again = partial(self._send, payload, attempt + 1, reply.retry_reason)
        due_at = self._world.clock.now() + RETRY_DELAYS[attempt]
        self._world.agenda.at(due_at, lambda: self._world.errands.run(again()))
