"""The sheet of a handoff: who is on call until when, what is open, what wakes up, what made noise.

Times are on the clock of whoever reads it. Never reads the database, and never says it to anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from engine.clockwords import between, wall
from engine.directory import Directory, NamedSchedule, Person
from engine.rota.shift_plan import Handing
from engine.schedule import people_at
from engine.store.handoffs import Noisy, OpenIncident

TITLE_MAX: Final = 80


@dataclass(frozen=True, slots=True)
class Facts:
    """What a sheet tells of the schedule's services; `count` is of all that are open."""

    opened: Sequence[OpenIncident]
    count: int
    snoozed: Sequence[OpenIncident]
    noisy: Sequence[Noisy]


def sheet(directory: Directory, named: NamedSchedule, handing: Handing, facts: Facts, timezone: str) -> str:
    lines = [
        *_who(directory, named, handing, timezone),
        *_incidents(facts.opened, facts.count),
        *_snoozes(facts.snoozed, timezone),
        *_noise(facts.noisy),
    ]
    return "\n".join(lines)


def people_in(directory: Directory, ids: Iterable[int]) -> list[Person]:
    return [directory.people[one] for one in sorted(ids) if one in directory.people]


def names_in(directory: Directory, ids: Iterable[int]) -> str:
    return " and ".join(one.name for one in people_in(directory, ids)) or "nobody"


def _who(directory: Directory, named: NamedSchedule, handing: Handing, timezone: str) -> Iterator[str]:
    span = between(handing.at, handing.until, timezone)
    if not handing.present:
        yield f"⚠️ Nobody is on call on {named.name}: {span}."
    else:
        yield f"🔁 {named.name}: {names_in(directory, handing.present)} on call, {span}."
    if handing.left:
        yield f"Off call: {names_in(directory, handing.left)}."
    if handing.until is not None:
        following = frozenset(map(int, people_at(named.schedule, handing.until)))
        yield f"Next: {names_in(directory, following)}."


def _incidents(opened: Sequence[OpenIncident], count: int) -> Iterator[str]:
    if not opened:
        yield "Open incidents: none."
        return
    yield f"Open incidents: {count}"
    for one in opened:
        yield f"• #{one.number} {_short(one.title)} ({_state(one)})"
    if count > len(opened):
        yield f"• and {count - len(opened)} more: `/oncall list`"


def _state(one: OpenIncident) -> str:
    if one.snoozed_until is not None:
        return "snoozed"
    return f"acknowledged by {one.acknowledged_by}" if one.acknowledged_by else one.status


def _snoozes(snoozed: Sequence[OpenIncident], timezone: str) -> Iterator[str]:
    """Those that come back in this shift."""
    for one in snoozed:
        if one.snoozed_until is not None:
            yield f"💤 #{one.number} wakes up {wall(one.snoozed_until, timezone)} {timezone}"


def _noise(noisy: Sequence[Noisy]) -> Iterator[str]:
    if noisy:
        yield "Noisiest in the last shift:"
    for one in noisy:
        yield f"• {one.events} × {_short(one.summary)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE_MAX else f"{line[: TITLE_MAX - 1]}…"
