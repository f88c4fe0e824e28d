"""Every way to acknowledge and to resolve, and that each of them stops everything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from bot.slack.blocks import ACK, REOPEN, RESOLVE, UNACK
from tests.e2e.team import GENERAL, PAYMENTS, Team

pytestmark = pytest.mark.asyncio(loop_scope="module")

Way = Callable[[Team, int], Awaitable[None]]


async def button_of_the_card(team: Team, number: int) -> None:
    await team.clicks("ana", ACK, team.card(number))


async def button_of_the_dm(team: Team, number: int) -> None:
    await team.clicks("ana", ACK, team.card(number, "ana"))


async def command(team: Team, number: int) -> None:
    assert f"#{number}" in await team.types("ana", f"/oncall ack {number}")


async def mention(team: Team, number: int) -> None:
    """In the card's thread, where slash commands do not work."""
    await team.time_passes(seconds=1)  # nobody types before Midwatch knows where its card stands
    card = team.card(number)
    assert card is not None
    await team.types("ana", "@Midwatch ack", PAYMENTS, card.ts)
    thread = team.space.channels[PAYMENTS].threads[card.ts]
    await team.until(lambda: thread[-1].bot)
    assert f"#{number}" in thread[-1].text


async def sms(team: Team, number: int) -> None:
    await texted(team, number)
    assert f"#{number} acknowledged" in await team.texts("ana", "4")


async def call(team: Team, number: int) -> None:
    await team.time_passes(minutes=3)
    said = await team.answers_the_phone("ana")
    assert f"Incident {number} firing" in said
    assert "Press 4 to acknowledge" in said
    assert f"#{number} acknowledged" in await team.presses("ana", "4")
    # A key is an answer; a call without one stays a question.
    await team.both_cards_say(number, "call answered")


async def texted(team: Team, number: int, name: str = "ana") -> None:
    """A minute passes, and the SMS is there."""
    await team.time_passes(minutes=1)
    await team.until(lambda: team.texts_to(name, number))


ACKS: dict[str, tuple[Way, str]] = {
    "card": (button_of_the_card, "via Slack button"),
    "dm": (button_of_the_dm, "via Slack button"),
    "command": (command, "via Slack command"),
    "mention": (mention, "via Slack mention"),
    "sms": (sms, "via SMS"),
    "call": (call, "via phone call"),
}


@pytest.mark.parametrize("way", ACKS)
async def test_an_ack_stops_all_of_it(team: Team, way: str) -> None:
    """Both cards say who acknowledged, how and when, and nobody is told anything more."""
    acknowledge, how = ACKS[way]
    number = await team.alert()
    await acknowledge(team, number)
    await team.both_cards_say(number, "ACKED by @ana", f"Acked by @ana {how} · <!date^")
    assert ACK not in team.buttons(number)
    before = team.told()
    await team.time_passes(minutes=40)
    assert team.told() == before


async def test_an_ack_ends_the_call_that_rings(team: Team) -> None:
    """Whoever acknowledges elsewhere is not kept on the phone."""
    number = await team.alert()
    await team.time_passes(minutes=3)
    await team.until(lambda: team.phone("ana").call("ringing"))
    await team.clicks("ben", ACK, team.card(number))
    await team.until(lambda: team.calls_to("ana")[-1].status == "canceled")
    await team.both_cards_say(number, "Acked by @ben")


async def test_4_with_two_open_lists_them(team: Team) -> None:
    """With two incidents texted a bare 4 changes nothing; `ack N` says which."""
    first, second = await team.alert("Queue is stuck"), await team.alert("Mail is late")
    await texted(team, first)
    await texted(team, second)  # nobody is texted twice in a minute
    said = await team.texts("ana", "4")
    assert f"#{first} triggered: Queue is stuck" in said
    assert f"#{second} triggered: Mail is late" in said
    assert [await team.status(one) for one in (first, second)] == ["triggered", "triggered"]
    assert f"#{first} acknowledged: Queue is stuck" in await team.texts("ana", f"ack {first}")
    assert [await team.status(one) for one in (first, second)] == ["acknowledged", "triggered"]
    await team.both_cards_say(first, "Acked by @ana via SMS")


