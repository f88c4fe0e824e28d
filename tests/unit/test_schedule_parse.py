"""Reading schedules: every mistake at once, and answers in words."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from engine.errors import BadConfig, BadInput
from engine.schedule import (
    OverrideKind,
    ScheduleOverride,
    next_change,
    on_call,
    parse_schedule,
    people_at,
    shifts,
    with_overrides,
)

MONDAY = datetime(2026, 11, 30, 12, tzinfo=UTC)


def _layer(**changes: Any) -> dict[str, Any]:
    layer = {"name": "primary", "users": ["ana", "ben"], "start": "2026-11-02T09:00"}
    return {**layer, "rotation": {"every": 1, "unit": "week"}, **changes}


def _schedule(*layers: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"timezone": "Europe/Berlin", "layers": list(layers), **changes}


def test_every_mistake_is_reported_at_once_with_its_place() -> None:
    """A schedule with many mistakes gives one sentence for each, and names where it is."""
    broken = _schedule(
        _layer(users=["ana", 7], start="2026-11-02T09:00Z", rotation={"every": 0, "unit": "year"}),
        _layer(restrictions=[{"days": ["mon", "monday"], "from": "9:00", "to": 1020}], untill=None),
        "primary",
        timezone="Berlin",
        overrides=[{"kind": "cover", "user": "ana", "start": "2026-11-30T08:00", "end": "soon"}],
        holidays=[{"date": "2026-02-30", "name": "never"}],
        fallback="",
    )
    with pytest.raises(BadConfig) as caught:
        parse_schedule(broken, "schedules.payments")
    places = [mistake.removeprefix("schedules.payments").split(": ")[0] for mistake in caught.value.mistakes]
    assert places == [
        ".timezone",
        ".layers[1].users[2]",
        ".layers[1].start",
        ".layers[1].rotation.every",
        ".layers[1].rotation.unit",
        ".layers[2]",
        ".layers[2].restrictions[1].days[2]",
        ".layers[2].restrictions[1].from",
        ".layers[2].restrictions[1].to",
        ".layers[3]",
        ".overrides[1].covers",
        ".overrides[1].start",
        ".overrides[1].end",
        ".holidays[1].date",
        ".fallback",
    ]


@pytest.mark.parametrize("zone", ["", "Europe/Nowhere", "../etc/passwd", "/etc/localtime", "Europe", "\0", 3])
def test_a_zone_that_does_not_exist_is_a_mistake(zone: object) -> None:
    """No name of a zone, however odd, gives anything but a sentence."""
    with pytest.raises(BadConfig, match=r"schedule\.timezone: "):
        parse_schedule(_schedule(timezone=zone))


@pytest.mark.parametrize("raw", [None, [], "ana", 1, {"timezone": "UTC", "layers": {"a": 1}}])
def test_what_is_no_schedule_is_refused(raw: Any) -> None:
    """Wrong types are mistakes, never crashes."""
    with pytest.raises(BadConfig):
        parse_schedule(raw)


def test_dates_that_yaml_has_read_already_are_taken() -> None:
    """YAML turns some times into dates and datetimes by itself; they mean the same."""
    text = _schedule(_layer(start="2026-11-02T09:00:00"), holidays=[{"date": "2026-12-25", "name": "x"}])
    read = _schedule(
        _layer(start=datetime.fromisoformat("2026-11-02T09:00:00")),
        holidays=[{"date": date(2026, 12, 25), "name": "x"}],
    )
    assert parse_schedule(read) == parse_schedule(text)


@pytest.mark.parametrize(
    ("changes", "at", "reason"),
    [
        ({}, MONDAY, "layer primary: the turn of ana"),
        ({"layers": []}, MONDAY, "nobody: the schedule has no layers, and there is no fallback"),
        (
            {},
            MONDAY - timedelta(days=60),
            "nobody: layer primary starts 2026-11-02 09:00 CET, and there is no fallback",
        ),
        ({"layers": [_layer(users=[])], "fallback": "7"}, MONDAY, "fallback: layer primary has nobody in it"),
        (
            {"layers": [_layer(until="2026-11-09T09:00")], "fallback": "7"},
            MONDAY,
            "fallback: layer primary ended 2026-11-09 09:00 CET",
        ),
        (
            {
                "layers": [_layer(restrictions=[{"days": ["sun"], "from": "09:00", "to": "17:00"}])],
                "fallback": "7",
            },
            MONDAY,
            "fallback: layer primary is outside its hours",
        ),
        (
            {
                "layers": [_layer(skip_holidays=True)],
                "holidays": [{"date": "2026-11-30", "name": "St Andrew's Day"}],
                "fallback": "7",
            },
            MONDAY,
            "fallback: layer primary skips St Andrew's Day",
        ),
        (
            {"layers": [_layer(users=[[]])], "fallback": "7"},
            MONDAY,
            "fallback: layer primary has an empty turn",
        ),
        (
            {"layers": [_layer(users=[["7", "ben", "cho"]])]},
            MONDAY,
            "layer primary: the turn of Guy, ben and cho",
        ),
    ],
)
def test_the_reason_says_where_the_answer_comes_from(
    changes: dict[str, Any], at: datetime, reason: str
) -> None:
    """Layer and turn, fallback or nobody: each with why, people by the names one gives them."""
    schedule = parse_schedule({**_schedule(_layer()), **changes})
    assert on_call(schedule, at, names={"7": "Guy"}).reason == reason


def test_the_reason_names_the_overrides_and_their_ends() -> None:
    """What replaced everybody is named alone, what joined or covered after what it changed."""
    schedule = parse_schedule(_schedule(_layer()))
    end = MONDAY + timedelta(hours=2)
    cover = ScheduleOverride(OverrideKind.COVER, "cho", MONDAY, end, covers="ana")
    alone = ScheduleOverride(OverrideKind.REPLACE_ALL, "dan", MONDAY, end)
    joins = ScheduleOverride(OverrideKind.ADD, "eve", MONDAY, datetime.max.replace(tzinfo=UTC))
    covered = on_call(with_overrides(schedule, [cover]), MONDAY)
    assert covered.people == ("cho",)
    assert covered.reason == (
        "layer primary: the turn of ana; override: cho covers ana until 2026-11-30 15:00 CET"
    )
    replaced = on_call(with_overrides(schedule, [cover, alone, joins]), MONDAY)
    assert replaced.people == ("dan", "eve")
    assert replaced.reason == (
        "override: dan alone until 2026-11-30 15:00 CET; override: eve in addition until 9999-12-31 23:59 UTC"
    )


def test_since_and_until_are_hand_overs_or_unknown() -> None:
    """A turn is bounded by its hand-overs; who is on call for more than a year has no bounds."""
    weekly = on_call(parse_schedule(_schedule(_layer())), MONDAY)
    assert weekly.since == datetime(2026, 11, 30, 8, tzinfo=UTC)
    assert weekly.until == datetime(2026, 12, 7, 8, tzinfo=UTC)
    always = on_call(parse_schedule(_schedule(_layer(users=["ana"], start="2020-01-01T00:00"))), MONDAY)
    assert (always.people, always.since, always.until) == (("ana",), None, None)


def test_questions_beyond_the_calendar_are_refused_not_crashed() -> None:
    """Instants far away are bad input with a reason; naive ones are a mistake of the caller."""
    schedule = parse_schedule(_schedule(_layer()))
    for far in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
        with pytest.raises(BadInput, match="too far away"):
            people_at(schedule, far)
    with pytest.raises(BadInput, match="too far away"):
        shifts(schedule, MONDAY, datetime.max.replace(tzinfo=UTC))
    with pytest.raises(ValueError, match="without a time zone"):
        people_at(schedule, MONDAY.replace(tzinfo=None))


def test_the_last_answerable_instant_has_bounds_too() -> None:
    """At the edge of the calendar since and until still answer."""
    schedule = parse_schedule(_schedule(_layer()))
    last = datetime(2199, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert on_call(schedule, last).since is not None
    assert next_change(schedule, last) is None
    first = datetime(1900, 1, 1, tzinfo=UTC)
    assert on_call(schedule, first).since is None


def test_an_empty_window_has_no_shifts() -> None:
    """A window that does not end after it begins holds nothing."""
    assert shifts(parse_schedule(_schedule(_layer())), MONDAY, MONDAY) == []
