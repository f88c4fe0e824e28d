"""Laws that hold for every schedule, tried near the changes of odd clocks."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.schedule import (
    Layer,
    Rotation,
    Schedule,
    Unit,
    next_change,
    on_call,
    parse_schedule,
    people_at,
    shifts,
)
from engine.schedule.turns import turn_at

# Days around which clocks change: an hour, half an hour, at midnight, by a whole day.
CHANGES = [
    ("America/Chicago", "2024-03-10"),
    ("America/Chicago", "2024-11-03"),
    ("Europe/Berlin", "2024-10-27"),
    ("Australia/Lord_Howe", "2024-04-07"),
    ("Australia/Lord_Howe", "2024-10-06"),
    ("America/St_Johns", "2006-10-29"),
    ("America/Havana", "2024-03-10"),
    ("Pacific/Apia", "2011-12-30"),
    ("Pacific/Kwajalein", "1993-08-21"),
    ("UTC", "2024-02-29"),
]
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
def questions(draw: st.DrawFn) -> tuple[Schedule, datetime, list[datetime]]:
    """A schedule, the day the clock changes, and some instants around it in order."""
    zone, day = draw(st.sampled_from(CHANGES))
    change = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    dates = st.integers(-2, 2).map(lambda n: f"{datetime.fromisoformat(day) + timedelta(days=n):%Y-%m-%d}")
    mapping = {
        "timezone": zone,
        "layers": draw(st.lists(_layers(change), max_size=3)),
        "overrides": draw(st.lists(_overrides(change), max_size=3)),
        "holidays": [{"date": d, "name": "a holiday"} for d in draw(st.lists(dates, max_size=2))],
        "fallback": draw(st.none() | st.just("fay")),
    }
    instants = draw(st.lists(_instants(change), min_size=3, max_size=8, unique=True))
    return parse_schedule(mapping), change, sorted(instants)


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


@given(
    st.sampled_from(CHANGES),
    st.integers(-40, 10),
    st.sampled_from([0, 20, 30]),
    st.integers(1, 30),
    st.integers(-60, 60),
)
@settings(max_examples=200, deadline=None)
def test_the_turn_in_force_is_the_highest_numbered_that_has_begun(
    change: tuple[str, str], start: int, minute: int, every: int, t: int
) -> None:
    """Arithmetic finds the same turn as counting all of them, also where the clock jumps a day."""
    zone = ZoneInfo(change[0])
    noon = datetime.fromisoformat(f"{change[1]}T12:00")
    layer = Layer(
        "primary",
        (("ana",), ("ben",)),
        noon + timedelta(hours=start, minutes=minute),
        Rotation(every, Unit.HOUR),
    )
    instant = noon.replace(tzinfo=UTC) + timedelta(hours=t, minutes=10)
    begun = [
        turn
        for turn in range(200)
        if (layer.start + timedelta(hours=every * turn)).replace(tzinfo=zone).astimezone(UTC) <= instant
    ]
    assert turn_at(layer, zone, instant) == (begun[-1] if begun else None)