async def resolve_by_button(team: Team, number: int) -> None:
    await team.clicks("ana", RESOLVE, team.card(number))


async def resolve_by_command(team: Team, number: int) -> None:
    assert "resolved" in await team.types("ana", f"/oncall resolve {number}")


async def resolve_by_sms(team: Team, number: int) -> None:
    await texted(team, number)
    assert f"#{number} resolved" in await team.texts("ana", "6")


async def resolve_by_call(team: Team, number: int) -> None:
    await team.time_passes(minutes=3)
    await team.answers_the_phone("ana")
    assert f"#{number} resolved" in await team.presses("ana", "6")


RESOLVES: dict[str, tuple[Way, str]] = {
    "button": (resolve_by_button, "via Slack button"),
    "command": (resolve_by_command, "via Slack command"),
    "sms": (resolve_by_sms, "via SMS"),
    "call": (resolve_by_call, "via phone call"),
}


@pytest.mark.parametrize("way", RESOLVES)
async def test_a_resolve_closes_it(team: Team, way: str) -> None:
    """Both cards say who resolved it, how and when, and offer to reopen it."""
    resolve, how = RESOLVES[way]
    number = await team.alert()
    await resolve(team, number)
    await team.both_cards_say(number, "RESOLVED", f"Resolved by @ana {how} · <!date^")
    assert team.buttons(number) == team.buttons(number, "ana") == [REOPEN]
    before = team.told()
    await team.time_passes(minutes=40)
    assert team.told() == before


async def test_unack_and_reopen_page_again(team: Team) -> None:
    """Whoever takes an ack or a resolve back is paged like the first time."""
    number = await team.alert()
    await team.clicks("ana", ACK, team.card(number))
    await team.both_cards_say(number, "ACKED")
    await team.clicks("ana", UNACK, team.card(number))
    await team.both_cards_say(number, "FIRING")
    await texted(team, number)
    await team.clicks("ana", RESOLVE, team.card(number, "ana"))
    await team.both_cards_say(number, "RESOLVED")
    await team.clicks("ben", REOPEN, team.card(number))
    await team.both_cards_say(number, "FIRING")
    await team.time_passes(minutes=1)
    await team.until(lambda: len(team.texts_to("ana", number)) == 2)
    await team.types("ana", f"/oncall ack {number}")
    assert "unacknowledged" in await team.types("ana", f"/oncall unack {number}")


async def test_an_ack_that_comes_too_late_is_told_so(team: Team) -> None:
    """Ack on a resolved incident changes nothing and says why, by command and by SMS."""
    number = await team.alert()
    await texted(team, number)
    await team.types("ben", f"/oncall resolve {number}")
    assert "already resolved" in await team.types("ana", f"/oncall ack {number}")
    assert "already resolved" in await team.texts("ana", f"ack {number}")
    await team.both_cards_say(number, "RESOLVED")
    assert await team.status(number) == "resolved"


async def test_an_old_button_is_told_so(team: Team) -> None:
    """Ack on a card that Slack has not updated yet: told that it is resolved, and the card catches up."""
    number = await team.alert()
    await team.midwatch.slack("fault", target="slack", kind="429", method="chat.update")
    await team.types("ben", f"/oncall resolve {number}")
    await team.clicks("ana", ACK, team.card(number))
    await team.is_told("ana", "already resolved")
    assert "FIRING" in team.words(number)
    await team.midwatch.slack("fault", target="slack", kind="none")
    await team.time_passes(minutes=1)
    await team.both_cards_say(number, "RESOLVED", "Resolved by @ben")


async def test_the_second_to_acknowledge_hears_who_was_first(team: Team) -> None:
    """An ack on an acknowledged incident is answered with whose it is."""
    number = await team.alert()
    await team.clicks("ana", ACK, team.card(number))
    await team.both_cards_say(number, "ACKED by @ana")
    assert "already acknowledged by ana" in await team.types("ben", f"/oncall ack {number}", GENERAL)
