"""Holidays: days that somebody wrote down, and those of countries, for a schedule or for one layer."""

from __future__ import annotations

import json
import warnings
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from engine.errors import BadConfig
from engine.schedule import National, dump_schedule, on_call, parse_schedule, people_at, shifts
from engine.schedule.holiday_lines import read_lines, show_lines
from engine.schedule.holidays import national_holidays, subdivisions

DAY = timedelta(days=1)
EPIPHANY = datetime(2026, 1, 6, 12, tzinfo=UTC)
BAVARIA = {"country": "DE", "subdivision": "BY"}


def layer(name: str = "days", **more: Any) -> dict[str, Any]:
    start, rotation = "2025-01-01T00:00", {"every": 1, "unit": "week"}
    return {
        "name": name,
        "users": [name],
        "start": start,
        "rotation": rotation,
        "skip_holidays": True,
        **more,
    }


def mapping(*layers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"timezone": "Europe/Berlin", "layers": list(layers), "fallback": "rest", **more}


def test_a_layer_skips_the_holidays_of_a_part_of_a_country() -> None:
    """Epiphany is one in Bavaria and not in Berlin, from local midnight to the next."""
    bavaria = parse_schedule(mapping(layer(), holidays=[BAVARIA]))
    berlin = parse_schedule(mapping(layer(), holidays=[{"country": "DE", "subdivision": "BE"}]))
    assert people_at(bavaria, EPIPHANY) == ("rest",)
    assert people_at(berlin, EPIPHANY) == ("days",)
    midnight = datetime(2026, 1, 5, 23, tzinfo=UTC)
    assert [(s.start, s.end) for s in shifts(bavaria, EPIPHANY - 2 * DAY, EPIPHANY + 2 * DAY)][1] == (
        midnight,
        midnight + DAY,
    )
    assert on_call(bavaria, EPIPHANY).reason == "fallback: layer days skips Epiphany"


def test_own_days_and_those_of_countries_stand_side_by_side() -> None:
    """Christmas Eve is written down beside Bavaria's; a name of one's own is the one that is said."""
    own = [{"date": "2026-12-24", "name": "Christmas Eve"}, {"date": "2026-12-25", "name": "The Day"}]
    schedule = parse_schedule(mapping(layer(), holidays=[BAVARIA, *own]))
    christmas = datetime(2026, 12, 24, 12, tzinfo=UTC)
    said = [on_call(schedule, christmas + n * DAY).reason for n in range(-1, 4)]
    assert [reason.partition("skips ")[2] for reason in said] == [
        "",
        "Christmas Eve",
        "The Day",
        "Second Day of Christmas",
        "",
    ]


def test_a_layer_with_holidays_of_its_own_skips_those_alone() -> None:
    """Munich and New York hand over to each other: each skips its own days and works on the other's."""
    munich = layer("munich")
    new_york = layer("new-york", holidays=[{"country": "US"}])
    schedule = parse_schedule(mapping(munich, new_york, holidays=[BAVARIA]))
    assert people_at(schedule, EPIPHANY) == ("new-york",)
    assert people_at(schedule, datetime(2026, 7, 3, 12, tzinfo=UTC)) == ("munich",)
    assert people_at(schedule, datetime(2026, 1, 1, 12, tzinfo=UTC)) == ("rest",)
    independence = parse_schedule(mapping(new_york, holidays=[BAVARIA]))
    assert people_at(independence, EPIPHANY) == ("new-york",)
    assert people_at(independence, datetime(2026, 7, 3, 12, tzinfo=UTC)) == ("rest",)


def test_a_layer_that_skips_none_works_on_holidays() -> None:
    """Holidays concern only layers that say so."""
    schedule = parse_schedule(mapping(layer(skip_holidays=False), holidays=[BAVARIA]))
    assert people_at(schedule, EPIPHANY) == ("days",)


def test_a_schedule_with_holidays_of_both_kinds_reads_back() -> None:
    """Written out as plain JSON and read again it is the same schedule."""
    own = {"date": "2026-12-24", "name": "Christmas Eve"}
    schedule = parse_schedule(
        mapping(layer(holidays=[{"country": "US"}, own]), layer("other"), holidays=[own, BAVARIA, BAVARIA])
    )
    dumped = json.loads(json.dumps(dump_schedule(schedule)))
    assert dumped["holidays"] == [BAVARIA, own]
    assert dumped["layers"][0]["holidays"] == [{"country": "US"}, own]
    assert "holidays" not in dumped["layers"][1]
    assert parse_schedule(dumped) == schedule


