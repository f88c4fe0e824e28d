"""Cover in Slack: typed, asked by direct message, clicked; right, by somebody else, and too late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from bot.sandbox.content import visible_text
from bot.sandbox.server import SandboxServer
from bot.slack.grammar import cover_text
from engine.errors import BadCommand
from tests.fakes import START, FakeClock
from tests.slack.office import Office, opened

BERLIN = ZoneInfo("Europe/Berlin")
FRIDAY = datetime(2026, 3, 6, 17, 0, tzinfo=UTC)  # 18:00 in Berlin


@pytest.fixture
async def office(
    clock: FakeClock, configured: Path, tmp_path: Path, sandbox: SandboxServer
) -> AsyncIterator[Office]:
    async with opened(clock, configured, tmp_path, sandbox) as made:
        yield made


async def asked(office: Office) -> None:
    answer = await office.types("ana", "/oncall cover me fri 18:00-22:00")
    assert "🙏 Asking for cover on *payments-primary* <!date^" in answer
    assert "(number 1): *ben*" in answer
    assert "`/oncall cover cancel 1`" in answer


@pytest.mark.parametrize(
    ("typed", "schedule"),
    [
        ("me fri 18:00-22:00", None),
        ("fri 18:00 - 22:00", None),
        ("for me “Fri” 18:00–22:00", None),
        ("me fri 18:00-22:00 payments-primary", "payments-primary"),
        ("payments night fri 18:00-22:00", "payments night"),
        ("me fri 18:00 to 22:00 on payments night", "payments night"),
    ],
)
def test_the_time_and_the_schedule_are_read(typed: str, schedule: str | None) -> None:
    """In either order, with what keyboards make of quotes and dashes."""
    read = cover_text.parse(typed.replace("“", "").replace("”", ""), START, BERLIN)
    assert isinstance(read, cover_text.AskCover)
    assert (read.span.start, read.span.end) == (FRIDAY, FRIDAY + timedelta(hours=4))
    assert read.schedule == schedule


def test_the_other_forms_are_read() -> None:
    """By verb and number; a part may be named."""
    assert (
        cover_text.parse("", START, BERLIN)
        == cover_text.parse("list", START, BERLIN)
        == cover_text.ListCovers()
    )
    assert cover_text.parse("cancel #7", START, BERLIN) == cover_text.AnswerCover("cancel", 7)
    assert cover_text.parse("no 7", START, BERLIN) == cover_text.AnswerCover("decline", 7)
    taken = cover_text.parse("take 7 fri 18:00-20:00", START, BERLIN)
    assert isinstance(taken, cover_text.AnswerCover)
    assert taken.span is not None
    assert (taken.number, taken.span.start) == (7, FRIDAY)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("me", "Say for when"),
        ("me sometime", "/oncall cover me fri 18:00-22:00"),
        ("me fri 18:00", "/oncall cover me fri 18:00-22:00"),
        ("<@U0BEN> fri 18:00-22:00", "Cover is asked for oneself"),
        ("take", "Name the request by its number"),
        ("cancel everything", "Name the request by its number"),
        ("take 7 sometime", "Times:"),
    ],
)
def test_what_is_not_understood_is_answered_with_the_form(typed: str, words: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(BadCommand, match=words.replace("[", r"\[")):
        cover_text.parse(typed, START, BERLIN)


async def test_from_the_question_to_the_override(office: Office) -> None:
    """Asked, accepted by a button, on call, and everybody's message says so."""
    await asked(office)
    question = office.direct("ben")[-1]
    assert "🙏 ana asks for cover on payments-primary: Fri 06 Mar 12:00 to 16:00 America/New_York" in (
        visible_text(question)
    )
    listed = await office.types("cho", "/oncall cover list")
    assert "*ana* on *payments-primary*" in listed
    assert "`/oncall cover take 1`" in listed
    await office.clicks("ben", question, "cover_accept")
    assert "✅ You cover ana on payments-primary" in visible_text(office.direct("ben")[-1])
    assert office.direct("ben")[-1].ts == question.ts
    assert "✅ ben covers you on payments-primary" in visible_text(office.direct("ana")[-1])
    assert "*ben*" in await office.types("ana", "/override list")
    assert "Nobody seeks cover" in await office.types("cho", "/oncall cover list")


