"""An alarm that needs neither the database nor a worker: straight to the ops channel and the fallback URLs.

Never retries: whoever calls has tried everything that is kept in rows. Says the same cause once per
quarter of an hour, for this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog

from engine.clock import monotonic
from engine.models import DeliveryKind, Method, Page, Sent
from engine.notify.transport import Transport, Transports
from engine.pager.alarm import ONCE_PER

log = structlog.get_logger(__name__)

WITHIN_S: Final = 15.0


class Outcry:
    def __init__(self, transports: Transports, ops_channel: str | None, urls: Sequence[str]) -> None:
        self._transports = transports
        self._to = [(Method.CHANNEL, ops_channel)] if ops_channel else []
        self._to += [(Method.URL, url) for url in urls]
        self._said: dict[str, float] = {}

    async def say(self, cause: str, text: str) -> bool:
        """False when it was said lately. Never raises."""
        now = monotonic()
        if now - self._said.get(cause, -ONCE_PER.total_seconds()) < ONCE_PER.total_seconds():
            return False
        self._said[cause] = now
        log.error("ops.outcry", cause=cause, text=text)
        await asyncio.gather(*(self._tell(method, address, text) for method, address in self._to))
        return True

    async def _tell(self, method: Method, address: str, text: str) -> None:
        for transport in self._transports.for_method(method):
            if await _heard(transport, Page(0, 1, DeliveryKind.OPS, method, address, text=text)):
                return
        log.error("ops.outcry_unheard", method=method.value)


async def _heard(transport: Transport, page: Page) -> bool:
    try:
        async with asyncio.timeout(WITHIN_S):
            return isinstance(await transport.send(page), Sent)
    except Exception as error:
        log.warning("ops.outcry_failed", provider=transport.provider, error=type(error).__name__)
        return False
