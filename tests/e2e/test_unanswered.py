"""Nobody answered: the card turns black, the fallback is paged, and whoever comes late still takes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from bot.slack.blocks import ACK
from tests.e2e.team import Team

pytestmark = pytest.mark.asyncio(loop_scope="module")
BLACK = "#1f2937"

Way = Callable[[Team, int], Awaitable[None]]


async def button(team: Team, number: int) -> None:
    await team.clicks("cho", ACK, team.card(number))


async def sms(team: Team, number: int) -> None:
    await team.time_passes(minutes=1)
    await team.until(lambda: team.texts_to("cho", number))
    assert f"#{number} acknowledged" in await team.texts("cho", f"ack {number}")


async def call(team: Team, number: int) -> None:
    await team.time_passes(minutes=3)
    await team.answers_the_phone("cho")
    assert f"#{number} acknowledged" in await team.presses("cho", "4")


LATE = [
    ("via Slack button", button),
    pytest.param("via SMS", sms, marks=pytest.mark.slow),
    pytest.param("via phone call", call, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("how", "way"), LATE)
async def test_whoever_comes_late_still_takes_it(team: Team, how: str, way: Way) -> None:
    """Three levels, twice, and then the fallback: black, with the count of tries, until somebody answers."""
    number = await team.alert()
    for _ in range(2):  # passes of the ladder
        for minutes in (5, 10, 15):
            await team.time_passes(minutes=minutes)
    await team.time_passes(minutes=5)
    assert await team.status(number) == "unanswered"
    await team.until(lambda: "UNANSWERED" in team.words(number))
    card = team.card(number)
    assert card is not None
    assert card.attachments[0]["color"] == BLACK
    await team.both_cards_say(
        number, "Nobody answered: tried ", " times, 3 people", "Paging cho (fallback chain)"
    )
    await way(team, number)
    await team.both_cards_say(number, f"Acked by @cho {how}")
    assert await team.status(number) == "acknowledged"
    before = team.told()
    await team.time_passes(minutes=40)
    assert team.told() == before
    said = await team.types("cho", f"/oncall why {number}")
    assert "acknowledged by cho" in said
