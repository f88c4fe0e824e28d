"""What the work of fate timers came to, and how they are shared out to be worked.

Pure: never reads the clock or the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from engine.models import Timer

BATCH: Final = 250  # incidents locked at once, for about a tenth of a second


@dataclass(frozen=True, slots=True)
class Worked:
    """What one transaction did: timers it finished, and those whose incident somebody else held."""

    finished: tuple[Timer, ...] = ()
    skipped: tuple[Timer, ...] = ()


Ended = Worked | BaseException  # why exceptions as values: no batch is left running by itself


def failures(ended: Sequence[Ended]) -> list[BaseException]:
    return [one for one in ended if isinstance(one, BaseException)]


def together(ended: Sequence[Ended]) -> Worked:
    """All that was finished and skipped by those that did not fail."""
    worked = [one for one in ended if isinstance(one, Worked)]
    return Worked(
        tuple(timer for one in worked for timer in one.finished),
        tuple(timer for one in worked for timer in one.skipped),
    )


def batches(due: Sequence[Timer]) -> list[Sequence[Timer]]:
    return [due[start : start + BATCH] for start in range(0, len(due), BATCH)]


def one_each(due: Sequence[Timer]) -> list[Timer]:
    """One timer for each incident, the earliest: the next one is judged by what this one changes.
    It stays due."""
    first: dict[int, Timer] = {}
    for timer in sorted(due, key=lambda one: (one.due_at, one.id)):
        first.setdefault(timer.subject_id, timer)
    return list(first.values())
