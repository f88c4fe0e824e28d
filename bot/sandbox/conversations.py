"""The conversations.* and reactions.* methods: channels, their members, history and topic."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bot.sandbox.call import Call, SlackError
from bot.sandbox.content import as_slack
from bot.sandbox.state import Channel, Json, Message

if TYPE_CHECKING:
    from bot.sandbox.world import World

PRIVATE_TOPICS = "groups:write.topic"


def channel_of(world: World, call: Call) -> Channel:
    channel = world.space.channels.get(call.text("channel"))
    if channel is None:
        raise SlackError("channel_not_found")
    return channel


def _joined(world: World, call: Call) -> Channel:
    channel = channel_of(world, call)
    if world.space.team.bot_user not in channel.members:
        raise SlackError("channel_not_found" if channel.private else "not_in_channel")
    return channel


def as_conversation(world: World, channel: Channel) -> Json:
    shown: Json = {
        "id": channel.id,
        "created": channel.created,
        "is_archived": channel.archived,
        "is_im": channel.is_im,
        "context_team_id": world.space.team.id,
        "updated": channel.created * 1000,
    }
    if channel.is_im:
        return shown | {"user": channel.im_user, "is_user_deleted": False, "priority": 0}
    topic = {"value": channel.topic, "creator": world.space.team.bot_user, "last_set": 0}
    return shown | {
        "name": channel.name,
        "name_normalized": channel.name,
        "is_channel": not channel.private,
        "is_group": channel.private,
        "is_private": channel.private,
        "is_mpim": False,
        "is_general": channel.name == "general",
        "is_member": world.space.team.bot_user in channel.members,
        "num_members": len(channel.members),
        "topic": topic,
        "purpose": {"value": "", "creator": "", "last_set": 0},
    }


def page(call: Call, items: Sequence[Any], default: int) -> tuple[list[Any], Json]:
    """One page of the items and the `response_metadata` that leads to the next."""
    start = 0
    if cursor := call.text("cursor"):
        try:
            start = int(base64.b64decode(cursor, validate=True))
        except ValueError:
            raise SlackError("invalid_cursor") from None
    limit = min(max(1, call.number("limit", default)), 1000)
    end = start + limit
    following = base64.b64encode(str(end).encode()).decode() if end < len(items) else ""
    return list(items[start:end]), {"response_metadata": {"next_cursor": following}}


def open_(world: World, call: Call) -> Json:
    if call.text("channel"):
        return {"channel": {"id": channel_of(world, call).id}}
    users = [u for u in call.text("users").split(",") if u]
    if not users:
        raise SlackError("users_list_not_supplied")
    if len(users) > 1:
        raise SlackError("method_not_supported_for_channel_type")
    user = world.space.users.get(users[0])
    if user is None:
        raise SlackError("user_not_found")
    if user.kind == "bot":
        raise SlackError("cannot_dm_bot")
    if user.deleted:
        raise SlackError("user_disabled")
    channel = world.space.direct(user.id)
    shown = as_conversation(world, channel) if call.flag("return_im") else {"id": channel.id}
    return {"channel": shown, "no_op": True, "already_open": True}


def list_(world: World, call: Call) -> Json:
    kinds = (call.text("types") or "public_channel").split(",")
    found = [
        channel
        for channel in world.space.channels.values()
        if _kind(channel) in kinds and not (channel.archived and call.flag("exclude_archived"))
    ]
    shown, metadata = page(call, found, 100)
    return {"channels": [as_conversation(world, c) for c in shown], **metadata}


def _kind(channel: Channel) -> str:
    return "im" if channel.is_im else "private_channel" if channel.private else "public_channel"


def info(world: World, call: Call) -> Json:
    return {"channel": as_conversation(world, channel_of(world, call))}


def members(world: World, call: Call) -> Json:
    shown, metadata = page(call, sorted(channel_of(world, call).members), 100)
    return {"members": shown, **metadata}


def join(world: World, call: Call) -> Json:
    channel = channel_of(world, call)
    if channel.is_im or channel.private:
        raise SlackError("method_not_supported_for_channel_type")
    if channel.archived:
        raise SlackError("is_archived")
    bot = world.space.team.bot_user
    if bot not in channel.members:
        channel.members.add(bot)
        world.space.state_changed()
        world.events.emit(
            {"type": "member_joined_channel", "user": bot, "channel": channel.id, "team": world.space.team.id}
        )
    return {"channel": as_conversation(world, channel)}


def set_topic(world: World, call: Call) -> Json:
    channel = _joined(world, call)
    if channel.is_im:
        raise SlackError("method_not_supported_for_channel_type")
    if channel.archived:
        raise SlackError("is_archived")
    if channel.private and PRIVATE_TOPICS not in world.options.scopes:
        provided = ",".join(sorted(world.options.scopes))
        raise SlackError("missing_scope", needed=PRIVATE_TOPICS, provided=provided)
    topic = call.text("topic")
    if len(topic) > 250:
        raise SlackError("too_long")
    if topic != channel.topic:
        channel.topic = topic
        bot = world.space.team.bot_user
        text = f"set the channel topic: {topic}"
        world.space.add(
            Message(
                world.space.new_ts(),
                channel.id,
                bot,
                text,
                username="Midwatch",
                bot=True,
                subtype="channel_topic",
            )
        )
        world.space.state_changed()
    return {"channel": as_conversation(world, channel)}


def history(world: World, call: Call) -> Json:
    """Newest first, without replies and ephemeral messages; metadata only when asked for."""
    channel = _joined(world, call)
    roots = [
        m
        for m in reversed(channel.messages.values())
        if m.ephemeral_to is None and not m.deleted and m.thread_ts in (None, m.ts) and _between(call, m.ts)
    ]
    shown, metadata = page(call, roots, 100)
    more = bool(metadata["response_metadata"]["next_cursor"])
    return {"messages": [_shown(world, call, m) for m in shown], "has_more": more, **metadata}


def replies(world: World, call: Call) -> Json:
    channel = _joined(world, call)
    root = channel.messages.get(call.text("ts"))
    if root is None or root.ephemeral_to is not None:
        raise SlackError("thread_not_found")
    root = channel.messages[root.thread_ts] if root.thread_ts else root
    found = [root, *(m for m in channel.replies(root.ts) if _between(call, m.ts))]
    shown, metadata = page(call, found, 1000)
    more = bool(metadata["response_metadata"]["next_cursor"])
    return {"messages": [_shown(world, call, m) for m in shown], "has_more": more, **metadata}


def _between(call: Call, ts: str) -> bool:
    at, oldest, latest = float(ts), _bound(call, "oldest"), _bound(call, "latest")
    inclusive = call.flag("inclusive")
    after = oldest is None or at > oldest or (inclusive and at == oldest)
    return after and (latest is None or at < latest or (inclusive and at == latest))


def _bound(call: Call, name: str) -> float | None:
    text = call.text(name)
    try:
        return float(text) if text else None
    except ValueError:
        raise SlackError(f"invalid_ts_{name}") from None


def _shown(world: World, call: Call, message: Message) -> Json:
    shown = as_slack(world.space, message)
    if message.metadata and call.flag("include_all_metadata"):
        shown["metadata"] = message.metadata
    return shown


def _reacted(world: World, call: Call) -> Message:
    message = channel_of(world, call).messages.get(call.text("timestamp"))
    if message is None or message.deleted:
        raise SlackError("message_not_found")
    return message


def add_reaction(world: World, call: Call) -> Json:
    react(world, _reacted(world, call), call.text("name"), world.space.team.bot_user)
    return {}


def react(world: World, message: Message, name: str, user: str) -> None:
    """Put an emoji on a message, in the name of a person or of the bot."""
    if not name:
        raise SlackError("invalid_name")
    users = message.reactions.setdefault(name, [])
    if user in users:
        raise SlackError("already_reacted")
    users.append(user)
    world.space.touched(message)
    _tell_of_reaction(world, "reaction_added", message, name, user)


def _tell_of_reaction(world: World, kind: str, message: Message, name: str, user: str) -> None:
    """Slack tells an app of its own reactions, too; Bolt is what drops them."""
    item = {"type": "message", "channel": message.channel, "ts": message.ts}
    event = {"type": kind, "user": user, "reaction": name, "item_user": message.user, "item": item}
    world.events.emit({**event, "event_ts": world.space.new_ts()})


def remove_reaction(world: World, call: Call) -> Json:
    message = _reacted(world, call)
    name, bot = call.text("name"), world.space.team.bot_user
    users = message.reactions.get(name, [])
    if bot not in users:
        raise SlackError("no_reaction")
    users.remove(bot)
    if not users:
        del message.reactions[name]
    world.space.touched(message)
    _tell_of_reaction(world, "reaction_removed", message, name, bot)
    return {}


def get_reactions(world: World, call: Call) -> Json:
    message = _reacted(world, call)
    return {"type": "message", "channel": message.channel, "message": as_slack(world.space, message)}
