"""What overrides make of who is on call: replace everybody, cover one person, add one.

Never looks at layers: it is given the people they put on call.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from engine.schedule.model import OverrideKind, ScheduleOverride


def apply_overrides(
    overrides: Sequence[ScheduleOverride], base: Sequence[str], t: datetime
) -> tuple[set[str], list[ScheduleOverride]]:
    """The people on call, and the overrides that had a part in it, in the order of their creation."""
    people = set(base)
    effective: list[ScheduleOverride] = []
    running = [override for override in overrides if override.start <= t < override.end]
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
    return people, effective