WRONG = [
    ({"holidays": [{"country": "XX"}]}, ".holidays[1].country: must be the two capital letters"),
    ({"holidays": [{"country": "de"}]}, ".holidays[1].country: must be the two capital letters"),
    ({"holidays": [{"country": ["DE"]}]}, ".holidays[1].country: must be the two capital letters"),
    ({"holidays": [{"subdivision": "BY"}]}, ".holidays[1].country: must be the two capital letters"),
    (
        {"holidays": [{"country": "DE", "subdivision": "BX"}]},
        ".holidays[1].subdivision: DE has no 'BX'; known are BB, BE",
    ),
    ({"holidays": [{"country": "DE", "subdivision": 7}]}, "DE has no 7; known are BB, BE"),
    ({"holidays": [{"country": "DE", "date": "2026-01-01"}]}, ".holidays[1]: is either {date"),
    ({"holidays": [{"land": "DE"}]}, "there is no 'land' here; known are date, name, country, subdivision"),
    (
        {"layers": [{k: v for k, v in layer(holidays=[BAVARIA]).items() if k != "skip_holidays"}]},
        ".layers[1].holidays: are of no effect without skip_holidays: true",
    ),
]


@pytest.mark.parametrize(("wrong", "sentence"), WRONG, ids=[sentence for _, sentence in WRONG])
def test_a_holiday_that_would_be_none_is_a_mistake(wrong: dict[str, Any], sentence: str) -> None:
    """An unknown country or part, or a day that is of a country too, is told with its place."""
    with pytest.raises(BadConfig) as caught:
        parse_schedule({**mapping(layer()), **wrong}, "s")
    assert any(sentence in mistake for mistake in caught.value.mistakes), caught.value.mistakes


def test_lines_that_people_type_are_holidays() -> None:
    """A day with its name, a country, a part of one: shown as lines and read back the same."""
    text = "2026-12-24 Christmas Eve\n\n  de-BY \nUS\n2026-12-31"
    entries = read_lines(text)
    christmas = {"date": "2026-12-24", "name": "Christmas Eve"}
    assert entries == [christmas, BAVARIA, {"country": "US"}, {"date": "2026-12-31"}]
    read = dump_schedule(parse_schedule(mapping(holidays=entries)))["holidays"]
    assert show_lines(read) == "DE-BY\nUS\n2026-12-24 Christmas Eve\n2026-12-31 the holiday"
    assert read_lines(show_lines(read)) == read


def test_a_line_that_is_no_holiday_is_told() -> None:
    """Whatever is typed is a mistake of its line, never another error."""
    with pytest.raises(BadConfig) as caught:
        parse_schedule({"timezone": "UTC", "holidays": read_lines("Christmas\nXX\nDE-ZZ\n24.12.2026 x")}, "s")
    assert [mistake.split(": ")[0] for mistake in caught.value.mistakes] == [
        "s.holidays[1].date",
        "s.holidays[2].country",
        "s.holidays[3].subdivision",
        "s.holidays[4].date",
    ]


def test_a_day_can_be_asked_for() -> None:
    """A date is in the holidays of a schedule or not, and has a name there."""
    holidays = parse_schedule(mapping(holidays=[BAVARIA, {"date": "2026-12-24"}])).holidays
    assert date(2026, 1, 6) in holidays
    assert date(2026, 1, 7) not in holidays
    assert (holidays.name(date(2026, 1, 6)), holidays.name(date(2026, 12, 24))) == ("Epiphany", "the holiday")


def test_what_the_machine_speaks_changes_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes give one reason: names are English in any locale."""
    national_holidays.cache_clear()
    monkeypatch.setenv("LANGUAGE", "de")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    assert national_holidays(National("DE"), 2026)[date(2026, 1, 1)] == "New Year's Day"


def test_a_day_that_is_made_up_for_belongs_to_its_own_year() -> None:
    """New Year's Day of 2028, a Saturday, is kept on the last day of 2027 in the United States."""
    assert date(2027, 12, 31) in national_holidays(National("US"), 2027)
    assert all(day.year == 2028 for day in national_holidays(National("US"), 2028))


@pytest.mark.parametrize("year", [1900, 1969, 2024, 2077, 2199])
def test_every_country_has_an_answer_for_every_year(year: int) -> None:
    """From the first year that can be asked about to the last, without an error or a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for country in subdivisions():
            national_holidays(National(country), year)