async def test_half_of_it_by_a_button(office: Office) -> None:
    """What is left can be taken by command, to the minute."""
    await asked(office)
    await office.clicks("ben", office.direct("ben")[-1], "cover_accept_first")
    assert "Fri 06 Mar 12:00 to 14:00" in visible_text(office.direct("ben")[-1])
    assert "Still open: Fri 06 Mar 20:00 to 22:00" in visible_text(office.direct("ana")[-1])
    assert "✅ You cover ana" in await office.types("ben", "/oncall cover take 1 fri 14:00-15:30")
    assert "1 asked" not in (listed := await office.types("ana", "/oncall cover list"))
    assert "2 part(s) taken" in listed


async def test_a_click_that_comes_too_late(office: Office) -> None:
    """Told who has it, or that it is over; nothing changes."""
    await asked(office)
    stale = deepcopy(office.direct("ben")[-1])
    await office.types("ana", "/oncall cover cancel 1")
    assert "↩️ ana does not need cover any more" in visible_text(office.direct("ben")[-1])
    for button in ("cover_accept", "cover_accept_second", "cover_decline"):
        await office.clicks("ben", stale, button)
        assert "⚠️ ana does not need cover any more" in visible_text(office.direct("ben")[-1])
    assert "ana does not need cover any more" in await office.types("ben", "/oncall cover take 1")
    assert "Number 1 is over" in await office.types("ana", "/oncall cover cancel 1")
    assert "There is no override" in await office.types("ana", "/override list")


async def test_two_clicks_are_one_yes(office: Office) -> None:
    """Slack delivers twice, or somebody presses twice: one override, and the second is told."""
    await asked(office)
    question = deepcopy(office.direct("ben")[-1])
    await asyncio.gather(
        office.desk.clicks("ben", question, "cover_accept"),
        office.desk.clicks("ben", question, "cover_accept"),
    )
    await office.later(seconds=2)
    assert len(await office.app.roster.overrides.listed()) == 1
    assert any("It is taken already" in visible_text(one) for one in office.direct("ben"))


async def test_a_no_by_a_button_ends_it_when_nobody_else_is_there(office: Office) -> None:
    """Ben was the only one: ana is told at once."""
    await asked(office)
    await office.clicks("ben", office.direct("ben")[-1], "cover_decline")
    assert "Everybody who was asked declined" in visible_text(office.direct("ana")[-1])


async def test_somebody_else_may_not_answer(office: Office) -> None:
    """Who was not asked, who asked, who is a guest or unknown: each is told, and nobody is on call."""
    await asked(office)
    for user, words in (
        ("cho", "Only those who were asked"),
        ("ana", "That is your own request"),
        ("gus", "Guests may not use Midwatch"),
        ("dee", "Run `/oncall me` once"),
    ):
        assert words in await office.types(user, "/oncall cover take 1"), user
    assert "Only ana or an admin" in await office.types("ben", "/oncall cover cancel 1")
    assert "There is no override" in await office.types("ana", "/override list")


@pytest.mark.parametrize(
    ("user", "text", "words"),
    [
        ("ana", "me fri 18:00-22:00 nothing", "I don't know a schedule `nothing`"),
        ("cho", "me fri 18:00-22:00 payments-primary", "You are not on call on payments-primary"),
        ("ana", "take 9", "There is no cover request 9"),
        ("gus", "list", "Guests may not use Midwatch"),
    ],
)
async def test_a_command_that_cannot_be_is_refused(office: Office, user: str, text: str, words: str) -> None:
    """With what is wrong; nobody is asked."""
    assert words in await office.types(user, f"/oncall cover {text}")
    assert office.direct("ben") == []
