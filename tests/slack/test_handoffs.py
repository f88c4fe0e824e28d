"""Handoffs and reminders in Slack: the post, its button, and turning messages off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.sandbox.content import visible_text
from bot.sandbox.server import SandboxServer
from bot.sandbox.state import Message
from tests.fakes import FakeClock
from tests.slack.office import Office, opened


@pytest.fixture
async def office(
    clock: FakeClock, configured: Path, tmp_path: Path, sandbox: SandboxServer
) -> AsyncIterator[Office]:
    async with opened(clock, configured, tmp_path, sandbox) as made:
        yield made


async def handed_over(office: Office) -> Message:
    """Ben takes over from ana by an override; the demo's schedule has no channel, so he has the sheet."""
    await office.types("ben", "/override me 2h payments-primary")
    sheet = office.direct("ben")[-1]
    assert "🔁 payments-primary: ben on call" in visible_text(sheet)
    assert "Open incidents: none." in visible_text(sheet)
    return sheet


async def test_accept_by_the_button(office: Office) -> None:
    """The sheet says who accepted, and the button is gone."""
    sheet = await handed_over(office)
    await office.clicks("ben", sheet, "handoff_accept")
    shown = office.direct("ben")[-1]
    assert shown.ts == sheet.ts
    assert "✅ Accepted by ben" in visible_text(shown)
    assert "handoff_accept" not in str(shown.blocks)
    await office.later(minutes=20)
    assert office.direct("ben")[-1].ts == sheet.ts


async def test_accept_too_late(office: Office) -> None:
    """The shift has gone on to somebody else: told who is on call now."""
    sheet = await handed_over(office)
    await office.later(minutes=15)
    assert "You did not accept the handoff" in visible_text(office.direct("ben")[-1])
    await office.later(hours=2)
    await office.clicks("ben", sheet, "handoff_accept")
    assert "Accepted by" not in visible_text(sheet)
    said = [visible_text(message) for message in office.direct("ben")]
    assert any("That handoff is over: ana is on call now" in text for text in said)


async def test_reminders_are_turned_off_and_on(office: Office) -> None:
    """All, one kind, and back; a kind that there is not is refused, and strangers have none."""
    for user, typed, words in (
        ("ana", "", "🔔 You are reminded of your shifts 24 h before a shift, 1 h before, when it starts"),
        ("ana", "off 24h", "🔔 You are reminded of your shifts 1 h before, when it starts, when it ends"),
        ("ana", "off", "🔕 You get no reminders"),
        ("ana", "on start end", "🔔 You are reminded of your shifts when it starts, when it ends"),
        ("ana", "on", "24 h before a shift, 1 h before, when it starts, when it ends"),
        ("ana", "off weekly", "There are no reminders `weekly`"),
        ("ana", "maybe", "Say on or off"),
        ("dee", "off", "Run `/oncall me` once"),
        ("gus", "off", "Guests may not use Midwatch"),
    ):
        assert words in await office.types(user, f"/oncall me reminders {typed}".strip()), typed


async def test_who_turned_them_off_is_not_told(office: Office) -> None:
    """Ana's shift ends by an override, and she does not hear of it."""
    await office.types("ana", "/oncall me reminders off")
    before = len(office.direct("ana"))
    await handed_over(office)
    assert [
        visible_text(one) for one in office.direct("ana")[before:] if "is over" in visible_text(one)
    ] == []
