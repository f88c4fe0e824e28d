"""Who is on call: an instant, a year, a thousand schedules; and two libraries for calendars beside it."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from engine.schedule import Schedule, next_change, on_call, parse_schedule, shifts

JANUARY = datetime(2026, 1, 1, tzinfo=UTC)
YEAR = (JANUARY, JANUARY + timedelta(days=365))
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri"]
SCHEDULES = 1_000
INSTANTS = 20_000
OVERRIDES = 200
ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Row:
    """Seconds of the processor: Midwatch's, and the peer's where it can do the same."""

    what: str
    ours: float
    theirs: float | None = None


def mapping() -> dict[str, Any]:
    """Days, nights and all the rest, each rotating at its own pace, and overrides all over the year."""
    return {
        "timezone": "Europe/Berlin",
        "layers": [
            _layer("days", 6, "2025-01-06T08:00", "day", ("08:00", "18:00")),
            _layer("nights", 4, "2025-01-06T18:00", "week", ("18:00", "08:00")),
            _layer("always", 3, "2025-01-03T18:00", "week", None),
        ],
        "overrides": _overrides(),
        "fallback": "lead",
    }


def big() -> dict[str, Any]:
    """Twelve layers of sixty people, each open for two hours of the day."""
    hours = [f"{hour:02}:00" for hour in range(0, 25, 2)]
    hours[-1] = "00:00"
    windows = pairwise(hours)
    layers = [
        _layer(f"l{n}", 60, "2025-01-06T00:00", "day", window) for n, window in enumerate(windows, start=1)
    ]
    return {"timezone": "America/New_York", "layers": layers, "overrides": _overrides()}


def _layer(name: str, people: int, start: str, unit: str, hours: tuple[str, str] | None) -> dict[str, Any]:
    window = [] if hours is None else [{"days": WEEKDAYS, "from": hours[0], "to": hours[1]}]
    users = [f"{name}-{number}" for number in range(people)]
    rotation = {"every": 1, "unit": unit}
    return {"name": name, "users": users, "start": start, "rotation": rotation, "restrictions": window}


def _overrides() -> list[dict[str, Any]]:
    chance = random.Random(1)
    found = []
    for number in range(OVERRIDES):
        start = JANUARY + timedelta(hours=chance.randrange(365 * 24))
        end = start + timedelta(hours=chance.choice([2, 8, 24]))
        kind = ("cover", "add", "replace_all")[number % 3]
        covers = {"covers": f"days-{number % 6}"} if kind == "cover" else {}
        bounds = {"start": start.isoformat(), "end": end.isoformat()}
        found.append({"kind": kind, "user": f"o-{number % 20}", **covers, **bounds})
    return found


def run(*, short: bool) -> list[Row]:
    asked = range(200 if short else INSTANTS)
    instants = [JANUARY + timedelta(minutes=n * 7919 % (365 * 1440)) for n in asked]
    count = 20 if short else SCHEDULES
    schedule, large = parse_schedule(mapping()), parse_schedule(big())
    fresh = [parse_schedule(mapping()) for _ in range(count)]
    first_year = _best(lambda: shifts(_renewed(schedule), *YEAR), 1 if short else ROUNDS)
    year = _best(lambda: shifts(schedule, *YEAR), 1 if short else ROUNDS)
    text = json.dumps(mapping())
    from_text = _best(lambda: shifts(parse_schedule(json.loads(text)), *YEAR), 1 if short else ROUNDS)
    shifts(large, *YEAR)
    changes = _best(lambda: [next_change(one, JANUARY + timedelta(days=160)) for one in fresh], 1)
    # Without the extra `peers`, which only `make bench` installs, the short form runs Midwatch alone.
    theirs = {} if short else _peer(schedule, instants[:200])
    return [
        Row("on call at an instant", _each(schedule, instants), theirs.get("instant")),
        Row("the same, and why", _each(schedule, instants, why=True)),
        Row("the shifts of a year", year, theirs.get("year")),
        Row("the shifts of a year, asked for the first time", first_year),
        Row("the same, from the text of the schedule", from_text, theirs.get("from text")),
        Row(f"the next change of {count:,} schedules, asked for the first time", changes),
        Row("12 layers, 60 people in each: on call at an instant", _each(large, instants)),
        Row("the same, and why", _each(large, instants, why=True)),
    ]


def _renewed(schedule: Schedule) -> Schedule:
    """The same schedule, of which nothing has been worked out."""
    schedule.worked_out.clear()
    return schedule


def _each(schedule: Schedule, instants: list[datetime], *, why: bool = False) -> float:
    began = time.process_time()
    for t in instants:
        answer = on_call(schedule, t)
        if why:
            assert answer.reason
    return (time.process_time() - began) / len(instants)


def _best(work: Callable[[], object], rounds: int) -> float:
    """The shortest of some, as processor time: what disturbs only ever adds."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def _peer(schedule: Schedule, instants: list[datetime]) -> dict[str, float]:
    from tests.bench.peers.calendars import Calendars, written  # of the extra `peers`

    text, fallback = written(mapping()), schedule.fallback or ""
    calendars = Calendars(text, fallback)
    for t in instants:
        assert calendars.people_at(t) == on_call(schedule, t).people, t
    return {
        "instant": _best(lambda: [calendars.at(t) for t in instants], 3) / len(instants),
        "year": _best(lambda: calendars.between(*YEAR), 3),
        "from text": _best(lambda: Calendars(text, fallback).between(*YEAR), 3),
    }
