"""SMS or calls by a second company, by its apprise URL: for when the first one is down.

Apprise gives no receipt, so a page is handed over, never delivered. What was sent by it cannot be replied
to where it came from: the text names the number that takes replies. Never logs a URL.
"""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import Final

from engine.models import Method, Outcome, Page, Rejected, Retry
from engine.notify import render, speech
from engine.notify.apprise_url import TIMEOUT, Words, hand_over, is_known, keeps, scheme

TO: Final = "{to}"  # where a number goes in the URL, without the plus
NUMBER: Final = re.compile(r"\+[1-9]\d{6,14}")


class SecondPhone:
    """`url` is like vonage://key:secret@from/{to}; `answer_to` is the number that we hear of replies by."""

    def __init__(
        self, method: Method, url: str, *, answer_to: str | None = None, timeout: timedelta = TIMEOUT
    ) -> None:
        self.methods = frozenset({method})
        self.provider = f"second {scheme(url)}"  # it may be the first one's company, by another account
        self._url = url
        self._answer_to = answer_to
        self._timeout = timeout

    async def send(self, page: Page) -> Outcome:
        if not NUMBER.fullmatch(page.address):
            return Rejected("not a telephone number")
        number = page.address.removeprefix("+")
        url = self._url.replace(TO, number)
        # Why no Rejected: neither is a fault of the number, and the first company may do it.
        if not await asyncio.to_thread(is_known, url):
            return Retry("the second company's URL is none that apprise knows", down=True)
        if not await asyncio.to_thread(keeps, url, number):
            return Retry("the second company takes no number like this", unsent=True)
        return await hand_over([url], Words("", self._words(page)), self.provider, self._timeout)

    async def close(self) -> None:
        """Nothing stays open between pages."""

    def _words(self, page: Page) -> str:
        if Method.VOICE in self.methods:
            return speech.spoken(page, f"Text ACK to {self._answer_to}." if self._answer_to else "")
        return render.sms(page, answer_to=self._answer_to, replies=False)
