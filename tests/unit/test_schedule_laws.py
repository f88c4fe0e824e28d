"""Laws that hold for every schedule, tried near the changes of odd clocks."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from tests.unit.schedule_brute import MINUTE, Canvas

HOUR = timedelta(hours=1)

# Clocks that change by an hour, by half an hour, by two hours, at midnight, at a minute past it, for
# Ramadan, and by a whole day: a day that was left out.
YEARS = {
    "America/Chicago": 2024,
    "Europe/Berlin": 2024,
    "Australia/Lord_Howe": 2024,
    "Antarctica/Troll": 2024,
    "America/Havana": 2024,
    "Africa/Cairo": 2024,
    "Africa/Casablanca": 2024,
    "America/St_Johns": 2006,
    "Pacific/Apia": 2011,
    "Pacific/Kwajalein": 1993,
}


def changes(zone: str, year: int) -> Iterator[tuple[str, datetime]]:
    """Every instant of the year at which the zone's clock changes, with the zone."""
    hour, clock = datetime(year, 1, 1, tzinfo=UTC), ZoneInfo(zone)
    while hour.year == year:
        before, hour = hour, hour + HOUR
        if before.astimezone(clock).utcoffset() != hour.astimezone(clock).utcoffset():
            yield (
                zone,
                min(
                    minute
                    for minute in (before + n * MINUTE for n in range(1, 61))
                    if minute.astimezone(clock).utcoffset() == hour.astimezone(clock).utcoffset()
                ),
            )


CHANGES = [change for zone, year in YEARS.items() for change in changes(zone, year)]
PEOPLE = ["ana", "ben", "cho", "dan"]
clocks = st.sampled_from(["00:00", "00:30", "02:00", "02:30", "09:00", "17:00", "23:00", "23:59"])
days = st.sets(st.sampled_from(["mon", "tue", "wed", "thu", "fri", "sat", "sun"])).map(sorted)
windows = st.fixed_dictionaries({"days": days, "from": clocks, "to": clocks})
entries = st.one_of(st.sampled_from(PEOPLE), st.lists(st.sampled_from(PEOPLE), max_size=2))


def _walls(change: datetime) -> st.SearchStrategy[str]:
    hours = st.integers(-100, 60).map(lambda hour: change.replace(tzinfo=None) + timedelta(hours=hour))
    return st.builds(
        lambda wall, minute: f"{wall:%Y-%m-%dT%H}:{minute:02}", hours, st.sampled_from([0, 15, 30])
    )


def _instants(change: datetime) -> st.SearchStrategy[datetime]:
    return st.integers(-72 * 60, 72 * 60).map(lambda minute: change + timedelta(minutes=minute))


def _layers(change: datetime) -> st.SearchStrategy[dict[str, Any]]:
    rotation = st.one_of(
        st.fixed_dictionaries({"every": st.integers(1, 30), "unit": st.just("hour")}),
        st.fixed_dictionaries(
            {"every": st.integers(1, 3), "unit": st.sampled_from(["hour", "day", "week", "month"])}
        ),
    )
    return st.fixed_dictionaries(
        {
            "name": st.just("primary"),
            "users": st.lists(entries, max_size=4),
            "start": _walls(change),
            "rotation": rotation,
            "until": st.none() | _walls(change),
            "restrictions": st.lists(windows, max_size=2),
            "skip_holidays": st.booleans(),
        }
    )


def _overrides(change: datetime) -> st.SearchStrategy[dict[str, Any]]:
    texts = _instants(change).map(lambda instant: instant.isoformat())
    user = st.sampled_from([*PEOPLE, "eve"])
    common = {"user": user, "start": texts, "end": texts}
    return st.one_of(
        st.fixed_dictionaries({"kind": st.sampled_from(["add", "replace_all"]), **common}),
        st.fixed_dictionaries({"kind": st.just("cover"), "covers": user, **common}),
    )


@st.composite
def mappings(draw: st.DrawFn) -> tuple[dict[str, Any], datetime]:
    """A schedule's mapping, and the instant near which its clock changes."""
    zone, change = draw(st.sampled_from(CHANGES))
    day = change.astimezone(ZoneInfo(zone))
    dates = st.integers(-2, 2).map(lambda n: f"{day + timedelta(days=n):%Y-%m-%d}")
    mapping = {
        "timezone": zone,
        "layers": draw(st.lists(_layers(day), max_size=3)),
        "overrides": draw(st.lists(_overrides(change), max_size=4)),
        "holidays": [{"date": d, "name": "a holiday"} for d in draw(st.lists(dates, max_size=2))],
        "fallback": draw(st.none() | st.just("fay")),
    }
    return mapping, change


