"""A schedule as it is typed: nothing is lost on the way through the form, and mistakes name their field."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.slack.lint import lint_view
from bot.slack.modals import schedule_views as views
from bot.slack.modals.opening import View, _payload
from bot.slack.modals.schedule_draft import LayerDraft, Mistakes, ScheduleDraft
from bot.slack.modals.schedule_edits import typed_layer, typed_whole, with_entry, with_person
from bot.slack.rota.schedule_text import SHOWN, change_lines
from engine.directory import NamedSchedule, Person
from engine.errors import BadCommand
from engine.rota.schedules import Edited
from engine.schedule import Schedule, parse_schedule
from engine.schedule.diff import diff

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "cases" / "schedules.json").read_text(encoding="utf-8")
)
PEOPLE = {
    number: Person(number, f"person {number}", f"U{number:04}", "UTC", admin=False, active=True)
    for number in range(1, 61)
}


def edited(schedule: Schedule, name: str = "payments") -> Edited:
    return Edited(NamedSchedule(7, name, schedule, channel="#payments"), 3, "ana", NOW)


def numbered(case: dict[str, Any]) -> dict[str, Any]:
    """The case with people by number, as the directory has them."""
    text = json.dumps({**case["schedule"], "overrides": []})
    names = sorted(_users(case["schedule"]))
    mapping = json.loads(text)
    ids = {name: str(number) for number, name in enumerate(names, start=1)}

    def of(entry: Any) -> Any:
        return [ids[one] for one in entry] if isinstance(entry, list) else ids[entry]

    for layer in mapping["layers"]:
        layer["users"] = [of(entry) for entry in layer["users"]]
    if mapping.get("fallback"):
        mapping["fallback"] = ids[mapping["fallback"]]
    return mapping


def _users(mapping: dict[str, Any]) -> set[str]:
    found = {mapping["fallback"]} if mapping.get("fallback") else set()
    for layer in mapping["layers"]:
        for entry in layer["users"]:
            found.update(entry if isinstance(entry, list) else [entry])
    return found


FORMED = [case for case in CASES if case["schedule"]["layers"]]
FORMED = [
    case
    for case in FORMED
    if all(all(entry for entry in layer["users"]) and layer["users"] for layer in case["schedule"]["layers"])
]
FORMED = [
    case
    for case in FORMED
    if all(w["days"] for layer in case["schedule"]["layers"] for w in layer.get("restrictions") or [])
]


def test_most_golden_schedules_fit_the_form() -> None:
    """Left out are only those that the form refuses: layers of nobody, windows without days."""
    assert len(FORMED) > 300


@pytest.mark.parametrize("case", FORMED, ids=lambda case: case["id"])
def test_an_edit_that_types_nothing_changes_nothing(case: dict[str, Any]) -> None:
    """From the schedule into the form, through the database as JSON, and out again: the same schedule."""
    schedule = parse_schedule(numbered(case))
    draft = ScheduleDraft.from_json(json.loads(json.dumps(ScheduleDraft.of(edited(schedule)).to_json())))
    assert draft.schedule() == schedule


def test_holidays_of_countries_and_of_one_layer_survive_an_edit() -> None:
    """Of the schedule and of a layer in its place; a day with a name beside a country's."""
    layer = {"users": ["1"], "start": "2026-03-02T09:00", "rotation": {"every": 1, "unit": "week"}}
    own = [{"country": "US"}, {"date": "2026-07-03", "name": "the day before"}]
    mapping = {
        "timezone": "UTC",
        "layers": [{**layer, "skip_holidays": True, "holidays": own}, {**layer, "skip_holidays": True}],
        "holidays": [{"country": "DE", "subdivision": "BY"}, {"date": "2026-12-24", "name": "Christmas Eve"}],
    }
    schedule = parse_schedule(mapping)
    draft = ScheduleDraft.of(edited(schedule))
    assert draft.holidays == "DE-BY\n2026-12-24 Christmas Eve"
    assert draft.layers[0].holidays == "US\n2026-07-03 the day before"
    assert draft.schedule() == schedule


