"""Who is on call, and shifts, asked in Slack: now, at a moment, the next ones, of a schedule, of a person."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import bot
from bot.sandbox.content import visible_text
from bot.slack import answers
from bot.slack.lint import lint_message
from bot.slack.rota import shift_answers
from engine.config.parse import parse_config
from engine.directory import Person
from engine.rota.on_call import ShiftOf, ShiftsOf
from tests.fakes import START
from tests.slack.conftest import Desk, until

DEMO = (Path(bot.__file__).parent / "demo.yaml").read_text()
NIGHTS = """- name: nights
  timezone: Europe/Berlin
  layers:
  - name: night
    users: [ana]
    start: "2026-01-05T09:00"
    rotation: {every: 1, unit: week}
    restrictions: [{days: [mon, tue, wed, thu, fri, sat, sun], from: "02:00", to: "03:00"}]
"""
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def with_nights() -> str:
    return DEMO.replace("\npolicies:", f"{NIGHTS}\npolicies:")


def crowded() -> str:
    """One schedule of 12 layers and 60 people, whose hourly turns change all day long."""
    people = [f"person-{LETTERS[n // 26]}{LETTERS[n % 26]}" for n in range(60)]
    entries = "".join(
        f"- {{name: {name}, slack: U0{n:04}, timezone: Asia/Tokyo}}\n" for n, name in enumerate(people)
    )
    layers = "".join(
        f'  - {{name: "layer {n} {"x" * 60}", '
        f"users: [[{', '.join(people)}], [{', '.join(people[n : n + 30])}]], "
        f'start: "2026-01-0{n % 9 + 1}T00:{n:02}", rotation: {{every: 1, unit: hour}}}}\n'
        for n in range(12)
    )
    schedule = f"- name: crowd-{'y' * 60}\n  timezone: UTC\n  layers:\n{layers}"
    return DEMO.replace("\nschedules:", f"{entries}\nschedules:").replace(
        "\npolicies:", f"{schedule}\npolicies:"
    )


@pytest.fixture
async def online(desk: Desk) -> Desk:
    await desk.connect()
    return desk


async def test_one_schedule_says_why(online: Desk) -> None:
    """The people, since when, until when, who is next, and the reason."""
    answer = await online.types("dee", "/oncall who payments-primary")
    assert "📟 *payments-primary*: *ana* · since <!date^" in answer
    assert "{date_long_pretty} at {time}|Mon 2026-" in answer
    assert "next: *ben*" in answer
    assert "Why: " in answer
    assert "weekly" in answer


@pytest.mark.parametrize(
    ("text", "person"),
    [
        ("/oncall who payments-primary at 2026-03-09 7:59", "ana"),
        ("/oncall who payments-primary at 2026-03-09 8:00", "ben"),
        ("/oncall who payments-primary at 2026-03-10", "ben"),
        ("/oncall payments-primary at 2026-03-16 14:00", "ana"),
        ("/oncall who is on call for payments-primary at 2pm on tuesday?", "ana"),
        ("/oncall who is on call for payments-primary at 2pm on 2026-03-10?", "ben"),
    ],
)
async def test_at_another_time(online: Desk, text: str, person: str) -> None:
    """On the asker's own clock; Dee's is London's."""
    await online.types("dee", "/oncall me")
    assert f"*payments-primary*: *{person}*" in await online.types("dee", text)


async def test_the_moment_is_said_as_it_was_understood(online: Desk) -> None:
    """The answer begins with it, of a schedule and of a person; an answer about now does not."""
    await online.types("dee", "/oncall me")
    for asked in ("payments-primary", "@ben", "@dee"):
        answer = await online.types("dee", f"/oncall who {asked} at 2026-03-10 18:00")
        assert answer.startswith("At <!date^1773165600^"), answer
        assert not (await online.types("dee", f"/oncall who {asked}")).startswith("At ")


async def test_a_shift_that_goes_on_behind_the_window(online: Desk) -> None:
    """It is said once that it goes on, also before the name of the schedule."""
    answer = await online.types("dee", "/oncall shifts @ben")
    assert " onwards on *payments-" in answer
    assert " on on " not in answer


async def test_before_there_was_a_schedule(online: Desk) -> None:
    """The past is answered from what was in force then."""
    assert "There was no schedule at that time" in await online.types(
        "dee", "/oncall who at 2026-02-01 09:00"
    )


async def test_the_next_ones(online: Desk) -> None:
    """So many shifts after the present one, on one schedule and of one person."""
    answer = await online.types("dee", "/oncall who payments-primary next 3")
    first, *then = answer.splitlines()
    assert first.startswith("📟 *payments-primary*: *ana* until ")
    assert [line.split(" until ")[0] for line in then] == ["then *ben*", "then *ana*", "then *ben*"]
    assert len((await online.types("dee", "/oncall who next 2")).splitlines()) == 6
    own = (await online.types("dee", "/oncall who @ben next 2")).splitlines()
    assert [line.split()[-1] for line in own[1:]] == ["*payments-secondary*", "*payments-primary*"]


