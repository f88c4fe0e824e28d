"""The chat.* methods: posting, changing and deleting messages as Slack lets a bot do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.sandbox.call import Call, SlackError
from bot.sandbox.content import Content, as_slack, content_of
from bot.sandbox.state import Channel, Json, Message

if TYPE_CHECKING:
    from bot.sandbox.world import World


def channel_for_post(world: World, call: Call) -> Channel:
    """Where a message goes: by channel id or name, or by a person's id to their direct messages."""
    name = call.text("channel")
    if name in world.space.users:
        return _direct(world, name)
    channel = None if name.startswith("@") else world.space.find_channel(name)
    if channel is None or (channel.private and world.space.team.bot_user not in channel.members):
        raise SlackError("channel_not_found")
    if channel.archived:
        raise SlackError("is_archived")
    outside = world.space.team.bot_user not in channel.members
    if outside and "chat:write.public" not in world.options.scopes:
        raise SlackError("not_in_channel")
    return channel


def _direct(world: World, user_id: str) -> Channel:
    user = world.space.users[user_id]
    if user.kind == "bot":
        raise SlackError("cannot_dm_bot")
    if user.deleted:
        raise SlackError("channel_not_found")
    return world.space.direct(user_id)


def post_message(world: World, call: Call) -> Json:
    channel = channel_for_post(world, call)
    content = content_of(call.args)
    metadata = _metadata(call)
    message = write(
        world,
        channel,
        content,
        thread_ts=thread_of(channel, call),
        metadata=metadata,
        username=call.text("username") or "Midwatch",
    )
    world.events.message(message)
    return {"channel": channel.id, "ts": message.ts, "message": as_slack(world.space, message)}


def write(
    world: World,
    channel: Channel,
    content: Content,
    *,
    thread_ts: str | None = None,
    metadata: Json | None = None,
    ephemeral_to: str | None = None,
    username: str = "Midwatch",
) -> Message:
    """Put a message of the bot into a channel."""
    message = Message(
        world.space.new_ts(),
        channel.id,
        world.space.team.bot_user,
        content.text,
        username=username,
        bot=True,
        blocks=content.blocks,
        attachments=content.attachments,
        thread_ts=thread_ts,
        ephemeral_to=ephemeral_to,
        metadata=metadata,
    )
    return world.space.add(message)


def thread_of(channel: Channel, call: Call) -> str | None:
    thread_ts = call.text("thread_ts")
    if not thread_ts:
        return None
    root = channel.messages.get(thread_ts)
    if root is None or root.ephemeral_to is not None:
        raise SlackError("thread_not_found")
    return root.thread_ts or thread_ts


def _metadata(call: Call) -> Json | None:
    metadata = call.json("metadata", "invalid_metadata_format")
    if metadata is None or metadata == {}:
        return None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("event_type"), str):
        raise SlackError("invalid_metadata_schema")
    if not isinstance(metadata.get("event_payload"), dict):
        raise SlackError("invalid_metadata_schema")
    return metadata


def message_of_bot(world: World, call: Call, refusal: str) -> Message:
    """The bot's own message at `channel` and `ts`; only an id names the channel here."""
    channel = world.space.channels.get(call.text("channel"))
    if channel is None:
        raise SlackError("channel_not_found")
    message = channel.messages.get(call.text("ts"))
    if message is None or message.deleted or message.ephemeral_to is not None:
        raise SlackError("message_not_found")
    if not message.bot:
        raise SlackError(refusal)
    if channel.archived:
        raise SlackError("is_archived")
    return message


def update(world: World, call: Call) -> Json:
    message = message_of_bot(world, call, "cant_update_message")
    content = content_of(call.args)
    before = as_slack(world.space, message)
    change(world, message, content, keep_attachments=not call.has("attachments"))
    if call.has("metadata"):
        message.metadata = _metadata(call)
    world.events.message_changed(message, before)
    shown = as_slack(world.space, message)
    return {"channel": message.channel, "ts": message.ts, "text": message.text, "message": shown}


def change(world: World, message: Message, content: Content, *, keep_attachments: bool) -> None:
    """Show other content. Text without blocks takes the blocks away, as in Slack."""
    message.text, message.blocks = content.text, content.blocks
    if not keep_attachments:
        message.attachments = content.attachments
    message.edited = True
    world.space.touched(message)


def delete(world: World, call: Call) -> Json:
    message = message_of_bot(world, call, "cant_delete_message")
    before = as_slack(world.space, message)
    world.space.remove(message)
    world.events.message_deleted(message, before)
    return {"channel": message.channel, "ts": message.ts}


def post_ephemeral(world: World, call: Call) -> Json:
    channel = channel_for_post(world, call)
    content = content_of(call.args)
    user = call.text("user")
    if user not in world.space.users or user not in channel.members:
        raise SlackError("user_not_in_channel")
    thread_ts = thread_of(channel, call)
    message = write(world, channel, content, thread_ts=thread_ts, ephemeral_to=user)
    return {"message_ts": message.ts}


def get_permalink(world: World, call: Call) -> Json:
    channel = world.space.channels.get(call.text("channel"))
    if channel is None:
        raise SlackError("channel_not_found")
    message = channel.messages.get(call.text("message_ts"))
    if message is None or message.deleted:
        raise SlackError("message_not_found")
    fragment = f"{channel.id}/{message.ts}"
    return {"channel": channel.id, "permalink": f"{world.base_url}/#{fragment}"}
