"""Is this process alive, and can it accept and commit? And the numbers, for Prometheus.

An outage of Slack or of the phone company is a detail here and never makes the process unready:
taking it out of service then would be the second outage.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

import structlog
from aiohttp import web
from prometheus_client.aiohttp import make_aiohttp_handler

from bot.web.parts import WebParts
from bot.web.problems import RETRY_AFTER, Problem
from engine import metrics
from engine.clock import monotonic
from engine.db import Tx, Writer, upsert
from engine.errors import Unavailable
from engine.models import ORG
from engine.schema import counters

log = structlog.get_logger(__name__)

READY_WITHIN: Final = timedelta(seconds=2)
SHARED_FOR: Final = timedelta(seconds=1)  # a flood of probes must not become a flood of commits
COUNTER: Final = "readiness"


class Health:
    def __init__(self, parts: WebParts) -> None:
        self._parts = parts
        self._probe: asyncio.Task[bool] | None = None
        self._begun = 0.0

    def mount(self, app: web.Application) -> None:
        app.router.add_get("/healthz", self.alive)
        app.router.add_get("/readyz", self.ready)
        app.router.add_get("/metrics", make_aiohttp_handler(metrics.REGISTRY))

    async def alive(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok", **await self._parts.health()})

    async def ready(self, request: web.Request) -> web.Response:
        if (reason := self._parts.unready()) is not None:
            raise Problem(503, reason, headers=RETRY_AFTER)
        probe = self._current_probe()
        # Why not a timeout around it: a unit of work runs to its end, whoever stops waiting.
        done, _ = await asyncio.wait({probe}, timeout=READY_WITHIN.total_seconds())
        if not done or not probe.result():
            raise Problem(503, "The database does not take commits right now.", headers=RETRY_AFTER)
        return web.json_response({"status": "ready"})

    def _current_probe(self) -> asyncio.Task[bool]:
        """One commit at a time, shared by everybody who asks within a second."""
        old = self._probe
        if old is None or (old.done() and monotonic() - self._begun > SHARED_FOR.total_seconds()):
            self._begun = monotonic()
            self._probe = old = asyncio.create_task(self._commits())
        return old

    async def _commits(self) -> bool:
        try:
            await self._parts.database.write(_touch, rank=Writer.INGEST)
        except Unavailable:
            return False
        except Exception as error:  # whatever it is, ingest would meet it too
            log.error("ready.failed", error=type(error).__name__)  # noqa: TRY400  # the text may hold the URL
            return False
        return True


async def _touch(tx: Tx) -> None:
    """Write a row that means nothing: reading alone does not find a full disk or a standby."""
    insert = upsert(tx, counters).values(org_id=ORG, name=COUNTER, value=1)
    one_more = {"value": counters.c.value + insert.excluded.value}
    await tx.execute(insert.on_conflict_do_update(index_elements=["org_id", "name"], set_=one_more))