def a_draft(**changes: Any) -> ScheduleDraft:
    return replace(ScheduleDraft.new("payments", "Europe/Berlin", "1", NOW), **changes)


def test_a_new_schedule_begins_last_monday_with_whoever_makes_it() -> None:
    """Saved as it is opened it has somebody on call from now on."""
    schedule = a_draft().schedule()
    (layer,) = schedule.layers
    assert layer.users == (("1",),)
    assert layer.start == datetime(2026, 3, 2, 9, 0)  # noqa: DTZ001  # a local time


@pytest.mark.parametrize(
    ("changes", "block", "said"),
    [
        ({"name": " "}, "name", "Give the schedule a name"),
        ({"timezone": "Europe/Berln"}, "zone", "There is no time zone"),
        ({"timezone": ""}, "zone", "Must not be empty"),
        ({"holidays": "christmas"}, "holidays", "I don't understand “christmas”"),
        ({"holidays": "2026-13-25 Christmas"}, "holidays", "must be a date"),
        ({"holidays": "XX"}, "holidays", "a country that is known"),
        ({"holidays": "DE-XX"}, "holidays", "DE has no 'XX'"),
        ({"layers": ()}, "layers", "needs a layer"),
        ({"layers": (LayerDraft("l0", "nights", date="2026-03-02"),)}, "layers", "Nobody is in layer nights"),
    ],
)
def test_a_mistake_is_said_at_its_field(changes: dict[str, Any], block: str, said: str) -> None:
    """In words that say what to type instead."""
    with pytest.raises(Mistakes) as caught:
        a_draft(**changes).schedule()
    assert said in caught.value.errors[block]


@pytest.mark.parametrize(
    ("changes", "block"),
    [
        ({"name": ""}, "name"),
        ({"every": "0"}, "every"),
        ({"every": "often"}, "every"),
        ({"date": ""}, "date"),
        ({"hours": "nine to five"}, "hours"),
        ({"holidays": "Bavaria"}, "own"),
    ],
)
def test_a_mistake_in_a_layer_is_said_at_its_field(changes: dict[str, Any], block: str) -> None:
    """Every mistake of the screen at once."""
    (layer,) = a_draft().layers
    with pytest.raises(Mistakes) as caught:
        replace(layer, **changes).mapping()
    assert set(caught.value.errors) == {block}


def test_layers_and_people_are_moved_joined_parted_and_removed() -> None:
    """Each press does one thing, and what cannot be done does nothing."""
    layer = a_draft().layers[0]
    for person_id in (2, 3):
        layer = with_person(layer, person_id)
    assert with_entry(layer, "up:0").entries == layer.entries
    assert with_entry(layer, "down:0").entries == (("2",), ("1",), ("3",))
    joined = with_entry(layer, "join:1")
    assert joined.entries == (("1", "2"), ("3",))
    assert with_entry(joined, "part:0").entries == (("1",), ("2",), ("3",))
    assert with_entry(layer, "remove:1").entries == (("1",), ("3",))
    with pytest.raises(BadCommand):
        with_entry(layer, "up:9")
    draft = a_draft().with_layer("UTC", NOW).with_layer("UTC", NOW)
    keys = [one.key for one in draft.layers]
    assert len(set(keys)) == 3
    assert [one.key for one in draft.moved(keys[2], -1).layers] == [keys[0], keys[2], keys[1]]
    assert [one.key for one in draft.without(keys[1]).with_layer("UTC", NOW).layers] == [
        keys[0],
        keys[2],
        keys[1],
    ]


