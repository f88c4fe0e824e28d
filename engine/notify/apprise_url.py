"""Any service that apprise knows, by its URL: fallback chains and push.

Apprise gives no reference and no receipt, so a page is handed over, never delivered. Never logs a
URL: it holds the service's key.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Final

from apprise import Apprise, AppriseAsset, AppriseResultStatus, NotifyFormat

from engine.models import Method, Outcome, Page, Rejected, Retry, Sent
from engine.notify import render

TIMEOUT: Final = timedelta(seconds=10)
CONNECT_SECONDS: Final = 3
READ_SECONDS: Final = 5  # its sends run in threads, which only their own timeouts can end


class AppriseTransport:
    """A new Apprise for each page: a loaded one keeps most services 5.5 s apart."""

    methods: Final = frozenset({Method.URL, Method.PUSH})
    provider: Final = "apprise"

    def __init__(self, *, timeout: timedelta = TIMEOUT) -> None:
        self._timeout = timeout.total_seconds()
        # Apprise writes the URLs it fails at into its log, and urllib3 every path at debug level: keys both.
        for name in ("apprise", "urllib3.connectionpool"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)

    async def send(self, page: Page) -> Outcome:
        # Templates stay off: braces in an alert are text.
        asset = AppriseAsset(allow_templates=False, app_id="Midwatch", app_desc="Midwatch")
        service = Apprise(asset=asset)
        # In a thread: the first time, apprise loads all its services, and that takes seconds.
        urls = page.address.split()
        for url in urls or [""]:
            if not await asyncio.to_thread(service.add, with_timeouts(url)):
                return Rejected("not a URL that apprise knows")
        try:
            async with asyncio.timeout(self._timeout):
                status = await _notify(service, page)
        except TimeoutError:
            return Retry(f"{_scheme(page.address)} did not answer in time")
        if status is AppriseResultStatus.SUCCESS:
            return Sent("", self.provider)
        return Retry(f"{_scheme(page.address)} did not take it ({status.name.lower()})")

    async def close(self) -> None:
        """Nothing stays open between pages."""


def with_timeouts(url: str) -> str:
    """The URL with apprise's connect and read timeouts, unless it sets its own."""
    for name, seconds in (("cto", CONNECT_SECONDS), ("rto", READ_SECONDS)):
        if f"{name}=" not in url.partition("?")[2]:
            url += f"{'&' if '?' in url else '?'}{name}={seconds}"
    return url


async def _notify(service: Apprise, page: Page) -> AppriseResultStatus:
    result = await service.async_notify(
        title=render.subject(page), body=render.text(page), body_format=NotifyFormat.TEXT
    )
    with result:
        return result.status


def _scheme(url: str) -> str:
    """The kind of service, which is all of its URL that may be said."""
    scheme = url.partition("://")[0]
    return scheme if scheme.isalnum() else "the service"
