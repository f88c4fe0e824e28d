"""What an edit changes: the stretches in which other people are on call than before.

Never compares how two schedules are written, only who is on call by them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from engine.schedule.model import Schedule, Shift
from engine.schedule.resolve import shifts


@dataclass(frozen=True, slots=True)
class Changed:
    """A stretch as long as can be: `before` were on call, and now `after` are."""

    start: datetime
    end: datetime
    before: tuple[str, ...]
    after: tuple[str, ...]


def diff(before: Schedule, after: Schedule, a: datetime, b: datetime) -> list[Changed]:
    """The changed shifts from `a` to `b`, in order; none where both answer the same."""
    found: list[Changed] = []
    for start, end, old, new in _side_by_side(shifts(before, a, b), shifts(after, a, b)):
        if old == new:
            continue
        last = found[-1] if found else None
        if last is not None and (last.end, last.before, last.after) == (start, old, new):
            found[-1] = Changed(last.start, end, old, new)
        else:
            found.append(Changed(start, end, old, new))
    return found


def _side_by_side(
    before: list[Shift], after: list[Shift]
) -> Iterator[tuple[datetime, datetime, tuple[str, ...], tuple[str, ...]]]:
    """Both tile the same stretch: cut each where the other has a bound."""
    left, right = iter(before), iter(after)
    old, new = next(left, None), next(right, None)
    while old is not None and new is not None:
        end = min(old.end, new.end)
        yield max(old.start, new.start), end, old.people, new.people
        if old.end == end:
            old = next(left, None)
        if new.end == end:
            new = next(right, None)
