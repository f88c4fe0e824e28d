"""When nobody will be on call, and why: for whoever warns ahead of time.

Never takes a gap for a mistake: hours that nobody covers may be meant. What a change of the clock
takes away hardly is, and can be told apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from engine.schedule.model import Schedule
from engine.schedule.resolve import on_call, shifts
from engine.schedule.skipped import Skipped, skipped_windows
from engine.schedule.walltime import to_instant

_NOBODY: Final = "nobody: "


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch with nobody. `reason` is that of its first instant.

    `skipped` are the windows in it that a change of the clock leaves empty: usually they have somebody.
    """

    start: datetime
    end: datetime
    reason: str
    skipped: tuple[Skipped, ...] = ()


def gaps(schedule: Schedule, a: datetime, b: datetime, names: Mapping[str, str] | None = None) -> list[Gap]:
    """Every stretch between `a` and `b` in which nobody is on call."""
    skipped = [(to_instant(one.opens, schedule.zone), one) for one in skipped_windows(schedule, a, b)]
    found = []
    for shift in shifts(schedule, a, b):
        if not shift.people:
            reason = on_call(schedule, shift.start, names).reason.removeprefix(_NOBODY)
            inside = tuple(one for at, one in skipped if shift.start <= at < shift.end)
            found.append(Gap(shift.start, shift.end, reason, inside))
    return found