@st.composite
def questions(draw: st.DrawFn) -> tuple[Schedule, datetime, list[datetime]]:
    """A schedule, the instant its clock changes, and some instants around it in order."""
    mapping, change = draw(mappings())
    instants = draw(st.lists(_instants(change), min_size=3, max_size=8, unique=True))
    return parse_schedule(mapping), change, sorted(instants)


def by_minute(schedule: Schedule, origin: datetime, minutes: int) -> list[tuple[str, ...]]:
    return [people_at(schedule, origin + n * MINUTE) for n in range(minutes)]


def expect_as_painted(mapping: dict[str, Any], origin: datetime, minutes: int) -> None:
    """The same people as by brute force at each minute, one by one and as shifts."""
    painted = Canvas(mapping, origin, minutes).people()
    assert by_minute(parse_schedule(mapping), origin, minutes) == painted
    found = shifts(parse_schedule(mapping), origin, origin + minutes * MINUTE)
    bounds = [n for n in range(1, minutes) if painted[n - 1] != painted[n]]
    assert [shift.start for shift in found] == [origin + n * MINUTE for n in (0, *bounds)]
    assert [shift.people for shift in found] == [painted[n] for n in (0, *bounds)]


def windows_of(*days: str, opens: str, closes: str) -> list[dict[str, Any]]:
    return [{"days": list(days), "from": opens, "to": closes}]


def busy(zone: str, change: datetime) -> dict[str, Any]:
    """Three layers and three overrides with bounds at every hour that clocks skip or repeat."""
    every = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    start = f"{change - timedelta(days=9):%Y-%m-%d}"
    ends = [(change + timedelta(minutes=n)).isoformat() for n in (-90, 45, 200, 600)]
    return {
        "timezone": zone,
        "layers": [
            {
                "name": "night",
                "users": ["ana", ["ben", "cho"], "dan"],
                "start": f"{start}T02:30",
                "rotation": {"every": 1, "unit": "day"},
                "restrictions": windows_of(*every, opens="23:30", closes="02:30"),
            },
            {
                "name": "hours",
                "users": ["eve", "fay", "gil", "hal", "ida"],
                "start": f"{start}T00:30",
                "rotation": {"every": 1, "unit": "hour"},
                "restrictions": windows_of(*every, opens="00:00", closes="04:00"),
                "skip_holidays": True,
            },
            {
                "name": "week",
                "users": ["jan", "kim"],
                "start": f"{start}T00:00",
                "rotation": {"every": 2, "unit": "day"},
                "restrictions": windows_of("fri", "sat", "sun", opens="03:00", closes="03:00"),
            },
        ],
        "overrides": [
            {"kind": "add", "user": "lea", "start": ends[0], "end": ends[2]},
            {"kind": "cover", "user": "mia", "covers": "eve", "start": ends[1], "end": ends[3]},
            {"kind": "replace_all", "user": "noa", "start": ends[2], "end": ends[3]},
        ],
        "holidays": [{"date": f"{change + timedelta(days=1):%Y-%m-%d}", "name": "a holiday"}],
        "fallback": None,
    }


def test_ten_zones_are_tried_and_each_clock_changes() -> None:
    """A day that is left out, half an hour, two hours and midnight are among the changes."""
    assert len({zone for zone, _ in CHANGES}) == 10
    assert len(CHANGES) >= 20


@pytest.mark.parametrize(("zone", "change"), CHANGES, ids=[f"{zone}-{at:%Y-%m-%d}" for zone, at in CHANGES])
def test_every_minute_around_every_change_is_as_by_brute_force(zone: str, change: datetime) -> None:
    """Two days before and after, each minute has the people that painting it gives."""
    expect_as_painted(busy(zone, change), change - 48 * HOUR, 4 * 1440)


@given(mappings())
@settings(max_examples=40, deadline=None)
def test_every_minute_of_any_schedule_is_as_by_brute_force(question: tuple[dict[str, Any], datetime]) -> None:
    """Whatever the rotation, the windows, the holidays and the overrides (B070: an interval, a mask of
    weekdays and an end together)."""
    mapping, change = question
    expect_as_painted(mapping, change - 36 * HOUR, 3 * 1440)


@pytest.mark.slow
@given(mappings())
@settings(max_examples=400, deadline=None)
def test_a_great_many_schedules_are_as_by_brute_force(question: tuple[dict[str, Any], datetime]) -> None:
    """The same, many more times."""
    mapping, change = question
    expect_as_painted(mapping, change - 36 * HOUR, 3 * 1440)


