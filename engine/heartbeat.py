"""The dead man's switch: tells somebody outside, each minute, that Midwatch works. Silence is its alarm.

Never tells it while a loop has stopped or a commit fails, and never shows the URL: it is a secret.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import aiohttp
import structlog

from engine import metrics
from engine.db import Database, Writer
from engine.errors import Unavailable
from engine.models import ORG
from engine.pulse import Pulse
from engine.store import counts

log = structlog.get_logger(__name__)

PING_TIMEOUT: Final = timedelta(seconds=5)


class Heartbeat:
    """`ping` is one beat."""

    def __init__(self, database: Database, pulse: Pulse, url: str) -> None:
        self._database = database
        self._pulse = pulse
        self._url = url

    async def ping(self) -> bool:
        """True when the switch has heard it; a redirect is an answer that nobody follows."""
        outcome = await self._beat()
        metrics.heartbeats.labels(outcome).inc()
        return outcome == "heard"

    async def _beat(self) -> str:
        if silent := self._pulse.silent():
            log.error("heartbeat.withheld", silent=silent)
            return "withheld"
        try:
            await self._database.write(lambda tx: counts.touch(tx, ORG, "heartbeat"), rank=Writer.CARD)
        except Unavailable:
            log.error("heartbeat.withheld", silent=["database"])  # noqa: TRY400  # why is in the log already
            return "withheld"
        # Why only the kind of the error: its text holds the URL.
        try:
            heard = await self._heard()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            log.warning("heartbeat.failed", error=type(error).__name__)
            return "failed"
        if not heard:
            log.warning("heartbeat.refused")
        return "heard" if heard else "failed"

    async def _heard(self) -> bool:
        timeout = aiohttp.ClientTimeout(total=PING_TIMEOUT.total_seconds())
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(self._url, allow_redirects=False) as answer,
        ):
            return answer.status < 300
