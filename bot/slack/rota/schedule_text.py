"""Schedules in words: what an edit changes, the coming shifts, the list, and what was done.

Never looks anything up and never sends. Clock times are those of the schedule's zone, which is named:
who edits a schedule reads and types in one zone only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import yaml

from bot.slack import escape
from bot.slack.answers import names, paragraphs
from bot.slack.message import Message, note
from engine.directory import NamedSchedule, Person
from engine.rota import schedule_words, schedules
from engine.rota.on_call import OnCallNow
from engine.schedule import Schedule, shifts
from engine.schedule.diff import Changed

SHOWN: Final = 40  # changed shifts
AHEAD: Final = timedelta(weeks=2)
COMING: Final = 12  # shifts in place of the picture
BESIDE: Final = 3  # and beside it

People = Mapping[int, Person]


def change_lines(changes: Sequence[Changed], schedule: Schedule, people: People) -> list[str]:
    """A line for each changed shift: when, from whom, to whom."""
    return _safe(schedule_words.change_lines(changes, schedule.timezone, people, SHOWN))


def first_lines(schedule: Schedule, people: People, now: datetime) -> list[str]:
    """Of a new schedule: whoever is on call from now on, which nobody was."""
    found = shifts(schedule, now, now + schedules.AHEAD)
    return _safe(schedule_words.shift_lines(found, schedule.timezone, people, now, SHOWN))


def coming_lines(schedule: Schedule, people: People, now: datetime, most: int = COMING) -> list[str]:
    """Whoever is on call in the next two weeks, shift by shift: the picture, for who cannot see it."""
    found = shifts(schedule, now, now + AHEAD)
    return _safe(schedule_words.shift_lines(found, schedule.timezone, people, now, most))


def _safe(lines: Sequence[str]) -> list[str]:
    return [escape.line(line, 400) for line in lines]


def alternative(named: NamedSchedule, people: People, now: datetime) -> str:
    """What the picture shows, in plain words for whoever cannot see it."""
    found = shifts(named.schedule, now, now + AHEAD)
    zone = named.schedule.timezone
    lines = schedule_words.shift_lines(found, zone, people, now, COMING)
    return "\n".join([f"{named.name}, times in {zone}", *lines])


def unpaged(name: str) -> str:
    """Whoever has made a schedule may think that it pages already."""
    level = {"targets": [{"schedule": name}], "timeout": "5m"}
    lines = yaml.safe_dump(
        {"levels": [level]}, default_flow_style=True, sort_keys=False, allow_unicode=True, width=1000
    )
    return (
        f"⚠️ No escalation policy pages *{escape.line(name, 80)}* yet. Name it in one of `midwatch.yaml`: "
        f"{escape.code(lines.strip()[1:-1], 200)}, then `midwatch apply`."
    )


def shown(named: NamedSchedule, people: People, now: datetime, why: str, *, paged: bool) -> Message:
    """One schedule in words. `why` says why there is no picture beside it: then the words say more."""
    schedule, name = named.schedule, escape.line(named.name, 80)
    layers = ", ".join(escape.line(layer.name, 40) for layer in schedule.layers[:12]) or "none"
    lines = [
        f"📅 *{name}*, times in {schedule.timezone} · layers: {layers}",
        *coming_lines(schedule, people, now, COMING if why else BESIDE),
        *([] if paged else [unpaged(named.name)]),
    ]
    if why:
        lines.append(f"⚠️ {why}")
    return paragraphs(lines, footer=f"`/oncall schedule edit {name}` changes it")


def listed(rows: Sequence[tuple[OnCallNow, Schedule]]) -> Message:
    if not rows:
        return note("There is no schedule yet. Make one with `/oncall schedule new`.")
    lines = (
        f"📅 *{escape.line(row.schedule, 80)}* · now {names(row.people)} · {len(schedule.layers)} "
        f"layer{'' if len(schedule.layers) == 1 else 's'} · {schedule.timezone}"
        for row, schedule in rows
    )
    return paragraphs(lines, footer="`/oncall schedule show NAME` · `edit NAME` · `delete NAME` · `new`")


def saved(name: str, changes: Sequence[Changed] | None) -> Message:
    """After saving; `changes` None: a new schedule."""
    shown = escape.line(name, 80)
    if changes is None:
        done = "is made"
    else:
        shifts_ = f"{len(changes)} shift{'' if len(changes) == 1 else 's'}" if changes else "nobody's shift"
        done = f"is changed: {shifts_} in the next 4 weeks"
    said = f"✅ *{shown}* {done}, in force from now on. `/oncall schedule show {shown}` shows it."
    return note(said if changes is not None else f"{said}\n{unpaged(name)}")


def deleted(name: str) -> Message:
    return note(f"✅ *{escape.line(name, 80)}* is deleted. Who was on call on it in the past is still known.")
