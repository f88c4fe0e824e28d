"""Deliveries that were due before this process began: the one before may have died of beginning them.

Such timers are counted before they are begun; with the commit of the attempt the count is taken back,
so one that stays is a process that died. Never begins anything itself, and costs nothing once they are
all begun. See `engine.pager.unclean` for the timers that move fates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

import structlog

from engine.db import Database, Writer
from engine.errors import Unavailable
from engine.models import Timer
from engine.pager.unclean import AT_WORK, Sorted
from engine.store import attempts, timers

log = structlog.get_logger(__name__)


class Suspects:
    """Sorts due timers by how often they ended whoever began them."""

    def __init__(self, database: Database, began_at: datetime) -> None:
        self._database = database
        self._before = began_at - AT_WORK
        self._counted: set[int] = set()  # by us, and not taken back yet
        self._held: Counter[int] = Counter()  # how often they could not be begun

    def counted(self, batch: Iterable[Timer]) -> list[int]:
        return [timer.id for timer in batch if timer.id in self._counted]

    async def sort(self, due: Sequence[Timer]) -> tuple[Sorted, dict[int, int]]:
        """Second: how often each suspect failed, or ended a process."""
        old = [timer for timer in due if timer.due_at < self._before]
        if not old:
            return Sorted(tuple(due), (), ()), {}
        async with self._database.look() as tx:
            begun = await attempts.how_many(tx, [timer.subject_id for timer in old])
        # Why `held` first below: few are begun at once, and those of somebody else must not be always these.
        # Why less those begun: each of these raised the number too, and nobody died of it.
        ours = self._counted
        tries = {t.id: t.attempt - begun.get(t.subject_id, 0) - (t.id in ours) for t in old}
        suspects = [timer for timer in old if tries[timer.id] > 0]
        return (
            Sorted(
                usual=tuple(timer for timer in due if timer.id not in tries),
                left=tuple(timer for timer in old if tries[timer.id] <= 0),
                suspects=tuple(
                    sorted(suspects, key=lambda one: (self._held[one.id], tries[one.id], one.due_at, one.id))
                ),
            ),
            tries,
        )

    async def count(self, batch: Sequence[Timer], now: datetime) -> list[Timer]:
        """Commit, before they are begun, that they are. Returns those that nobody else is at."""
        new = [timer for timer in batch if timer.id not in self._counted]
        if new:
            self._counted |= await self._database.write(
                lambda tx: timers.count_attempts(tx, new, now), rank=Writer.ESCALATE
            )
        return [timer for timer in batch if timer.id in self._counted]

    def put_last(self, timer: Timer) -> None:
        """It could not be begun now: the next suspects go first."""
        self._held[timer.id] += 1

    def begun(self, ids: Iterable[int]) -> None:
        """The transaction that took their count back has committed."""
        self._counted -= {*ids}

    async def survived(self, batch: Sequence[Timer], now: datetime) -> None:
        """They were not begun, and this process lives: nothing speaks against them."""
        left = self.counted(batch)
        if not left:
            return
        try:
            await self._database.write(
                lambda tx: timers.uncount_attempts(tx, left, now), rank=Writer.ESCALATE
            )
            self.begun(left)
        except Unavailable:
            log.warning("deliver.still_counted", timers=len(left))  # taken back when they are begun
