"""Messages that are no cards: thread lines, notices, ops alarms, as text.

Never sends. Text from elsewhere is escaped here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bot.slack import escape
from bot.slack.blocks import headline
from bot.slack.message import Block, Message, actions, button, note, section
from engine.models import DeliveryKind, IncidentView, Page

TEXT_MAX: Final = 2500  # with the line that names the incident it still fits a section
SIGNS: Final = {DeliveryKind.OPS: "🚨 ", DeliveryKind.NOTICE: "", DeliveryKind.VERIFICATION: "🔑 "}


def of_page(page: Page) -> Message:
    """What a delivery that is no page says; about an incident it names it, unless it stands in its thread.

    It may mention people by their ids, and have buttons.
    """
    text = escape.text(page.text or str(page.body.get("text", "")), TEXT_MAX)
    sign = SIGNS.get(page.kind, "")
    if page.incident is not None and not page.body.get("thread"):
        text = f"{text}\n{headline(page.incident)}" if text else headline(page.incident)
    mentions = [escape.mention(str(one)) for one in page.body.get("mentions") or ()]
    said = " ".join([*filter(None, mentions), f"{sign}{text or 'Midwatch'}"])
    buttons = page.body.get("buttons")
    return Message(said, (section(said), _row(buttons))) if buttons else note(said)


def _row(buttons: Sequence[Mapping[str, Any]]) -> Block:
    made = [button(one["do"], one["label"], one["value"], one.get("style")) for one in buttons]
    return actions("notice", made)


def call_for_anybody(view: IncidentView, mention: str) -> Message:
    """A line under the card of a channel that a policy pages."""
    return note(f"{mention} {headline(view)}: somebody is needed, the card above has the buttons.")


def asked_to_help(view: IncidentView) -> str:
    return f"🙋 You are asked to help with #{view.number}:"


def broken_channel(channel: str, code: str, view: IncidentView | None) -> str:
    """For the ops channel: no card can stand there, and what to do about it."""
    about = f" for #{view.number}" if view else ""
    remedy = {
        "not_in_channel": "invite @Midwatch to it",
        "is_archived": "unarchive it, or give the service another channel in midwatch.yaml",
        "channel_not_found": "check its name in midwatch.yaml, and invite @Midwatch if it is private",
    }.get(code, "give the service another channel in midwatch.yaml")
    return f"No card can be shown in {channel}{about} ({code}): {remedy}. People are still paged."
