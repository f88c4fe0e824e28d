"""Which schedules a name can mean: its own, else those that begin with it, else those it pages.

Pure. Never chooses among several: whoever asked is asked back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from engine.directory import Directory, NamedSchedule, TargetKind
from engine.errors import NotFound


def by_name(directory: Directory) -> list[NamedSchedule]:
    return sorted(directory.schedules.values(), key=lambda one: one.name.casefold())


def meant(name: str | None, directory: Directory) -> Sequence[NamedSchedule]:
    """Those of this name; else those whose name begins with it, as a word; else those that a policy or a
    service of this name pages, in the order of its levels. In any case; without a name, all."""
    known = by_name(directory)
    if name is None:
        return known
    wanted = name.casefold()
    same = [one for one in known if one.name.casefold() == wanted]
    begin = [one for one in known if re.match(rf"{re.escape(wanted)}[\W_]", one.name.casefold())]
    return same or begin or _paged_by(wanted, directory)


def numbered(schedule_id: int, directory: Directory) -> NamedSchedule:
    """The schedule of this id, where one was chosen already."""
    if schedule_id not in directory.schedules:
        raise NotFound("There is no such schedule here.")
    return directory.schedules[schedule_id]


def listed(schedules: Iterable[NamedSchedule]) -> str:
    """Their names, for whoever must choose."""
    return ", ".join(one.name for one in schedules)


def _paged_by(wanted: str, directory: Directory) -> list[NamedSchedule]:
    used = {one.policy_id for one in directory.services.values() if one.name.casefold() == wanted}
    levels = (
        level
        for policy in directory.policies.values()
        if policy.id in used or policy.name.casefold() == wanted
        for level in policy.levels
    )
    targets = (target for level in levels for target in level.targets if target.kind is TargetKind.SCHEDULE)
    ids = dict.fromkeys(int(target.ref) for target in targets)
    return [directory.schedules[one] for one in ids if one in directory.schedules]
