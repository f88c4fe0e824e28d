"""Who was and will be on call how much, and who is asked first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from engine.directory import Person
from engine.rota.load import least_loaded_first, load
from engine.rota.on_call import ShiftOf, ShiftsOf

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def person(number: int, name: str) -> Person:
    return Person(number, name, None, "UTC", admin=False, active=True)


ANA, BEN = person(1, "ana"), person(2, "ben")


def shifts(*stretches: tuple[int, tuple[Person, ...]]) -> ShiftsOf:
    """So many hours each, one after the other."""
    found, at = [], NOW
    for hours, people in stretches:
        found.append(ShiftOf(at, at + hours * HOUR, people))
        at += hours * HOUR
    return ShiftsOf(1, "primary", tuple(found))


def test_hours_on_all_schedules_are_added() -> None:
    """Together counts for each, a gap for nobody, and two schedules at once twice."""
    primary = shifts((10, (ANA,)), (5, ()), (3, (ANA, BEN)), (2, (BEN,)))
    secondary = shifts((20, (BEN,)))
    assert load([primary, secondary]) == {1: 13 * HOUR, 2: 25 * HOUR}
    assert load([]) == {}


def test_the_least_loaded_are_first_and_equals_go_by_name() -> None:
    """Somebody who is on call nowhere is asked before everybody else."""
    people = [person(1, "cho"), person(2, "Ben"), person(3, "ana"), person(4, "dee")]
    order = least_loaded_first(people, {1: HOUR, 2: HOUR, 3: 2 * HOUR})
    assert [one.name for one in order] == ["dee", "Ben", "cho", "ana"]
