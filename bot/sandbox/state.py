"""The sandbox workspace: its users, channels, messages and views, and the changes they go through.

Knows nothing of HTTP, limits or events: who may do what is decided before it is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any

from bot.sandbox.changes import Changes
from bot.sandbox.clock import SandboxClock

Json = dict[str, Any]


@dataclass(slots=True)
class User:
    id: str
    name: str
    real_name: str
    tz: str
    team_id: str
    kind: str = "member"  # member, guest, stranger, bot
    email: str = ""
    deleted: bool = False
    admin: bool = False


@dataclass(slots=True)
class Message:
    ts: str
    channel: str
    user: str
    text: str
    username: str = ""
    bot: bool = False
    blocks: list[Json] = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)
    thread_ts: str | None = None
    edited: bool = False
    deleted: bool = False
    ephemeral_to: str | None = None
    metadata: Json | None = None
    reactions: dict[str, list[str]] = field(default_factory=dict)
    subtype: str | None = None
    files: list[Json] = field(default_factory=list)

    def as_json(self) -> Json:
        """What the page and scripts are shown."""
        return {
            "ts": self.ts,
            "thread_ts": self.thread_ts,
            "channel": self.channel,
            "user": self.user,
            "username": self.username,
            "bot": self.bot,
            "text": self.text,
            "blocks": self.blocks,
            "attachments": self.attachments,
            "edited": self.edited,
            "deleted": self.deleted,
            "ephemeral_to": self.ephemeral_to,
            "metadata": self.metadata,
            "subtype": self.subtype,
            "files": self.files,
            "reactions": [{"name": name, "users": users} for name, users in self.reactions.items()],
        }


@dataclass(slots=True)
class Channel:
    id: str
    name: str
    members: set[str] = field(default_factory=set)
    topic: str = ""
    archived: bool = False
    private: bool = False
    im_user: str | None = None
    created: int = 0
    messages: dict[str, Message] = field(default_factory=dict)  # by ts, oldest first
    threads: dict[str, list[Message]] = field(default_factory=dict)  # replies by the ts of their root

    @property
    def is_im(self) -> bool:
        return self.im_user is not None

    def replies(self, root_ts: str) -> list[Message]:
        """The replies in a thread that are there for everybody."""
        return [m for m in self.threads.get(root_ts, ()) if not m.deleted and m.ephemeral_to is None]

    def seen_by(self, user: str | None) -> list[Message]:
        """What stands in the channel for this user; a deleted message only as the root of a thread."""
        return [
            m
            for m in self.messages.values()
            if m.ephemeral_to in (None, user) and (not m.deleted or self.replies(m.ts))
        ]


@dataclass(slots=True)
class View:
    id: str
    user: str
    body: Json  # as the API answers it: with id, hash, state …
    errors: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> Json:
        return {**self.body, "errors": dict(self.errors)}


@dataclass(frozen=True, slots=True)
class Team:
    id: str
    name: str
    domain: str
    bot_user: str
    bot_id: str
    app_id: str


class Workspace:
    def __init__(self, team: Team, clock: SandboxClock, changes: Changes) -> None:
        self.team = team
        self.users: dict[str, User] = {}
        self.channels: dict[str, Channel] = {}
        self.groups: dict[str, Json] = {}
        self.paid = True  # a free plan has no user groups
        self.only_admins_edit_groups = False  # and an app is no admin
        self.modals: dict[str, list[View]] = {}
        self.homes: dict[str, View] = {}
        self.quiet: dict[str, tuple[datetime, datetime]] = {}  # by person, the next Do Not Disturb
        self._clock = clock
        self._changes = changes
        self._last_ts = 0
        self._numbers = count(1)

    def new_ts(self) -> str:
        """The time in microseconds, as Slack writes it; never the same one twice."""
        self._last_ts = max(self._last_ts + 1, int(self._clock.now().timestamp() * 1_000_000))
        return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    def new_id(self, prefix: str) -> str:
        return f"{prefix}0{next(self._numbers):08d}"

    def find_user(self, name: str) -> User | None:
        """By id, or by name with or without "@"."""
        bare = name.removeprefix("@").lower()
        return self.users.get(name) or next((u for u in self.users.values() if u.name.lower() == bare), None)

    def find_channel(self, name: str) -> Channel | None:
        """By id, by name with or without "#", or a person's direct messages by "@name" or their id."""
        if name in self.channels:
            return self.channels[name]
        bare = name.removeprefix("#").lower()
        by_name = (c for c in self.channels.values() if not c.is_im and c.name.lower() == bare)
        if (channel := next(by_name, None)) is not None:
            return channel
        user = self.find_user(name) if name.startswith("@") or name in self.users else None
        return self.direct(user.id) if user and user.id != self.team.bot_user else None

    def direct(self, user: str) -> Channel:
        """The direct messages between the bot and this user, opened if need be."""
        channel_id = "D" + user[1:]
        if channel_id not in self.channels:
            members = {user, self.team.bot_user}
            created = int(self._clock.now().timestamp())
            self.channels[channel_id] = Channel(
                channel_id, self.users[user].name, members, im_user=user, created=created
            )
            self._changes.mark("state")
        return self.channels[channel_id]

    def add(self, message: Message) -> Message:
        channel = self.channels[message.channel]
        channel.messages[message.ts] = message
        if message.thread_ts and message.thread_ts != message.ts:
            channel.threads.setdefault(message.thread_ts, []).append(message)
        self.touched(message)
        return message

    def touched(self, message: Message) -> None:
        self._changes.mark(f"messages:{message.channel}")

    def remove(self, message: Message) -> None:
        message.deleted = True
        message.text, message.blocks, message.attachments = "This message was deleted.", [], []
        message.files = []
        self.touched(message)

    def views_changed(self, user: str) -> None:
        self._changes.mark(f"views:{user}")

    def state_changed(self) -> None:
        self._changes.mark("state")

    def find_view(self, view_id: str | None, external_id: str | None = None) -> View | None:
        """By Slack's id, or by the id that the app gave it."""
        for view in self.all_views():
            if view_id and view.id == view_id:
                return view
            if external_id and view.body.get("external_id") == external_id:
                return view
        return None

    def all_views(self) -> Iterable[View]:
        for stack in self.modals.values():
            yield from stack
        yield from self.homes.values()
