"""Who was and will be on call how much, and who is asked first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from engine.directory import Override, Person
from engine.pager.load import LOOK, as_it_was, least_loaded_first, load
from engine.schedule import Schedule, parse_schedule

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def schedule(*users: str, unit: str = "week") -> Schedule:
    layer = {
        "name": "all",
        "users": list(users),
        "start": "2026-01-05T09:00",
        "rotation": {"every": 1, "unit": unit},
    }
    return parse_schedule({"timezone": "UTC", "layers": [layer]})


def person(number: int, name: str) -> Person:
    return Person(number, name, None, "UTC", admin=False, active=True)


def test_hours_of_four_weeks_to_both_sides_on_all_schedules() -> None:
    """Eight weeks in turns are four weeks each; a second schedule counts on top."""
    loads = load([schedule("1", "2"), schedule("2")], NOW)
    assert loads == {1: LOOK, 2: 3 * LOOK}


def test_an_override_that_is_long_over_counts() -> None:
    """Who stood in three weeks ago was on call then, and the person replaced was not."""
    start = NOW - 21 * 24 * HOUR
    over = Override(1, 1, "replace_all", 3, None, start, start + 10 * HOUR)
    cover = Override(2, 1, "cover", 4, 3, start, start + 4 * HOUR)
    loads = load([as_it_was(schedule("1"), [cover, over])], NOW)
    assert loads == {1: 2 * LOOK - 10 * HOUR, 3: 6 * HOUR, 4: 4 * HOUR}


def test_the_least_loaded_are_first_and_equals_go_by_name() -> None:
    """Somebody who is on call nowhere is asked before everybody else."""
    people = [person(1, "cho"), person(2, "Ben"), person(3, "ana"), person(4, "dee")]
    order = least_loaded_first(people, {1: HOUR, 2: HOUR, 3: 2 * HOUR})
    assert [one.name for one in order] == ["dee", "Ben", "cho", "ana"]
