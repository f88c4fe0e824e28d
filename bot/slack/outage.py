"""The loop that tells the others how this process sees Slack, and learns from them how it is.

Never decides: `engine.outage` does. Looks each second, and at once when something happened here.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

import structlog

from bot.slack.health import SlackHealth
from bot.slack.probe import Probe
from engine.clock import monotonic
from engine.errors import Unavailable
from engine.notify.slack_watch import SlackWatch
from engine.outage import Standing
from engine.pager.rehearsal import Rehearsals

log = structlog.get_logger(__name__)

EVERY_S: Final = 1.0


class OutageLoop:
    """`once` is one look; `start` begins them."""

    def __init__(
        self,
        watch: SlackWatch,
        health: SlackHealth,
        probe: Probe,
        rehearsals: Rehearsals,
        *,
        every_s: float = EVERY_S,
    ) -> None:
        self._watch = watch
        self._health = health
        self._probe = probe
        self._rehearsals = rehearsals
        self._every_s = every_s
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._probing: asyncio.Task[None] | None = None
        self.ticked_at = monotonic()

    def start(self) -> None:
        self._health.on_news = self._news.set
        self._task = asyncio.create_task(self._run(), name="slack-outage")

    async def stop(self) -> None:
        tasks = [task for task in (self._task, self._probing) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def once(self) -> None:
        standing = await self._watch.look(self._health.report(self._watch.owner))
        if self._health.hears:
            await self._rehearsals.finish_due()
        # Why by itself: a Slack that takes our call and never answers must not keep us from looking.
        if self._health.hears and (self._probing is None or self._probing.done()):
            self._probing = asyncio.create_task(self._probed(standing), name="slack-probe")

    async def _probed(self, standing: Standing) -> None:
        try:
            await self._probe.when_quiet(standing)
        except Unavailable:  # likewise
            pass
        except Exception:
            log.exception("slack.probe_raised")

    async def _run(self) -> None:
        while True:
            self._news.clear()
            try:
                await self.once()
            except Unavailable:  # the database is away; that is said elsewhere
                pass
            except Exception:
                log.exception("slack.outage_loop_failed")
            else:
                self.ticked_at = monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_s):
                    await self._news.wait()
