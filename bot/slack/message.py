"""A Slack message as a value, and the few blocks that Midwatch builds messages from.

Never escapes: what goes in is already safe text from `escape`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """`text` is what notifications show; with blocks in an attachment it is also the first line."""

    text: str
    blocks: tuple[Block, ...] = ()
    attachments: tuple[Block, ...] = ()

    def payload(self) -> dict[str, Any]:
        """Arguments of a post or an update. Both lists always: an update keeps what is not named."""
        return {"text": self.text, "blocks": list(self.blocks), "attachments": list(self.attachments)}

    def prefixed(self, words: str) -> Message:
        """With these words first, wherever they are read."""
        return replace(self, text=f"{words} {self.text}", blocks=_prefixed(words, self.blocks))


def _prefixed(words: str, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Where there are blocks Slack shows those and not the text; an attachment leaves the text visible."""
    if not blocks:
        return blocks
    text = blocks[0].get("text")
    if blocks[0]["type"] != "section" or text is None:
        return (section(words), *blocks)
    return ({**blocks[0], "text": {**text, "text": f"{words} {text['text']}"}}, *blocks[1:])


def mrkdwn(text: str) -> Block:
    return {"type": "mrkdwn", "text": text}


def plain_text(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": True}


def section(text: str, *, block_id: str | None = None) -> Block:
    block: Block = {"type": "section", "text": mrkdwn(text)}
    if block_id:
        block["block_id"] = block_id
    return block


def context(*texts: str) -> Block:
    return {"type": "context", "elements": [mrkdwn(text) for text in texts]}


def actions(block_id: str, elements: Sequence[Block]) -> Block:
    return {"type": "actions", "block_id": block_id, "elements": list(elements)}


def button(action_id: str, label: str, value: str, style: str | None = None) -> Block:
    block: Block = {"type": "button", "action_id": action_id, "text": plain_text(label), "value": value}
    if style:
        block["style"] = style
    return block


def option(label: str, value: str) -> Block:
    return {"text": plain_text(label), "value": value}


def overflow(action_id: str, options: Sequence[Block]) -> Block:
    return {"type": "overflow", "action_id": action_id, "options": list(options)}


def note(text: str) -> Message:
    """A message of one paragraph."""
    return Message(text, (section(text),))
