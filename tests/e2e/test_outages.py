"""Slack goes away, loses a message, or is there another way: pages arrive and cards come true."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bot.sandbox.content import visible_text
from bot.slack.blocks import ACK
from tests.e2e.team import PAYMENTS, Team

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def without_slack(team: Team) -> AsyncIterator[Team]:
    """No API and no socket."""
    await team.midwatch.slack("fault", target="slack", kind="outage")
    await team.until(lambda: not team.midwatch.sandbox.world.wire.connected)
    yield team


async def slack_is_back(team: Team) -> None:
    await team.midwatch.slack("fault", target="slack", kind="none")
    await team.until(lambda: team.midwatch.sandbox.world.wire.connected, within_s=45)


async def test_without_slack_the_page_goes_by_sms(without_slack: Team) -> None:
    """Accepted, texted at the first failure instead of after a minute, acknowledged by SMS; then shown."""
    team = without_slack
    await team.until(lambda: team.midwatch.app.slack_watch.down)
    number = await team.fire("Slack does not hear this")
    await team.until(lambda: team.texts_to("ana", number))
    assert f"#{number} acknowledged" in await team.texts("ana", "4")
    assert "Slack is down" in team.texts_to("ana", number)[0].body
    before = team.told()
    await team.time_passes(minutes=20)
    assert team.told() - before == {"cho by SMS": 1}, "an admin, and what is said is no page"
    assert team.card(number) is None
    await slack_is_back(team)
    await team.until(lambda: "Acked by @ana via SMS" in team.words(number), within_s=45)
    assert "Acked by @ana" in await team.types("ben", f"/oncall show {number}")


def digests(team: Team) -> list[str]:
    """What the ops channel was told of outages."""
    channel = team.space.find_channel("#ops")
    assert channel is not None
    told = [visible_text(message) for message in channel.messages.values() if not message.deleted]
    return [text for text in told if "Slack was down" in text]


async def test_a_night_without_slack(without_slack: Team) -> None:
    """Text and call wake the person, SMS 4 stops it, and afterwards card, digest and story tell of it."""
    team = without_slack
    said = len(digests(team))
    await team.until(lambda: team.midwatch.app.slack_watch.down)
    number = await team.fire("Nobody reads Slack tonight")
    await team.until(lambda: team.texts_to("ana", number))
    await team.time_passes(minutes=3)
    assert f"Incident {number} firing" in await team.answers_the_phone("ana")
    answer = await team.texts("ana", "status")
    assert "Slack is down since" in answer
    assert f"#{number} Nobody reads Slack tonight" in answer
    assert (await team.midwatch.get("/healthz"))["slack"]["state"] == "down"
    assert f"#{number} acknowledged" in await team.texts("ana", "4")
    before = team.told()
    await team.time_passes(minutes=10)
    assert not any(key.startswith(("ana", "ben")) for key in team.told() - before), "nobody is paged any more"
    await slack_is_back(team)
    await team.until(lambda: "Acked by @ana via SMS" in team.words(number), within_s=45)
    await team.until(lambda: len(digests(team)) == said + 1)
    assert "1 incident opened, 1 acknowledged by SMS" in digests(team)[-1]
    story = await team.types("ben", f"/oncall why {number}")
    assert "page by slack to ana" in story
    assert "Slack is down" in story
    assert "page by sms to ana" in story
    assert "page by voice to ana" in story
    assert "acknowledged by ana (sms)" in story
    await team.time_passes(minutes=5)
    assert len(digests(team)) == said + 1, "it is told once"


async def test_a_card_that_stood_is_brought_up_to_date(team: Team) -> None:
    """Fired before the outage, resolved by SMS during it: afterwards the card says so."""
    number = await team.alert()
    await team.time_passes(minutes=1)
    await team.until(lambda: team.texts_to("ana", number))
    await team.midwatch.slack("fault", target="slack", kind="outage")
    assert f"#{number} resolved" in await team.texts("ana", "6")
    assert "FIRING" in team.words(number)
    await slack_is_back(team)
    await team.time_passes(minutes=5)
    await team.both_cards_say(number, "Resolved by @ana via SMS")


async def test_a_deleted_card_is_posted_again(team: Team) -> None:
    """Somebody deletes the card of an open incident: its next change brings it back, and it works."""
    number = await team.alert()
    card = team.card(number)
    assert card is not None
    url = f"{team.midwatch.sandbox.url}/sandbox/messages"
    async with team.midwatch.http.delete(url, json={"channel": PAYMENTS, "ts": card.ts}) as deleted:
        assert deleted.status == 200
    assert team.card(number) is None
    await team.types("ana", f"/oncall ack {number}")
    await team.until(lambda: "Acked by @ana" in team.words(number))
    again = team.card(number)
    assert again is not None
    assert again.ts != card.ts
    await team.types("ana", f"/oncall unack {number}")
    await team.until(lambda: ACK in team.buttons(number))
    await team.clicks("ana", ACK, team.card(number))
    await team.both_cards_say(number, "ACKED by @ana")
