"""Any service that apprise knows, by its URL: fallback chains and push.

Apprise gives no reference and no receipt, so a page is handed over, never delivered. Never logs a
URL: it holds the service's key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from apprise import Apprise, AppriseAsset, AppriseResultStatus, NotifyFormat, NotifyType

from engine.models import DeliveryKind, Method, Outcome, Page, Rejected, Retry, Sent, Urgency
from engine.notify import render
from engine.notify.render import ASKS_FOR_AN_ANSWER, LOUD, LinkOf, no_link

TIMEOUT: Final = timedelta(seconds=9)
CONNECT_SECONDS: Final = 3
READ_SECONDS: Final = 5  # its sends run in threads, which only their own timeouts can end


class AppriseTransport:
    """A new Apprise for each page: a loaded one keeps most services 5.5 s apart."""

    methods: Final = frozenset({Method.URL, Method.PUSH})
    provider: Final = "apprise"

    def __init__(self, *, link_of: LinkOf = no_link, timeout: timedelta = TIMEOUT) -> None:
        self._link_of = link_of
        self._timeout = timeout

    async def send(self, page: Page) -> Outcome:
        urls = page.address.split() or [""]
        short = page.method is Method.PUSH
        body = render.push(page, self._link_of(page)) if short else render.text(page)
        words = Words(render.subject(page), body, loud=_loud(page))
        return await hand_over(urls, words, self.provider, self._timeout)

    async def close(self) -> None:
        """Nothing stays open between pages."""


@dataclass(frozen=True, slots=True)
class Words:
    """`loud`: it is about something that somebody must answer now."""

    title: str
    body: str
    loud: bool = True


def _loud(page: Page) -> bool:
    if page.kind is DeliveryKind.OPS or page.body.get(LOUD):
        return True
    high = page.incident is None or page.incident.urgency is Urgency.HIGH
    return high and page.kind in ASKS_FOR_AN_ANSWER


async def hand_over(urls: Sequence[str], words: Words, provider: str, timeout: timedelta) -> Outcome:
    """Give these words to each URL once."""
    _hush()
    # Templates stay off: braces in an alert are text.
    asset = AppriseAsset(allow_templates=False, app_id="Midwatch", app_desc="Midwatch")
    service = Apprise(asset=asset)
    # In a thread: the first time, apprise loads all its services, and that takes seconds.
    for url in urls:
        if not await asyncio.to_thread(_load, service, url, words):
            return Rejected("not a URL that apprise knows")
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            status = await _notify(service, words)
    except TimeoutError:
        return Retry(f"{scheme(urls[0])} did not answer in time")
    if status is AppriseResultStatus.SUCCESS:
        return Sent("", provider)
    return Retry(f"{scheme(urls[0])} did not take it ({status.name.lower()})")


def _load(service: Apprise, url: str, words: Words) -> bool:
    return bool(service.add(with_timeouts(with_priority(url) if words.loud else url)))


def is_known(url: str) -> bool:
    """Does apprise know such a URL?"""
    _hush()
    return Apprise.instantiate(url, suppress_exceptions=True) is not None


def keeps(url: str, number: str) -> bool:
    """Does the service behind the URL send to this number? One of an unusual length is dropped by many,
    which then send to a number of their own."""
    service = Apprise.instantiate(url, suppress_exceptions=True)
    targets = getattr(service, "targets", None)  # only services for several numbers have them
    return not isinstance(targets, list) or any(number in str(target) for target in targets)


def _hush() -> None:
    # Apprise writes the URLs it fails at into its log, and urllib3 every path at debug level: keys both.
    for name in ("apprise", "urllib3.connectionpool"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def with_timeouts(url: str) -> str:
    """The URL with apprise's connect and read timeouts, unless it sets its own."""
    for name, seconds in (("cto", CONNECT_SECONDS), ("rto", READ_SECONDS)):
        if f"{name}=" not in url.partition("?")[2]:
            url += f"{'&' if '?' in url else '?'}{name}={seconds}"
    return url


def with_priority(url: str) -> str:
    """The URL with a high priority, where the service has priorities and the URL names none: a telephone
    that is silent for the rest shows it all the same."""
    if "priority=" in url.partition("?")[2]:
        return url
    loaded = Apprise.instantiate(url, suppress_exceptions=True)
    known = loaded is not None and "priority" in loaded.template_args
    return f"{url}{'&' if '?' in url else '?'}priority=high" if known else url


async def _notify(service: Apprise, words: Words) -> AppriseResultStatus:
    kind = NotifyType.FAILURE if words.loud else NotifyType.INFO
    result = await service.async_notify(
        title=words.title, body=words.body, notify_type=kind, body_format=NotifyFormat.TEXT
    )
    with result:
        return result.status


def scheme(url: str) -> str:
    """The kind of service, which is all of its URL that may be said."""
    kind = url.partition("://")[0]
    return kind if kind.isalnum() else "the service"