@given(mappings(), st.integers(-600, 600), st.integers(1, 900))
@settings(max_examples=40, deadline=None)
def test_an_override_wins_exactly_on_its_interval(
    question: tuple[dict[str, Any], datetime], start: int, length: int
) -> None:
    """Who replaces everybody is alone from its start to its end, and nothing else changes."""
    mapping, change = question
    plain = parse_schedule(mapping)
    origin = change - 24 * HOUR
    begins = change + start * MINUTE
    ends = begins + length * MINUTE
    override = ScheduleOverride(OverrideKind.REPLACE_ALL, "zoe", begins, ends)
    before = by_minute(plain, origin, 2 * 1440)
    after = by_minute(with_overrides(plain, [override]), origin, 2 * 1440)
    for number, (was, now) in enumerate(zip(before, after, strict=True)):
        assert now == (("zoe",) if begins <= origin + number * MINUTE < ends else was)


@pytest.mark.parametrize("unit", ["day", "week"])
@pytest.mark.parametrize("clock", ["00:00", "00:30", "02:00", "02:30", "09:00", "23:59"])
def test_handoffs_keep_their_wall_clock_time_through_every_change(unit: str, clock: str) -> None:
    """A handoff comes at its time by the clock on the wall, later only where that time does not exist,
    and somebody is on call at every instant (B077)."""
    for zone, change in CHANGES:
        start = f"{change - timedelta(days=30):%Y-%m-%d}T{clock}"
        layer = {"users": ["ana", "ben", "cho"], "start": start, "rotation": {"every": 1, "unit": unit}}
        schedule = parse_schedule({"timezone": zone, "layers": [layer]})
        found = shifts(schedule, change - timedelta(days=20), change + timedelta(days=20))
        assert all(shift.people for shift in found)
        for shift in found[1:]:
            wall = shift.start.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
            exists = f"{wall:%H:%M}" == clock
            assert exists or abs(shift.start - change) <= 2 * HOUR


@given(questions())
@settings(max_examples=100, deadline=None)
def test_shifts_tile_the_window_and_are_maximal(question: tuple[Schedule, datetime, list[datetime]]) -> None:
    """Shifts begin and end with the window, touch each other, and neighbours differ."""
    schedule, _, instants = question
    pieces = shifts(schedule, instants[0], instants[-1])
    assert (pieces[0].start, pieces[-1].end) == (instants[0], instants[-1])
    for one, other in pairwise(pieces):
        assert one.start < one.end == other.start
        assert one.people != other.people


@given(questions())
@settings(max_examples=100, deadline=None)
def test_an_instant_has_the_people_of_the_shift_it_lies_in(
    question: tuple[Schedule, datetime, list[datetime]],
) -> None:
    """Asking at an instant and reading it off the shifts give the same people."""
    schedule, _, instants = question
    for piece in shifts(schedule, instants[0], instants[-1]):
        last = piece.end - timedelta(microseconds=1)
        for t in [piece.start, last, *(t for t in instants if piece.start <= t < piece.end)]:
            assert people_at(schedule, t) == piece.people


@given(questions())
@settings(max_examples=100, deadline=None)
def test_splitting_a_window_changes_nothing(question: tuple[Schedule, datetime, list[datetime]]) -> None:
    """The shifts of two halves, joined at the cut, are the shifts of the whole."""
    schedule, _, (a, cut, *_, b) = question
    left, right = shifts(schedule, a, cut), shifts(schedule, cut, b)
    whole = shifts(schedule, a, b)
    if left[-1].people == right[0].people:
        assert [(s.start, s.people) for s in whole] == [(s.start, s.people) for s in left + right[1:]]
    else:
        assert whole == left + right


@given(questions())
@settings(max_examples=20, deadline=None)
def test_since_until_and_the_next_change_bound_the_stretch(
    question: tuple[Schedule, datetime, list[datetime]],
) -> None:
    """Since and until are where other people begin and end; between them nothing changes."""
    schedule, _, (_, t, *_) = question
    answer = on_call(schedule, t)
    year = timedelta(days=366)
    piece = next(s for s in shifts(schedule, t - year, t + year) if s.start <= t < s.end)
    assert answer.people == piece.people
    assert answer.since == (piece.start if piece.start > t - year else None)
    assert answer.until == next_change(schedule, t) == (piece.end if piece.end < t + year else None)