async def test_a_name_that_policies_and_services_know(online: Desk) -> None:
    """ "payments" is none of the schedules; they begin with it, and a service is known by its policy."""
    for name in ("payments", "checkout"):
        answer = await online.types("dee", f"/oncall who {name}")
        assert "payments-primary" in answer
        assert "payments-secondary" in answer
    assert "I don't know a schedule `mars`" in await online.types("dee", "/oncall who mars")


@pytest.mark.parametrize(
    "text",
    [
        "@midwatch who is on call for payments-primary?",
        "@midwatch who’s on call for payments-primary",
        "@midwatch Who's on-call for payments-primary right now?",
        "hey @midwatch whos oncall on payments-primary ?",
    ],
)
async def test_asked_in_a_thread(online: Desk, text: str) -> None:
    """In the words of people; the answer stands in the thread, for everybody."""
    await online.says("dee", "it is slow again", "#payments")
    first = next(iter(online.sandbox.state.find_channel("#payments").messages.values()))  # type: ignore[union-attr]  # it is there
    await online.says("dee", text, "#payments", first.ts)
    await until(lambda: len(online.said("#payments")) == 1)
    (answer,) = online.said("#payments")
    assert visible_text(answer).startswith("📟 *payments-primary*: *ana*")
    assert answer.thread_ts == first.ts


async def test_shifts_of_a_schedule(online: Desk) -> None:
    """The coming two weeks, or a stretch that was named, also one that is over."""
    answer = await online.types("dee", "/oncall shifts payments-primary")
    assert [line.split(": ")[0] for line in answer.splitlines()[1:]] == ["*ana*", "*ben*", "*ana*"]
    week = await online.types("dee", "/oncall shifts payments-primary 2026-03-10..2026-03-12")
    assert [line.split(": ")[0] for line in week.splitlines()[1:]] == ["*ben*"]
    assert "There was no schedule at that time." in await online.types(
        "dee", "/oncall shifts payments-primary 2026-02-01 to 2026-02-02"
    )
    assert "in the morning or in the evening" in await online.types("dee", "/oncall shifts payments 9 to 5")


async def test_shifts_of_a_person(online: Desk) -> None:
    """One's own by default; of whom is named by @; who is not here yet is told how to be."""
    own = await online.types("ana", "/oncall shifts")
    assert own.startswith("*ana*, ")
    assert "on *payments-primary*" in own
    assert await online.types("ana", "/oncall shifts me") == own
    assert await online.types("ben", "/oncall shifts @ana") == own
    assert "Run `/oncall me` once" in await online.types("dee", "/oncall shifts")
    await online.types("dee", "/oncall me")
    assert "*dee* is not on call from " in await online.types("dee", "/oncall shifts")


async def test_outsiders_see_no_shifts(online: Desk) -> None:
    """Who is asleep when is for members of the workspace."""
    for text in ("/oncall shifts payments-primary", "/oncall who payments-primary next 5"):
        assert "Guests may not use Midwatch" in await online.types("gus", text)


async def test_a_gap_is_named_and_so_are_hours_that_the_clock_skips(online: Desk) -> None:
    """Nobody is a word of its own, and what a clock change leaves out is said a fortnight ahead."""
    await online.setup.apply(parse_config(with_nights()))
    assert "⚠️ *nights*: *nobody* (a gap)" in await online.types("dee", "/oncall who nights")
    assert "does not exist" not in await online.types("dee", "/oncall who nights")
    online.clock.move(days=14)
    said = "⚠️ Sun 29 Mar 02:00–03:00 of layer *night* does not exist"
    assert said in await online.types("dee", "/oncall who nights")
    shifts = await online.types("dee", "/oncall shifts nights 2026-03-28 to 2026-03-30")
    assert said in shifts
    assert shifts.count("⚠️ *nobody* (a gap)") == 3
    assert said in await online.types("dee", "/oncall who nights next 30")


async def test_a_schedule_of_12_layers_and_60_people_fits(online: Desk) -> None:
    """Every answer about it is one that Slack takes."""
    await online.setup.apply(parse_config(crowded()))
    name = f"crowd-{'y' * 60}"
    for text in ("/oncall", f"/oncall who {name}", f"/oncall who {name} next 50", f"/oncall shifts {name}"):
        answer = await online.types("dee", text)
        assert "crowd-" in answer
        assert "NOT applied" not in answer
    for text in (f"/override {name} @ben fri to sun", f"/override {name} @ben 2h"):
        assert "*ben*" in await online.types("ana", text)


def test_lists_of_shifts_fit_slack() -> None:
    """Also with a hundred shifts of sixty people with the longest names."""
    people = [
        Person(n, "<!channel> & " + "x" * 200, None, "UTC", admin=False, active=True) for n in range(60)
    ]
    hour = timedelta(hours=1)
    shifts = [ShiftOf(START + n * hour, START + (n + 1) * hour, tuple(people)) for n in range(100)]
    found = [ShiftsOf(n, "&" * 80, tuple(shifts)) for n in range(5)]
    end = START + 100 * hour
    for message in (
        shift_answers.of_schedules(found, START, end),
        shift_answers.following(found, 50),
        shift_answers.of_person(people[0], found, START, end),
        shift_answers.next_of_person(people[0], found, 50),
        answers.paragraphs(["x"]),
    ):
        assert lint_message(message) == []
        assert "<!channel>" not in str(message.payload())
