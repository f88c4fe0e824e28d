"""What a message says: text, blocks and attachments, checked as Slack checks them.

Serves every door a message comes through: the API, an answer to a command, a response URL.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.sandbox.blocklint import MESSAGE_TEXT, lint_message, text_length
from bot.sandbox.call import Call, SlackError, invalid
from bot.sandbox.state import Json, Message, Workspace

LONGEST_TEXT = 40_000
MOST_ATTACHMENTS = 100


@dataclass(frozen=True, slots=True)
class Content:
    text: str
    blocks: list[Json] = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)


def content_of(args: Mapping[str, Any]) -> Content:
    """The content of a call, or SlackError with Slack's word for what is wrong with it."""
    call = Call("", args)
    blocks = call.json("blocks", "invalid_blocks_format") or []
    attachments = call.json("attachments", "invalid_attachments") or []
    text = call.text("text")[:LONGEST_TEXT]
    if not (text.strip() or blocks or attachments):
        raise SlackError("no_text")
    if not isinstance(blocks, list):
        raise SlackError("invalid_blocks_format")
    if errors := lint_message(blocks):
        raise invalid("invalid_blocks", errors)
    _check_attachments(attachments)
    shown = text_length(blocks) + sum(text_length(a.get("blocks") or []) for a in attachments)
    if shown > MESSAGE_TEXT:
        raise SlackError("msg_blocks_too_long")
    return Content(text, named(blocks), [_numbered(a, i) for i, a in enumerate(attachments, 1)])


def _check_attachments(attachments: Any) -> None:
    if not isinstance(attachments, list) or not all(isinstance(a, dict) for a in attachments):
        raise SlackError("invalid_attachments")
    if len(attachments) > MOST_ATTACHMENTS:
        raise SlackError("too_many_attachments")
    for number, attachment in enumerate(attachments):
        blocks = attachment.get("blocks")
        if blocks and (errors := lint_message(blocks, f"/attachments/{number}/blocks")):
            raise invalid("invalid_attachments", errors)


def _numbered(attachment: Json, number: int) -> Json:
    blocks = {"blocks": named(attachment["blocks"])} if attachment.get("blocks") else {}
    return {"id": number, "fallback": "[no preview available]", **attachment, **blocks}


def named(blocks: list[Json]) -> list[Json]:
    """The blocks with the ids that Slack gives where the app gave none."""
    return [_named_block(block) for block in blocks]


def _named_block(block: Json) -> Json:
    filled = {"block_id": secrets.token_hex(3), **block}
    if isinstance(block.get("elements"), list) and block["type"] == "actions":
        filled["elements"] = [_named_element(e) for e in block["elements"]]
    for key in ("element", "accessory"):
        if isinstance(block.get(key), dict):
            filled[key] = _named_element(block[key])
    return filled


def _named_element(element: Json) -> Json:
    return element if element["type"] == "image" else {"action_id": secrets.token_hex(3), **element}


def as_slack(space: Workspace, message: Message) -> Json:
    """The message as Slack's API and events write it."""
    shown: Json = {"type": "message", "user": message.user, "ts": message.ts, "text": message.text}
    if message.bot:
        shown |= {"bot_id": space.team.bot_id, "app_id": space.team.app_id, "team": space.team.id}
    replies = space.channels[message.channel].replies(message.ts)
    if replies:
        shown |= {"thread_ts": message.ts, "reply_count": len(replies), "latest_reply": replies[-1].ts}
    reactions = [
        {"name": name, "users": users, "count": len(users)} for name, users in message.reactions.items()
    ]
    optional = {
        "thread_ts": message.thread_ts,
        "subtype": message.subtype,
        "blocks": message.blocks,
        "attachments": message.attachments,
        "files": message.files,
        "edited": {"user": message.user, "ts": message.ts} if message.edited else None,
        "reactions": reactions,
    }
    return shown | {key: value for key, value in optional.items() if value}


def visible_text(content: Content | Message) -> str:
    """What a person reads: the words of the blocks where there are blocks, else the text."""
    lines = _texts(content.blocks)
    for attachment in content.attachments:
        lines += _texts(attachment.get("blocks") or []) or [str(attachment.get("text") or "")]
    return "\n".join([content.text, *lines] if not content.blocks else lines).strip()


def _texts(part: Any) -> list[str]:
    if isinstance(part, list):
        return [line for item in part for line in _texts(item)]
    if not isinstance(part, dict):
        return []
    if isinstance(part.get("text"), str):
        return [part["text"]]
    return [line for value in part.values() for line in _texts(value)]
