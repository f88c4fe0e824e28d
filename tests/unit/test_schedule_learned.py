"""Mistakes that other projects made about who is on call, each with the right answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from engine.schedule import (
    Schedule,
    dump_schedule,
    gaps,
    next_change,
    on_call,
    parse_schedule,
    people_at,
    shifts,
)

HOUR = timedelta(hours=1)
DAY = 24 * HOUR
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri"]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def schedule(
    zone: str,
    users: list[str],
    start: str,
    unit: str = "week",
    *,
    days: list[str] | None = None,
    hours: str = "",
    overrides: list[dict[str, Any]] | None = None,
    **more: Any,
) -> Schedule:
    opens, _, closes = hours.partition("-")
    layer = {
        "name": "primary",
        "users": users,
        "start": start,
        "rotation": {"every": 1, "unit": unit},
        **more,
    }
    if hours:
        layer["restrictions"] = [{"days": days or [*WEEKDAYS, "sat", "sun"], "from": opens, "to": closes}]
    return parse_schedule({"timezone": zone, "layers": [layer], "overrides": overrides or []})


def pieces(of: Schedule, a: str, b: str) -> list[tuple[str, str, str]]:
    """Start, end and people of each shift in which somebody is on call."""
    return [
        (f"{shift.start:%m-%dT%H:%M}", f"{shift.end:%m-%dT%H:%M}", " ".join(shift.people))
        for shift in shifts(of, at(a), at(b))
        if shift.people
    ]


@pytest.mark.parametrize(
    ("start", "begins", "ends", "hours"),
    [
        ("2024-10-28T09:00", "2024-10-28T14:00", "2024-11-04T15:00", 169),
        ("2025-03-03T09:00", "2025-03-03T15:00", "2025-03-10T14:00", 167),
    ],
)
def test_a_week_over_a_change_of_the_clock_is_an_hour_longer_or_shorter(
    start: str, begins: str, ends: str, hours: int
) -> None:
    """Handed over at nine by the clock on the wall (B064, grafana/oncall#5247)."""
    weekly = schedule("America/Chicago", ["ana", "ben"], start)
    first = shifts(weekly, at(begins), at(begins) + 30 * DAY)[0]
    assert (first.start, first.end, first.people) == (at(begins), at(ends), ("ana",))
    assert first.end - first.start == hours * HOUR


def test_hours_of_the_day_stay_where_they_are_on_the_wall() -> None:
    """08:30 to 17:30 in London, in summer time and after it (B065, grafana/oncall#3261)."""
    london = schedule("Europe/London", ["ana"], "2023-10-01T00:00", hours="08:30-17:30")
    assert pieces(london, "2023-10-28", "2023-10-29") == [("10-28T07:30", "10-28T16:30", "ana")]
    assert pieces(london, "2023-10-30", "2023-10-31") == [("10-30T08:30", "10-30T17:30", "ana")]


def test_one_week_ends_where_the_next_begins() -> None:
    """Two people by the week leave no hour out (B066, grafana/oncall#4208)."""
    weekly = schedule("Europe/Berlin", ["ana", "ben"], "2024-01-01T09:00")
    assert gaps(weekly, at("2024-01-01T08:00"), at("2025-01-01")) == []


def test_a_week_that_begins_on_a_thursday_ends_on_a_thursday() -> None:
    """A turn is counted from its own start (B067, grafana/oncall#3755)."""
    weekly = schedule("UTC", ["ana", "ben"], "2024-01-25T10:00")
    assert next_change(weekly, at("2024-01-25T10:00")) == at("2024-02-01T10:00")


def test_a_day_over_a_change_of_the_clock_is_the_same_in_every_answer() -> None:
    """Saturday nine to Sunday nine in Los Angeles is 23 hours, asked at an instant or as a shift
    (B068, grafana/oncall#5455)."""
    daily = schedule("America/Los_Angeles", ["ana", "ben"], "2025-03-08T09:00", "day")
    (first, *_) = shifts(daily, at("2025-03-08T17:00"), at("2025-03-11"))
    assert (first.end, first.end - first.start) == (at("2025-03-09T16:00"), 23 * HOUR)
    answer = on_call(daily, at("2025-03-09T15:59"))
    assert (answer.people, answer.since, answer.until) == (("ana",), first.start, first.end)


def test_working_days_alternate_and_never_have_two() -> None:
    """Monday to Friday, eight to six in Paris, two people by the day (B069, grafana/oncall#4197)."""
    daily = schedule(
        "Europe/Paris", ["u1", "u2"], "2024-03-04T08:00", "day", days=WEEKDAYS, hours="08:00-18:00"
    )
    found = [who for _, _, who in pieces(daily, "2024-03-04", "2024-03-16")]
    assert found == ["u1", "u2"] * 5


def test_a_gap_in_the_past_is_not_found() -> None:
    """Only what lies ahead of the question is warned of, from then on (B072, grafana/oncall#1108)."""
    nights_only = schedule("UTC", ["ana"], "2024-01-01T00:00", hours="12:00-00:00")
    (gap,) = gaps(nights_only, at("2024-01-03T06:00"), at("2024-01-04"))
    assert (gap.start, gap.end) == (at("2024-01-03T06:00"), at("2024-01-03T12:00"))
    assert gaps(nights_only, at("2024-01-03T12:00"), at("2024-01-04")) == []


def cover(user: str, covers: str, start: str, end: str) -> dict[str, Any]:
    return {"kind": "cover", "user": user, "covers": covers, "start": f"{start}Z", "end": f"{end}Z"}


def test_a_cover_keeps_the_hours_of_the_covered() -> None:
    """Covered from Monday eight to Wednesday eight, a nine-to-five has two days of another, and nobody in
    the night (B073, target/goalert#4362)."""
    days = schedule(
        "UTC",
        ["ana"],
        "2024-01-01T00:00",
        hours="09:00-17:00",
        overrides=[cover("ben", "ana", "2024-01-08T08:00", "2024-01-10T08:00")],
    )
    assert pieces(days, "2024-01-08", "2024-01-11") == [
        ("01-08T09:00", "01-08T17:00", "ben"),
        ("01-09T09:00", "01-09T17:00", "ben"),
        ("01-10T09:00", "01-10T17:00", "ana"),
    ]


def test_who_covers_somebody_off_duty_is_not_on_call() -> None:
    """A cover puts nobody on call whose person is not (B074, target/goalert PR#4306)."""
    weekly = schedule(
        "UTC",
        ["ana", "ben"],
        "2024-01-01T00:00",
        overrides=[cover("cho", "ben", "2024-01-02T00:00", "2024-01-03T00:00")],
    )
    answer = on_call(weekly, at("2024-01-02T12:00"))
    assert answer.people == ("ana",)
    assert "cho" not in answer.reason


def test_the_first_handoff_after_a_change_of_the_clock_is_at_its_time() -> None:
    """Nine in Chicago on the day after the clocks went ahead (B075, target/goalert PR#512, PR#1252)."""
    daily = schedule("America/Chicago", ["ana", "ben"], "2018-03-01T09:00", "day")
    assert next_change(daily, at("2018-03-12T00:00")) == at("2018-03-12T14:00")


def test_a_mask_of_weekdays_hides_turns_and_shifts_none() -> None:
    """Turns count calendar days: what falls on a weekend is nobody's loss but its owner's
    (B076, OneUptime/oneuptime#2413)."""
    daily = schedule(
        "UTC", ["ana", "ben", "cho"], "2024-01-01T00:00", "day", days=WEEKDAYS, hours="09:00-17:00"
    )
    found = [who for _, _, who in pieces(daily, "2024-01-01", "2024-01-13")]
    assert found == ["ana", "ben", "cho", "ana", "ben", "ben", "cho", "ana", "ben", "cho"]


def test_a_handoff_chosen_in_winter_is_at_that_time_in_summer() -> None:
    """Nine stays nine (B077, OneUptime/oneuptime#1890)."""
    weekly = schedule("Europe/Berlin", ["ana", "ben"], "2024-01-01T09:00")
    assert next_change(weekly, at("2024-01-03")) == at("2024-01-08T08:00")
    assert next_change(weekly, at("2024-07-03")) == at("2024-07-08T07:00")


def test_the_same_instant_written_another_way_changes_nothing() -> None:
    """Two in the morning at two hours east is midnight (B079, PagerDuty/terraform-provider-pagerduty#168,
    #200, PR#321)."""
    ways = ("2019-01-01T02:00:00+02:00", "2019-01-01T00:00:00+00:00", "2019-01-01T00:00:00Z")
    override = {"kind": "add", "user": "ana", "end": "2019-01-02T00:00:00Z"}
    first, *others = [
        parse_schedule({"timezone": "UTC", "overrides": [{**override, "start": way}]}) for way in ways
    ]
    assert others == [first, first]
    assert dump_schedule(others[0]) == dump_schedule(first)


def test_a_start_is_a_local_time_in_a_zone_of_a_name() -> None:
    """No offset is asked for (B080, PagerDuty/terraform-provider-pagerduty#728)."""
    weekly = schedule("America/New_York", ["ana", "ben"], "2024-07-01T09:00")
    assert people_at(weekly, at("2024-07-01T12:59")) == ()
    assert people_at(weekly, at("2024-07-01T13:00")) == ("ana",)


def test_seconds_of_a_start_are_kept() -> None:
    """Read, written out and read again (B082, PagerDuty/terraform-provider-pagerduty#659)."""
    weekly = schedule("UTC", ["ana", "ben"], "2024-01-01T09:00:30")
    (layer,) = dump_schedule(weekly)["layers"]
    assert layer["start"] == "2024-01-01T09:00:30"
    assert parse_schedule(dump_schedule(weekly)) == weekly
    assert next_change(weekly, at("2024-01-02")) == at("2024-01-08T09:00:30")


def test_a_question_within_a_shift_has_one_answer_that_knows_its_bounds() -> None:
    """Asked for four hours of a day there is one entry of four hours; since and until are the day's
    (B083, PagerDuty/terraform-provider-pagerduty#21)."""
    daily = schedule("UTC", ["ana", "ben"], "2011-01-01T00:00", "day")
    (entry,) = shifts(daily, at("2011-06-01T10:00"), at("2011-06-01T14:00"))
    assert (entry.start, entry.end) == (at("2011-06-01T10:00"), at("2011-06-01T14:00"))
    answer = on_call(daily, at("2011-06-01T10:00"))
    assert (answer.since, answer.until) == (at("2011-06-01T00:00"), at("2011-06-02T00:00"))


def test_the_instant_of_a_handoff_belongs_to_who_comes() -> None:
    """A second before nine it is the old one (B084, hubot-pagerduty PR#8)."""
    weekly = schedule("UTC", ["ana", "ben"], "2024-01-01T09:00")
    assert people_at(weekly, at("2024-01-08T08:59:59")) == ("ana",)
    assert people_at(weekly, at("2024-01-08T09:00:00")) == ("ben",)
    assert on_call(weekly, at("2024-01-08T09:00:00")).since == at("2024-01-08T09:00:00")
    assert on_call(weekly, at("2024-01-08T08:59:59")).until == at("2024-01-08T09:00:00")


@pytest.mark.parametrize(
    ("zone", "start", "asked", "comes"),
    [
        ("US/Central", "2021-03-01T00:00", "2021-03-14T07:00", "2021-03-15T05:00"),
        ("US/Pacific", "2022-03-01T00:00", "2022-03-13T08:00", "2022-03-14T07:00"),
    ],
)
def test_midnight_after_the_clocks_went_ahead_is_an_hour_earlier(
    zone: str, start: str, asked: str, comes: str
) -> None:
    """The next midnight by the wall, 23 hours later or less (B085, agronholm/apscheduler#529, #606)."""
    assert next_change(schedule(zone, ["ana", "ben"], start, "day"), at(asked)) == at(comes)


def test_a_handoff_at_a_time_that_does_not_exist_comes_an_hour_later_on_the_wall() -> None:
    """Two o'clock on the night it is left out is three (B086, agronholm/apscheduler#1059)."""
    daily = schedule("US/Eastern", ["ana", "ben"], "2013-03-01T02:00", "day")
    comes = next_change(daily, at("2013-03-10T00:00"))
    assert comes == at("2013-03-10T07:00")
    assert f"{comes.astimezone(ZoneInfo('US/Eastern')):%H:%M}" == "03:00"


def test_a_time_that_one_night_leaves_out_is_taken() -> None:
    """Half past two every day is a handoff like any other, all year (B087, healthchecks/healthchecks#196)."""
    daily = schedule("Europe/Copenhagen", ["ana", "ben"], "2018-01-01T02:30", "day")
    found = shifts(daily, at("2018-01-01T01:30"), at("2019-01-01T01:30"))
    assert len(found) == 365
    assert sorted({shift.end - shift.start for shift in found}) == [23 * HOUR, 24 * HOUR, 25 * HOUR]
