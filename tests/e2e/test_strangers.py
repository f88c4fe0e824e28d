"""Who Midwatch does not know changes nothing, and hears what to do."""

from __future__ import annotations

import pytest

from bot.slack.blocks import ACK
from tests.e2e.team import Team

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_somebody_new_becomes_a_person_and_then_can_ack(team: Team) -> None:
    """Ack by an unknown member: told to run /oncall me, which makes them a person; then it works."""
    number = await team.alert()
    await team.clicks("dee", ACK, team.card(number))
    await team.is_told("dee", "/oncall me")
    assert await team.status(number) == "triggered"
    assert "You are *dee*, time zone Europe/London" in await team.types("dee", "/oncall me")
    assert await team.status(number) == "triggered"
    await team.clicks("dee", ACK, team.card(number))
    await team.both_cards_say(number, "ACKED by @dee", "via Slack button")


@pytest.mark.parametrize(("name", "why"), [("gus", "Guests may not"), ("eve", "only people of its own")])
async def test_guests_and_strangers_are_refused(team: Team, name: str, why: str) -> None:
    """By button, by command and by /oncall me; nothing is changed."""
    number = await team.alert()
    people = len((await team.midwatch.app.roster.directory()).people)
    await team.clicks(name, ACK, team.card(number))
    await team.is_told(name, why)
    for typed in (f"/oncall ack {number}", f"/oncall resolve {number}", "/override @ben 2h", "/oncall me"):
        assert why in await team.types(name, typed), typed
    assert await team.status(number) == "triggered"
    directory = await team.midwatch.app.roster.directory()
    assert len(directory.people) == people
    assert await team.midwatch.app.roster.overrides.listed() == []
