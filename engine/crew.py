"""Which workers live on this database, and which of them this one is, so that each takes its share first.

Never an owner of anything: who is wrongly counted, or no more, costs others a moment, and no timer.
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.clock import Clock, monotonic
from engine.db import Database, Tx, Writer
from engine.errors import Unavailable
from engine.known import Share
from engine.models import ORG
from engine.store import hosts
from engine.store.hosts import WORKER

log = structlog.get_logger(__name__)

MEET_EVERY: Final = timedelta(seconds=5)
GONE: Final = timedelta(seconds=7)  # not seen for so long: dead, or too busy to take its share
FORGOTTEN: Final = timedelta(hours=1)  # its row too, whatever its host's clock says


class Crew:
    """`share` is ours; it is all timers until we have met the others."""

    def __init__(self, database: Database, clock: Clock, owner: str) -> None:
        self._database = database
        self._clock = clock
        self._owner = owner
        self._stopping = asyncio.Event()
        self._living: dict[str, datetime] = {}  # when each was last seen, by its own clock
        self._left: dict[str, datetime] = {}  # when those were seen who left their share
        self.share = Share()
        self.ticked_at = monotonic()

    async def run(self) -> None:
        """Until stopped: say that we live, and count who else does."""
        while not self._stopping.is_set():
            try:
                await self.meet()
                self.ticked_at = monotonic()
            except Unavailable:  # nobody works without the database, and the count is an old one meanwhile
                pass
            except Exception:
                log.exception("crew.failed")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(MEET_EVERY.total_seconds()):
                    await self._stopping.wait()

    async def meet(self) -> Share:
        now = self._clock.now()

        async def unit(tx: Tx) -> dict[str, datetime]:
            await hosts.see(tx, ORG, self._owner, now, kind=WORKER)
            seen = await hosts.seen(tx, ORG, kind=WORKER)
            if old := [one for one, at in seen.items() if abs(now - at) > FORGOTTEN]:
                await hosts.forget(tx, ORG, old, kind=WORKER)
            return {one: at for one, at in seen.items() if abs(now - at) <= GONE}

        self._living = await self._database.write(unit, rank=Writer.CARD)
        return self._count()

    def miss(self, index: int) -> None:
        """Nobody takes this share, and we are not behind with ours: who has it is gone until seen anew."""
        missing = self._counted()[index]
        self._left[missing] = self._living[missing]
        log.info("crew.missed", worker=missing)
        self._count()

    def _counted(self) -> list[str]:
        return sorted(one for one, at in self._living.items() if self._left.get(one) != at)

    def _count(self) -> Share:
        living = self._counted()
        share = Share(living.index(self._owner), len(living))
        if share != self.share:
            log.info("crew.share", index=share.index, of=share.of)
        self.share = share
        return share

    def stop(self) -> None:
        self._stopping.set()

    async def leave(self) -> None:
        """After the last count of ours: the others take our share from their next one on."""
        try:
            await self._database.write(lambda tx: hosts.forget(tx, ORG, [self._owner], kind=WORKER))
        except Unavailable:  # then they miss us a little later
            pass
        except Exception:  # whoever stops has messages in flight to record yet
            log.exception("crew.failed")
