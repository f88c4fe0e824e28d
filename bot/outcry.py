"""An alarm that needs neither the database nor a worker: straight to the ops channel and the fallback URLs.

Never retries by itself: whoever calls has tried everything that is kept in rows, and calls again. Says
the same cause once per quarter of an hour, for this process; one that nobody heard once per minute.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import structlog

from engine.clock import monotonic
from engine.models import DeliveryKind, Method, Page, Sent
from engine.notify.transport import Transport, Transports
from engine.pager.alarm import ONCE_PER

log = structlog.get_logger(__name__)

WITHIN_S: Final = 15.0
AGAIN: Final = timedelta(minutes=1)  # after an outcry that nobody heard


class Outcry:
    def __init__(self, transports: Transports, ops_channel: str | None, urls: Sequence[str]) -> None:
        self._transports = transports
        self._to = [(Method.CHANNEL, ops_channel)] if ops_channel else []
        self._to += [(Method.URL, url) for url in urls]
        self._again_at: dict[str, float] = {}

    async def say(self, cause: str, text: str) -> bool:
        """False when it was said lately. Never raises."""
        if monotonic() < self._again_at.get(cause, -math.inf):
            return False
        self._wait(cause, ONCE_PER)
        log.error("ops.outcry", cause=cause, text=text)
        told = await asyncio.gather(*(self._tell(method, address, text) for method, address in self._to))
        if self._to and not any(told):
            self._wait(cause, AGAIN)
        return True

    def _wait(self, cause: str, pause: timedelta) -> None:
        self._again_at[cause] = monotonic() + pause.total_seconds()

    async def _tell(self, method: Method, address: str, text: str) -> bool:
        for transport in self._transports.for_method(method):
            if await _heard(transport, Page(0, 1, DeliveryKind.OPS, method, address, text=text)):
                return True
        log.error("ops.outcry_unheard", method=method.value)
        return False


async def _heard(transport: Transport, page: Page) -> bool:
    try:
        async with asyncio.timeout(WITHIN_S):
            return isinstance(await transport.send(page), Sent)
    except Exception as error:
        log.warning("ops.outcry_failed", provider=transport.provider, error=type(error).__name__)
        return False