def test_typing_is_taken_over_and_the_name_of_what_exists_is_not() -> None:
    """Policies and midwatch.yaml know a schedule by its name."""
    values = {"name": "renamed", "zone": " UTC ", "holidays": "2026-12-25", "channel": "#ops"}
    assert typed_whole(a_draft(), values, "2").name == "renamed"
    kept = typed_whole(a_draft(schedule_id=7), values, "2")
    assert (kept.name, kept.timezone, kept.fallback, kept.channel) == ("payments", "UTC", "2", "#ops")
    typed = typed_layer(a_draft().layers[0], {"every:l0": "2", "unit:l0": "day", "skip:l0": ["skip"]})
    assert (typed.every, typed.unit, typed.skip_holidays) == ("2", "day", True)


def test_seconds_of_a_handoff_stay_until_it_is_moved() -> None:
    """The form shows hours and minutes only."""
    mapping = {
        "timezone": "UTC",
        "layers": [
            {"users": ["1"], "start": "2026-03-02T09:00:30", "rotation": {"every": 1, "unit": "week"}}
        ],
    }
    draft = ScheduleDraft.of(edited(parse_schedule(mapping)))
    assert draft.schedule().layers[0].start.second == 30
    moved = draft.changed(replace(draft.layers[0], time="10:00"))
    assert moved.schedule().layers[0].start.second == 0


# --- what the form shows ----------------------------------------------------------------------------

HOSTILE = "<!channel> & `*_~` <script> " + "x" * 300


def large() -> ScheduleDraft:
    """Twelve layers with sixty people each, and everything long that may be."""
    entries = tuple((str(number),) for number in range(1, 61))
    layers = tuple(
        LayerDraft(
            f"l{at}", HOSTILE[:79], entries, date="2026-03-02", hours="\n".join(["daily 09:00-17:00"] * 20)
        )
        for at in range(12)
    )
    return a_draft(name=HOSTILE[:79], layers=layers, holidays="2026-12-25 Christmas\n" * 120)


@pytest.mark.parametrize("schedule_id", [None, 7])
def test_twelve_layers_and_sixty_people_fit_slacks_limits(schedule_id: int | None) -> None:
    """Every screen of it: a hundred blocks, three thousand letters of memory, 250 kB."""
    draft = replace(large(), schedule_id=schedule_id)
    about = {"d": 10**12, "r": 10**6}
    changes = diff(a_draft().schedule(), large().schedule(), NOW, datetime(2026, 4, 1, tzinfo=UTC))
    lines = change_lines(changes, large().schedule(), PEOPLE)
    assert len(lines) <= SHOWN + 1
    shown = [
        views.whole(draft, PEOPLE, about, "x" * 2000),
        *(views.one_layer(draft, layer, PEOPLE, about, HOSTILE) for layer in draft.layers),
        views.review(draft, lines, about, HOSTILE),
        views.review(draft, [], about),
    ]
    for view in shown:
        payload = _payload(view, "schedule", "https://hooks.slack.example/" + "x" * 200)
        assert lint_view(payload) == []
        assert len(json.dumps(payload)) < 250_000


def test_more_people_than_a_view_holds_stay_as_they_are() -> None:
    """A hundred turns: the first are shown, the rest are counted, none is lost."""
    entries = tuple((str(number % 60 + 1),) for number in range(100))
    draft = a_draft()
    layer = replace(draft.layers[0], entries=entries)
    draft = draft.changed(layer)
    view = views.one_layer(draft, layer, PEOPLE, {"d": 1, "r": 1})
    assert lint_view(_payload(view, "schedule", "")) == []
    assert "and 25 more turns" in str(view.blocks)
    assert draft.schedule().layers[0].users == entries


def test_what_the_form_shows_of_others_is_inert() -> None:
    """A layer named after a mention mentions nobody."""
    said = str(views.whole(large(), PEOPLE, {}).blocks)
    assert "&lt;!channel&gt;" in said
    rows = [block for block in views.whole(large(), PEOPLE, {}).blocks if block["type"] == "section"]
    assert all("<!channel>" not in str(block) for block in rows)


def test_a_view_is_one() -> None:
    """Each screen is what the plumbing of modals takes."""
    assert isinstance(views.whole(a_draft(), PEOPLE, {}), View)
