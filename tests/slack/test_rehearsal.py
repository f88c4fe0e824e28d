"""`/oncall test outage`: asked for in Slack, after a second look."""

from __future__ import annotations

from bot.sandbox.content import visible_text
from bot.sandbox.state import Message
from bot.slack.rehearsal import START
from tests.slack.conftest import Desk, until


def offer(desk: Desk, user: str) -> Message:
    """What only this person sees: the question, with its button."""
    person = desk.sandbox.state.find_user(f"@{user}")
    assert person is not None
    return [one for one in desk.said("#general", person.id) if one.ephemeral_to == person.id][-1]


async def test_it_asks_before_it_pages(desk: Desk) -> None:
    """The command alone opens nothing; the button does, and the card says what it is."""
    await desk.connect()
    assert "pages whoever is on call on *payments-primary*" in await desk.types(
        "cho", "/oncall test outage payments-primary"
    )
    assert await desk.views.list() == []
    await desk.clicks("cho", offer(desk, "cho"), START)
    await until(lambda: any("rehearses an outage" in said for said in desk.whispers("cho", "#general")))
    (incident,) = await desk.views.list()
    assert incident.title.startswith("REHEARSAL")
    await desk.card(incident, "#payments")
    await desk.slack.cards.show(incident.id)
    await desk.run_cards()
    assert "REHEARSAL: Slack is down" in visible_text(desk.said("#payments")[0])


async def test_only_an_admin_rehearses_for_others(desk: Desk) -> None:
    """Ben is not on call on that schedule; ana, who is on call, may for herself."""
    await desk.connect()
    assert "Only an admin rehearses for others" in await desk.types(
        "ben", "/oncall test outage payments-primary"
    )
    assert "pages whoever is on call" in await desk.types("ana", "/oncall test outage")
    assert await desk.views.list() == []


async def test_what_it_does_not_know_it_says(desk: Desk) -> None:
    """Another test, no such schedule, and one that no service pages first."""
    await desk.connect()
    assert "/oncall test outage" in await desk.types("cho", "/oncall test lasers")
    assert "no such schedule" in await desk.types("cho", "/oncall test outage moonbase")
    assert "nothing to rehearse with" in await desk.types("cho", "/oncall test outage payments-secondary")
