"""What was due before this process began: the one before may have died of it, and so may this one.

Such timers are counted while they are worked, and whoever was counted before is worked alone, the
least suspected first. Never works a timer itself, and costs nothing once all of them are worked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.db import Database, Tx, Writer, waiting_at_most
from engine.errors import Unavailable
from engine.models import Timer
from engine.store import timers

log = structlog.get_logger(__name__)

AT_WORK: Final = timedelta(seconds=1)  # what came due so shortly before the start, nobody was working


@dataclass(frozen=True, slots=True)
class Sorted:
    """Due timers by how much they are suspected."""

    usual: tuple[Timer, ...]  # came due in our time
    left: tuple[Timer, ...]  # were due before it, and nobody has died of them yet
    suspects: tuple[Timer, ...]  # somebody had begun to work them, and never ended


class UncleanEnd:
    """Counts timers while they are worked: a count that stays is a process that died of it."""

    def __init__(self, database: Database, began_at: datetime) -> None:
        self._database = database
        self._before = began_at - AT_WORK
        self._counted: set[int] = set()  # by us, and not taken back yet
        self._held: Counter[int] = Counter()  # how often they could not be worked

    def is_old(self, timer: Timer) -> bool:
        return timer.due_at < self._before

    def tries(self, timer: Timer, attempt: int) -> int:
        """How often it failed and ended those who worked it; what we are at does not count."""
        return attempt - (timer.id in self._counted)

    def sort(self, due: Sequence[Timer]) -> Sorted:
        old = [timer for timer in due if self.is_old(timer)]
        if not old:
            return Sorted(tuple(due), (), ())
        suspects = [timer for timer in old if self.tries(timer, timer.attempt) > 0]
        return Sorted(
            usual=tuple(timer for timer in due if not self.is_old(timer)),
            left=tuple(timer for timer in old if self.tries(timer, timer.attempt) <= 0),
            suspects=tuple(sorted(suspects, key=self._suspicion)),
        )

    def _suspicion(self, timer: Timer) -> tuple[int, int, datetime, int]:
        # Why `held` first: few are taken at once, and those that somebody holds must not be always these.
        return self._held[timer.id], timer.attempt, timer.due_at, timer.id

    async def count(self, begun: Sequence[Timer], wait: timedelta | None = None) -> list[Timer]:
        """Commit, before they are worked, that they are: whoever finds them again knows what happened.

        Returns those that are ours to work. Whose incident is held by another is not among them and
        not counted: it may be held for as long as many processes begin and end.
        """
        new = [timer for timer in begun if timer.id not in self._counted]
        if new:
            self._counted |= await self._database.write(
                lambda tx: _count(tx, new, wait), rank=Writer.ESCALATE
            )
        ours = [timer for timer in begun if timer.id in self._counted]
        self._held.update(timer.id for timer in begun if timer.id not in self._counted)
        return ours

    def put_last(self, timer: Timer) -> None:
        """It could not be worked now: the next suspects go first."""
        self._held[timer.id] += 1

    async def survived(self, begun: Iterable[Timer], finished: Iterable[Timer] = ()) -> None:
        """This process did not die of them: take back what was counted and is not finished."""
        gone = {timer.id for timer in finished}
        self._counted -= gone
        for one in gone:
            self._held.pop(one, None)
        left = {timer.id for timer in begun} & self._counted
        if not left:
            return
        try:
            self._counted -= await self._database.write(
                lambda tx: timers.uncount_attempts(tx, left), rank=Writer.ESCALATE
            )
        except Unavailable:
            log.warning("escalate.still_counted", timers=len(left))  # taken back when they are worked next


async def _count(tx: Tx, begun: Sequence[Timer], wait: timedelta | None) -> set[int]:
    subjects = [timer.subject_id for timer in begun]
    held = {*subjects}
    if wait is None:
        held = await timers.held_subjects(tx, subjects, skip_locked=True)
    else:
        async with waiting_at_most(tx, wait):
            held = await timers.held_subjects(tx, subjects, skip_locked=False)
    return await timers.count_attempts(tx, [timer for timer in begun if timer.subject_id not in held])
