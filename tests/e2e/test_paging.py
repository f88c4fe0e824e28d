"""An alert pages the person on call, by the rules, and then the next level."""

from __future__ import annotations

import json

import pytest

from bot.slack.blocks import ACK, MORE, RESOLVE
from tests.e2e.team import Team
from tests.product import KEY
from tests.web.test_ingest import PAYLOADS

pytestmark = pytest.mark.asyncio(loop_scope="module")

SINGLE = (PAYLOADS / "01_firing_single.json").read_bytes()
RESOLVED = (PAYLOADS / "10_resolved_single.json").read_bytes()
TITLE = json.loads(SINGLE)["commonAnnotations"]["summary"]


def about(name: str, payload: bytes) -> bytes:
    """The same payload of another alert, so that tests do not repeat each other's."""
    fingerprint = name.encode().hex().encode()
    return payload.replace(b"HighLatency", name.encode()).replace(b"6bb710ed11b2b558", fingerprint)


async def send(team: Team, body: bytes) -> None:
    """To the webhook, as Alertmanager does."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    url = f"{team.midwatch.url}/webhooks/alertmanager"
    async with team.midwatch.http.post(url, data=body, headers=headers) as answer:
        assert answer.status == 202


async def paged(team: Team, body: bytes) -> int:
    """Sent, and card and DM stand."""
    await send(team, body)
    number = int((await team.incidents(TITLE))[0]["number"])
    await team.until(lambda: team.card(number) and team.card(number, "ana"))
    return number


async def test_the_path_of_an_alert(team: Team) -> None:
    """Card and DM at once, an SMS after a minute, a call after three, the next level after five."""
    before = team.told()
    number = await paged(team, SINGLE)
    assert "FIRING" in team.words(number)
    assert team.buttons(number) == team.buttons(number, "ana") == [ACK, RESOLVE, MORE]
    assert team.told() - before == {"ana by DM": 1}
    await team.time_passes(seconds=55)
    assert team.told() - before == {"ana by DM": 1}
    await team.time_passes(seconds=10)
    await team.until(lambda: team.texts_to("ana", number))
    assert team.told() - before == {"ana by DM": 1, "ana by SMS": 1}
    await team.time_passes(minutes=2)
    await team.until(lambda: team.phone("ana").call("ringing"))
    assert team.told() - before == {"ana by DM": 1, "ana by SMS": 1, "ana by call": 1}
    await team.time_passes(minutes=2)
    await team.until(lambda: team.card(number, "ben"))
    assert (team.told() - before)["ben by DM"] == 1


async def test_the_same_alert_two_hundred_times(team: Team) -> None:
    """One incident, one page, and a count on the card."""
    before = team.told()
    alert = about("Repeated", SINGLE)
    number = await paged(team, alert)
    for _ in range(199):
        await send(team, alert)
    await team.time_passes(seconds=15)  # a sweep refreshes cards that are ten seconds old
    await team.both_cards_say(number, "×200")
    assert [one["number"] for one in await team.incidents() if one["status"] != "resolved"] == [number]
    assert team.told() - before == {"ana by DM": 1}


async def test_the_resolved_payload_closes_it(team: Team) -> None:
    """What the source ended is resolved on both cards, and nobody is told anything more."""
    number = await paged(team, about("Resolved", SINGLE))
    before = team.told()
    await send(team, about("Resolved", RESOLVED))
    await team.both_cards_say(number, "RESOLVED", "Resolved by its source")
    await team.time_passes(minutes=20)
    assert team.told() == before
