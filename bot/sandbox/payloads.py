"""The payloads that Slack sends when a person does something, field for field.

Only builds them; giving out the trigger ids and response URLs in them is the hands' work.
"""

from __future__ import annotations

from bot.sandbox.content import as_slack
from bot.sandbox.state import Channel, Json, Message, User, View, Workspace

TOKEN = "sandbox"  # noqa: S105  # the deprecated verification token, which proves nothing


def slash(
    space: Workspace, user: User, channel: Channel, command: str, text: str, *, trigger: str, response: str
) -> Json:
    name = "directmessage" if channel.is_im else "privategroup" if channel.private else channel.name
    return {
        "token": TOKEN,
        "team_id": space.team.id,
        "team_domain": space.team.domain,
        "channel_id": channel.id,
        "channel_name": name,
        "user_id": user.id,
        "user_name": user.name,
        "command": command,
        "text": text,
        "api_app_id": space.team.app_id,
        "is_enterprise_install": "false",
        "response_url": response,
        "trigger_id": trigger,
    }


def _common(space: Workspace, kind: str, user: User) -> Json:
    person = {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team_id}
    return {
        "type": kind,
        "user": person,
        "api_app_id": space.team.app_id,
        "token": TOKEN,
        "team": {"id": space.team.id, "domain": space.team.domain},
        "enterprise": None,
        "is_enterprise_install": False,
    }


def message_actions(
    space: Workspace, user: User, message: Message, action: Json, *, trigger: str, response: str
) -> Json:
    """`block_actions` of a message; Slack leaves the message itself out where it is ephemeral."""
    channel = space.channels[message.channel]
    container = {
        "type": "message",
        "message_ts": message.ts,
        "channel_id": channel.id,
        "is_ephemeral": message.ephemeral_to is not None,
    }
    if message.thread_ts:
        container["thread_ts"] = message.thread_ts
    shown = {"message": as_slack(space, message)} if message.ephemeral_to is None else {}
    return {
        **_common(space, "block_actions", user),
        "container": container,
        "trigger_id": trigger,
        "channel": {"id": channel.id, "name": "directmessage" if channel.is_im else channel.name},
        **shown,
        "state": {"values": {}},
        "response_url": response,
        "actions": [action],
    }


def view_actions(space: Workspace, user: User, view: View, action: Json, *, trigger: str) -> Json:
    return {
        **_common(space, "block_actions", user),
        "container": {"type": "view", "view_id": view.id},
        "trigger_id": trigger,
        "view": view.body,
        "actions": [action],
    }


def view_submission(space: Workspace, user: User, view: View, *, trigger: str) -> Json:
    common = _common(space, "view_submission", user)
    return {**common, "trigger_id": trigger, "view": view.body, "response_urls": []}


def view_closed(space: Workspace, user: User, view: View, *, cleared: bool) -> Json:
    return {**_common(space, "view_closed", user), "view": view.body, "is_cleared": cleared}


def global_shortcut(space: Workspace, user: User, callback_id: str, *, trigger: str) -> Json:
    common = _common(space, "shortcut", user)
    return {**common, "callback_id": callback_id, "trigger_id": trigger, "action_ts": space.new_ts()}


def message_shortcut(
    space: Workspace, user: User, callback_id: str, message: Message, *, trigger: str, response: str
) -> Json:
    channel = space.channels[message.channel]
    return {
        **_common(space, "message_action", user),
        "callback_id": callback_id,
        "trigger_id": trigger,
        "action_ts": space.new_ts(),
        "message_ts": message.ts,
        "channel": {"id": channel.id, "name": "directmessage" if channel.is_im else channel.name},
        "message": as_slack(space, message),
        "response_url": response,
    }


def suggestion(space: Workspace, user: User, view: View, block_id: str, action_id: str, typed: str) -> Json:
    return {
        **_common(space, "block_suggestion", user),
        "container": {"type": "view", "view_id": view.id},
        "view": view.body,
        "block_id": block_id,
        "action_id": action_id,
        "value": typed,
    }
