"""Names that people type and nobody bears: which there are, and which one may have been meant.

Never looks anything up.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from bot.slack import escape
from engine.directory import Directory, NamedSchedule, Service
from engine.errors import BadCommand
from engine.rota.meant import by_name, meant


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
    """The one schedule that this name can mean."""
    found = schedules(name, directory)
    if len(found) > 1:
        among = ", ".join(escape.code(one.name, 60) for one in found)
        raise BadCommand(f"{escape.code(name, 60)} can be any of {among}: say which.")
    return found[0]


def schedules(name: str, directory: Directory) -> Sequence[NamedSchedule]:
    """All that this name can mean, at least one."""
    found = meant(name, directory)
    if not found:
        raise no_such("schedule", name, [one.name for one in by_name(directory)])
    return found
