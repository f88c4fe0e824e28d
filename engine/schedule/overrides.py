"""What overrides make of who is on call: replace everybody, cover one person, add one.

Never looks at layers: it is given the stretches that they make.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from engine.schedule.layers import Stretch
from engine.schedule.model import OverrideKind, ScheduleOverride


def apply_overrides(overrides: Sequence[ScheduleOverride], base: list[Stretch]) -> list[Stretch]:
    """The stretches, cut where overrides begin and end, with the people that those put on call."""
    a, b = base[0].start, base[-1].end
    overrides = [o for o in overrides if o.start < b and o.end > a and o.start < o.end]
    if not overrides:
        return base
    bounds = {bound.astimezone(UTC) for o in overrides for bound in (max(a, o.start), min(b, o.end))}
    found: list[Stretch] = []
    index = 0
    for start, end in pairwise(sorted({a, b, *bounds})):
        running = [o for o in overrides if o.start <= start < o.end]
        while base[index].end <= start:
            index += 1
        cut = _cut(base, index, start, end)
        found += (_stand_in(running, stretch) for stretch in cut) if running else cut
    return found


def _cut(base: list[Stretch], index: int, start: datetime, end: datetime) -> Iterator[Stretch]:
    """The stretches from `start` to `end`; the one at `index` is the first of them."""
    while index < len(base) and base[index].start < end:
        stretch = base[index]
        if start <= stretch.start and stretch.end <= end:
            yield stretch
        else:
            a, b = max(start, stretch.start), min(end, stretch.end)
            yield Stretch(a, b, stretch.people, stretch.layer, stretch.turn)
        index += 1


def _stand_in(running: Sequence[ScheduleOverride], base: Stretch) -> Stretch:
    """The stretch with whom the overrides put on call, and those that had a part in it, in their order."""
    people = set(base.people)
    effective: list[ScheduleOverride] = []
    # Why: of two covers of the same person only the later-created one counts, or both would be
    # asked to stand in and the earlier one would win.
    latest_cover = {o.covers: o for o in running if o.kind is OverrideKind.COVER}
    for override in running:
        if override.kind is OverrideKind.REPLACE_ALL:
            people = {override.user}
            effective = [override]
        elif override.kind is OverrideKind.ADD:
            people.add(override.user)
            effective.append(override)
        elif override.covers in people and latest_cover[override.covers] is override:
            people.remove(override.covers)
            people.add(override.user)
            effective.append(override)
    return Stretch(base.start, base.end, tuple(sorted(people)), base.layer, base.turn, tuple(effective))
