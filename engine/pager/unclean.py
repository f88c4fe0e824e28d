"""What was due before this process began: the one before may have died of it, and so may this one.

Such timers are counted before they are worked, and whoever was counted before is worked alone, the
least suspected first. Never works a timer itself, and costs nothing once all of them are worked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from engine.db import Database, Writer
from engine.models import Timer
from engine.store import timers

AT_WORK: Final = timedelta(seconds=1)  # what came due so shortly before the start, nobody was working


@dataclass(frozen=True, slots=True)
class Sorted:
    """Due timers by how much they are suspected."""

    usual: tuple[Timer, ...]  # came due in our time
    left: tuple[Timer, ...]  # were due before it, and nobody has died of them yet
    suspects: tuple[Timer, ...]  # somebody had begun to work them, and never ended


class UncleanEnd:
    """Keeps which timers this process has counted: each once, however often the database fails us."""

    def __init__(self, database: Database, began_at: datetime) -> None:
        self._database = database
        self._before = began_at - AT_WORK
        self._counted: set[int] = set()

    def sort(self, due: Sequence[Timer]) -> Sorted:
        old = [timer for timer in due if timer.due_at < self._before]
        if not old:
            return Sorted(tuple(due), (), ())
        suspects = [timer for timer in old if timer.attempt > 0]
        return Sorted(
            usual=tuple(timer for timer in due if timer.due_at >= self._before),
            left=tuple(timer for timer in old if timer.attempt == 0),
            suspects=tuple(sorted(suspects, key=lambda timer: (timer.attempt, timer.due_at, timer.id))),
        )

    async def count(self, begun: Sequence[Timer]) -> None:
        """Commit, before they are worked, that they are: whoever finds them again knows what happened."""
        new = [timer.id for timer in begun if timer.id not in self._counted]
        if new:
            await self._database.write(lambda tx: timers.count_attempts(tx, new), rank=Writer.ESCALATE)
            self._counted.update(new)
