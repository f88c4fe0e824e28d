"""The picture of a schedule: facts of the SVG, and that its PNG can be shown.

Not pixels: those belong to the renderer.
"""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from bot.picture import colors, font, png
from bot.picture.days import days_from
from bot.picture.draw import draw
from bot.picture.png import ZOOM, rendered
from bot.picture.sheet import DAY, WIDTH, column
from engine.schedule import Schedule, parse_schedule

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)  # Monday, 13:00 in Berlin
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>",
    "a & b",
    "\u202egnp.exe",
    "\x00\x07nul",
    "🔥 Ann 🚒",
    "陈伟",
    "</text>",
]


def layer(name: str, users: list[Any], **changes: Any) -> dict[str, Any]:
    plain = {"start": "2026-11-02T09:00", "rotation": {"every": 1, "unit": "week"}}
    return {"name": name, "users": users, **plain, **changes}


def schedule(*layers: dict[str, Any], **changes: Any) -> Schedule:
    return parse_schedule({"timezone": "Europe/Berlin", "layers": list(layers), **changes})


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314  # of our own making


def drawn(of: Schedule, now: datetime = NOW, names: dict[str, str] | None = None) -> ET.Element:
    return parsed(draw("payments", of, names or {}, now))


def texts(tree: ET.Element) -> list[str]:
    return [element.text or "" for element in tree.iter(f"{SVG}text")]


def marked(tree: ET.Element, what: str, row: str = "final") -> list[ET.Element]:
    groups = [group for group in tree.iter(f"{SVG}g") if group.get("data-row") == row]
    return [one for group in groups for one in group if one.get("data-is") == what]


def x(element: ET.Element) -> float:
    return float(element.get("x", "nan"))


def test_every_layer_has_a_row_and_the_answer_stands_below() -> None:
    """Each week repeats the rows: the layers from the highest down, then who is on call."""
    tree = drawn(schedule(layer("days", ["ana"]), layer("nights", ["ben"])))
    names = [text for text in texts(tree) if text in {"days", "nights", "on call"}]
    assert names == ["days", "nights", "on call"] * 4
    assert {one.get("data-people") for one in marked(tree, "shift", "layer")} == {"ana", "ben"}
    assert {one.get("data-people") for one in marked(tree, "shift")} == {"ana"}


def test_a_handoff_is_where_its_hour_is_and_says_it() -> None:
    """Monday 09:00 is at nine twenty-fourths of Monday's column, and 09:00 stands below it."""
    tree = drawn(schedule(layer("weekly", ["ana", "ben"])))
    monday = [one for one in marked(tree, "shift") if x(one) > column(0)]
    assert [one.get("data-people") for one in monday] == ["ben", "ana", "ben", "ana"][::-1]
    assert all(x(one) == pytest.approx(column(0) + DAY * 9 / 24, abs=0.01) for one in monday)
    assert texts(tree).count("09:00") == 4


def test_a_gap_is_red_and_says_so() -> None:
    """Nights without anybody: a red bar each, the word, and the legend."""
    office = [{"days": ["mon", "tue", "wed", "thu", "fri"], "from": "09:00", "to": "17:00"}]
    tree = drawn(schedule(layer("office", ["ana"], restrictions=office)))
    gaps = marked(tree, "gap")
    assert len(gaps) > 4 * 5
    assert {one.get("fill") for one in gaps} == {colors.GAP}
    assert "nobody" in texts(tree)
    assert "nobody on call" in texts(tree)


def test_a_schedule_without_gaps_shows_no_red() -> None:
    """Red is for gaps alone: nobody's colour comes near it."""
    tree = drawn(schedule(layer("weekly", [f"p{number}" for number in range(60)])))
    assert marked(tree, "gap") == []
    assert "nobody on call" not in texts(tree)


def test_an_override_is_hatched_exactly_where_it_changes_who_is_on_call() -> None:
    """From Thursday 18:00 to Saturday 09:00; one that puts on who is on anyway is not hatched."""
    hours = {"start": "2026-12-03T17:00:00Z", "end": "2026-12-05T08:00:00Z"}
    taken = {"kind": "replace_all", "user": "cho", **hours}
    same = {
        "kind": "replace_all",
        "user": "ana",
        "start": "2026-12-09T17:00:00Z",
        "end": "2026-12-10T08:00:00Z",
    }
    tree = drawn(schedule(layer("weekly", ["ana"]), overrides=[taken, same]))
    (hatched,) = marked(tree, "override")
    assert x(hatched) == pytest.approx(column(3 + 18 / 24), abs=0.01)
    assert float(hatched.get("width", "0")) == pytest.approx(DAY * (2 - 9 / 24), abs=0.01)
    assert "override" in texts(tree)
    assert marked(tree, "override", "layer") == []


@pytest.mark.parametrize(
    ("now", "zone", "label"),
    [
        (datetime(2026, 3, 25, 12, tzinfo=UTC), "Europe/Berlin", "29: 23h"),
        (datetime(2026, 10, 20, 12, tzinfo=UTC), "Europe/Berlin", "25: 25h"),
        (datetime(2026, 4, 1, 12, tzinfo=UTC), "Australia/Lord_Howe", "5: 24.5h"),
    ],
)
def test_a_day_of_another_length_is_as_wide_as_any_and_says_its_hours(
    now: datetime, zone: str, label: str
) -> None:
    """The week of a clock change: midnights stay on the columns' lines."""
    tree = drawn(
        schedule(layer("daily", ["ana", "ben"], rotation={"every": 1, "unit": "day"}), timezone=zone), now
    )
    assert label in texts(tree)
    inner = [one for one in marked(tree, "shift") if x(one) > column(0) + 0.1]
    offsets = {round((x(one) - column(0)) / DAY % 1, 2) for one in inner}
    assert len(offsets) <= 2, "handoffs at nine drift by the changed hour of that one day only"


