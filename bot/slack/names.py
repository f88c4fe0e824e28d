"""Names that people type and nobody bears: which there are, and which one may have been meant.

Never looks anything up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from bot.slack import escape
from engine.directory import Directory, NamedSchedule, Service, TargetKind
from engine.errors import BadCommand


def no_such(noun: str, name: str, known: Sequence[str]) -> BadCommand:
    near = get_close_matches(name.casefold(), [one.casefold() for one in known], n=1, cutoff=0.5)
    meant = f" Did you mean {escape.code(near[0], 80)}?" if near else ""
    listed = ", ".join(escape.code(one, 60) for one in sorted(known)[:20]) or "none yet"
    return BadCommand(f"I don't know a {noun} {escape.code(name, 60)}.{meant} There are: {listed}.")


def nobody(name: str, people: Sequence[str]) -> BadCommand:
    """Of a person whom Slack knows by another name, or not at all."""
    here = [one for one in people if one.casefold() == name.casefold()]
    if here:
        who = escape.code(f"@{here[0]}", 60)
        return BadCommand(f"Slack made no mention of {who}: choose the person from its list as you type.")
    near = get_close_matches(name.casefold(), [one.casefold() for one in people], n=1, cutoff=0.5)
    meant = f" Did you mean {escape.code(f'@{near[0]}', 80)}?" if near else ""
    listed = ", ".join(escape.code(f"@{one}", 60) for one in sorted(people)[:20]) or "nobody yet"
    return BadCommand(f"Nobody here is called {escape.code(name, 60)}.{meant} Midwatch knows: {listed}.")


def service(name: str, directory: Directory) -> Service:
    """The service of this name, in any case."""
    services = directory.services.values()
    for one in services:
        if one.name.casefold() == name.casefold():
            return one
    raise no_such("service", name, [one.name for one in services])


def schedule(name: str, directory: Directory) -> NamedSchedule:
    """The schedule of this name, in any case."""
    known = directory.schedules.values()
    for one in known:
        if one.name.casefold() == name.casefold():
            return one
    raise no_such("schedule", name, [one.name for one in known])


def schedules(name: str, directory: Directory) -> list[NamedSchedule]:
    """Those of this name; else those whose name begins with it; else those that a policy or a service of
    this name pages, in the order of its levels."""
    known = sorted(directory.schedules.values(), key=lambda one: one.name.casefold())
    wanted = name.casefold()
    for found in (
        [one for one in known if one.name.casefold() == wanted],
        [one for one in known if re.match(rf"{re.escape(wanted)}[\W_]", one.name.casefold())],
        _paged_by(wanted, directory),
    ):
        if found:
            return found
    raise no_such("schedule", name, [one.name for one in known])


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
