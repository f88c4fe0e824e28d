"""What is worked out once is known afterwards, within bounds, and never of another schedule."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from engine.schedule import (
    OverrideKind,
    Schedule,
    ScheduleOverride,
    next_change,
    on_call,
    parse_schedule,
    people_at,
    shifts,
    with_overrides,
)
from engine.schedule.timeline import FIRST_INSTANT, LAST_INSTANT, MOST_BLOCKS
from tests.bench import schedules as bench

NOW = datetime(2026, 6, 10, 3, tzinfo=UTC)
DAY = timedelta(days=1)


def three_layers() -> Schedule:
    return parse_schedule(bench.mapping())


def test_what_was_asked_before_is_not_worked_out_again() -> None:
    """The second question about the same days finds what the first one left."""
    schedule = three_layers()
    first = on_call(schedule, NOW)
    (block,) = schedule.worked_out.values()
    assert on_call(schedule, NOW) == first
    assert [id(known) for known in schedule.worked_out.values()] == [id(block)]


def test_another_schedule_knows_nothing_of_the_former() -> None:
    """Neither an override nor another change of the value takes answers along."""
    schedule = three_layers()
    people_at(schedule, NOW)
    override = ScheduleOverride(OverrideKind.REPLACE_ALL, "zoe", NOW, NOW + DAY)
    overridden = with_overrides(schedule, [override])
    assert (people_at(overridden, NOW), overridden.worked_out == schedule.worked_out) == (("zoe",), False)
    assert people_at(replace(schedule, layers=()), NOW) != people_at(schedule, NOW)
    assert overridden != schedule == three_layers()


def test_what_is_known_is_bounded_and_forgetting_changes_no_answer() -> None:
    """Three centuries of shifts tile the whole calendar, and only the last blocks are kept."""
    layer = {"users": ["ana", "ben"], "start": "1950-01-01T09:00", "rotation": {"every": 1, "unit": "month"}}
    schedule = parse_schedule({"timezone": "Europe/Berlin", "layers": [layer]})
    found = shifts(schedule, FIRST_INSTANT, LAST_INSTANT)
    assert len(schedule.worked_out) <= MOST_BLOCKS
    assert (found[0].start, found[-1].end) == (FIRST_INSTANT, LAST_INSTANT)
    assert all(one.end == other.start for one, other in pairwise(found))
    middle = found[len(found) // 2]
    assert people_at(schedule, middle.start) == middle.people


def test_the_place_where_it_is_asked_from_changes_nothing() -> None:
    """An instant in any zone has the answer of the same instant in UTC."""
    schedule = three_layers()
    for hours in (-11, 5, 14):
        there = NOW.astimezone(parse_schedule({"timezone": f"Etc/GMT{-hours:+}"}).zone)
        assert on_call(schedule, there) == on_call(schedule, NOW)
        assert shifts(schedule, there, there + DAY) == shifts(schedule, NOW, NOW + DAY)
        assert next_change(schedule, there) == next_change(schedule, NOW)


def test_twelve_layers_of_sixty_people_stay_fast() -> None:
    """A year of it takes well under a second, an answer afterwards microseconds: tens of times less than
    is asserted, which leaves room for a machine that is busy with something else."""
    schedule = parse_schedule(bench.big())
    began = time.perf_counter()
    found = shifts(schedule, *bench.YEAR)
    assert {person for shift in found for person in shift.people} > {f"l1-{n}" for n in range(60)}
    assert time.perf_counter() - began < 10
    began = time.perf_counter()
    for hour in range(2_000):
        assert on_call(schedule, bench.JANUARY + timedelta(hours=hour)).reason
    assert time.perf_counter() - began < 2


class Forgetful(dict[int, Any]):
    """As when another thread forgets a block between two steps of ours."""

    def __contains__(self, number: object) -> bool:
        known = super().__contains__(number)
        for kept in [*self]:
            del self[kept]
        return known


def test_what_another_thread_forgets_is_worked_out_again() -> None:
    """The look ahead works in a thread, and a page asks the same schedule at the same moment."""
    schedule = three_layers()
    first = people_at(schedule, NOW)
    object.__setattr__(schedule, "worked_out", Forgetful(schedule.worked_out))
    assert people_at(schedule, NOW) == first