def test_a_day_that_a_zone_leaves_out_has_a_column_of_no_time() -> None:
    """Pacific/Apia has no 30 December 2011; what comes after it stays in place."""
    apia = schedule(layer("weekly", ["ana"], start="2011-12-01T09:00"), timezone="Pacific/Apia")
    now = datetime(2011, 12, 28, 12, tzinfo=UTC)
    days = days_from(now, apia.zone, 7)
    places = [days.place(at) for at in days.midnights]
    assert places == sorted(places)
    assert len(marked(drawn(apia, now), "shift")) == 4


def test_now_is_marked_once() -> None:
    """In the first week, at the hour it is in the schedule's zone."""
    (mark,) = [
        one
        for one in drawn(schedule(layer("weekly", ["ana"]))).iter(f"{SVG}rect")
        if one.get("data-is") == "now"
    ]
    assert x(mark) == pytest.approx(column(13 / 24), abs=1)


def test_it_says_in_words_who_is_on_call_and_who_then() -> None:
    """The line that somebody reads at three in the night."""
    tree = drawn(schedule(layer("weekly", ["1", "2"])), names={"1": "ana", "2": "ben"})
    assert "Now: ana until Mon 7 Dec 09:00, then ben" in texts(tree)
    assert "Now: nobody" in texts(drawn(schedule()))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_text(name: str) -> None:
    """Whatever people, layers and schedules are called, no markup comes of it, and nothing unseen."""
    svg = draw(name, schedule(layer(name, [name, "ben"])), {}, NOW)
    tree = parsed(svg)
    tags = {element.tag.removeprefix(SVG) for element in tree.iter()}
    assert tags <= {"svg", "defs", "pattern", "rect", "g", "text", "path"}
    assert all(letter.isprintable() for letter in svg)
    assert rendered(svg).startswith(b"\x89PNG")


@pytest.mark.parametrize("count", [1, 3, 7, 12])
def test_no_word_is_wider_than_its_room_and_none_is_tiny(count: int) -> None:
    """Long names are cut; nothing runs out of the picture, and nothing is smaller than nine pixels."""
    layers = [
        layer(
            f"a layer with quite a long name, number {number}",
            [f"Konstantina Papadopoulou the {number}{other}th" for other in range(5)],
            rotation={"every": 1, "unit": "day"},
        )
        for number in range(count)
    ]
    for element in drawn(schedule(*layers)).iter(f"{SVG}text"):
        measured = font.bold() if element.get("font-weight") else font.regular()
        size = float(element.get("font-size", "0"))
        assert size >= 9
        assert x(element) + measured.width(element.text or "", size) <= WIDTH


@pytest.mark.parametrize("number", range(60))
def test_names_can_be_read_on_every_colour(number: int) -> None:
    """Contrast of 4.5 at least, on the answer's row and on the pale rows above it."""
    for shade in (colors.color(number), colors.pale(colors.color(number))):
        assert colors.contrast(colors.ink_on(shade), shade) >= 4.5


def test_neighbours_in_a_rotation_are_told_apart() -> None:
    """Whoever follows has another colour, for sixty people."""
    shades = [colors.color(number) for number in range(60)]
    assert all(one != other for one, other in pairwise(shades))
    assert colors.GAP not in shades


def big(count: int) -> Schedule:
    people = [f"person-{number:02}" for number in range(60)]
    hourly = {"every": 1, "unit": "hour"}
    return schedule(*[layer(f"layer {number}", people, rotation=hourly) for number in range(count)])


@pytest.mark.parametrize(
    "of",
    [schedule(), schedule(layer("weekly", ["ana"])), big(3), big(12)],
    ids=["nobody", "one", "hourly", "twelve layers and sixty people"],
)
def test_the_png_is_one_and_its_size_is_bounded(of: Schedule) -> None:
    """Three pixels for each of a phone's, no taller than a phone can scroll through, under a megabyte."""
    made = rendered(draw("payments", of, {}, NOW))
    assert made[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", made[16:24])
    assert width == WIDTH * ZOOM
    assert height <= 3000
    assert len(made) < 1_000_000


def test_words_are_drawn_with_the_shipped_font_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slim container has no fonts, where all text would vanish without an error."""
    svg = draw("payments", schedule(layer("weekly", ["ana", "ben"])), {}, NOW)
    wordless = parsed(svg)
    for parent in list(wordless.iter()):
        for word in parent.findall(f"{SVG}text"):
            parent.remove(word)
    asked: list[dict[str, Any]] = []
    real = png.resvg_py.svg_to_bytes

    def remembered(**arguments: Any) -> bytes:
        asked.append(arguments)
        return real(**arguments)

    monkeypatch.setattr(png.resvg_py, "svg_to_bytes", remembered)
    assert len(rendered(svg)) > 2 * len(rendered(ET.tostring(wordless, encoding="unicode")))
    assert [arguments["skip_system_fonts"] for arguments in asked] == [True, True]


def test_the_font_comes_with_its_licence() -> None:
    """Both files and the words under which they may be passed on."""
    licence = font.path("LICENSE-DejaVu.txt").read_text(encoding="utf-8")
    assert "Bitstream Vera" in licence
    assert "Tavmjong Bah" in licence
    assert all(font.path(name).is_file() for name in font.FILES)
