"""Midwatch's own numbers as a contact card, sent to whoever asks, so that a silent phone lets them through.

Never sends it where others read, and never fails because Slack takes no file: then the numbers are said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog

from bot import vcard
from bot.slack import escape
from bot.slack.answers import paragraphs
from bot.slack.client import SlackClient
from bot.slack.errors import trouble_of
from bot.slack.identity import Asker
from bot.slack.message import Message, note
from bot.slack.uploads import upload

log = structlog.get_logger(__name__)

NONE: Final = "This install has no telephone number, so there is none to save."


class NumbersCard:
    def __init__(self, client: SlackClient, numbers: Sequence[str]) -> None:
        self._client = client
        self.numbers = tuple(numbers)

    async def send(self, asker: Asker) -> Message:
        if not self.numbers:
            return note(NONE)
        return paragraphs([await self._sent(asker), vcard.IPHONE, vcard.ANDROID])

    async def _sent(self, asker: Asker) -> str:
        try:
            await upload(
                self._client,
                await self._client.direct(asker.user_id),
                vcard.vcard(self.numbers),
                filename=vcard.FILENAME,
                title=vcard.NAME,
                alt="A contact card with the numbers that Midwatch calls and texts from",
            )
        except Exception as error:  # what it holds can be said as well
            log.info("slack.card_not_sent", code=trouble_of(error).code)
            said = ", ".join(escape.code(one, 40) for one in self.numbers)
            return (
                f"📇 Slack did not take the contact card. Midwatch calls and texts from {said}; "
                "`midwatch vcard` writes the card where it runs."
            )
        return f"📇 I sent you a contact card with {len(self.numbers)} number(s) by direct message."
