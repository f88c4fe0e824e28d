"""Installs that differ from the demo: no public URL, and Slack in HTTP mode."""

from __future__ import annotations

from pathlib import Path

from bot.slack.blocks import ACK
from tests.e2e.team import Team
from tests.product import product


async def test_without_a_public_url_the_call_asks_for_an_sms(tmp_path: Path) -> None:
    """Nothing can call back, so no key is asked for."""
    async with product(tmp_path, public_url=None) as midwatch:
        team = Team(midwatch)
        await team.assemble()
        number = await team.alert()
        await team.time_passes(minutes=3)
        said = await team.answers_the_phone("ana")
        assert f"Incident {number} firing" in said
        assert "Reply 4 by SMS" in said
        assert "Press" not in said
        assert team.phone("ana").calls[0].callback is None


async def test_without_a_public_url_a_reply_by_sms_is_fetched(tmp_path: Path) -> None:
    """It acknowledges once and is answered once; a number that nobody has is told nothing."""
    async with product(tmp_path, public_url=None) as midwatch:
        team = Team(midwatch)
        await team.assemble()
        poll = midwatch.app.sms_poll
        assert poll is not None
        number = await team.alert()
        await team.time_passes(minutes=1)
        await team.until(lambda: team.texts_to("ana", number))
        stranger = midwatch.sandbox.world.exchange.phone("+12025550199")
        for name in (stranger.number, "ana"):
            await midwatch.slack(f"phones/{name}/reply", text="4")
        await poll.once()
        await team.both_cards_say(number, "Acked by @ana via SMS")
        answer = f"#{number} acknowledged"
        await team.until(lambda: team.phone("ana").sms[-1].body.startswith(answer))
        before = len(team.phone("ana").sms)
        assert await poll.once() == 0
        assert len(team.phone("ana").sms) == before
        assert [sms.direction for sms in stranger.sms] == ["inbound"]
        assert await team.status(number) == "acknowledged"
        assert "sms_replies" in (await midwatch.get("/healthz"))["seconds_since_tick"]


async def test_slack_in_http_mode(tmp_path: Path) -> None:
    """Commands, clicks and mentions come signed to /slack/events; no socket is opened."""
    async with product(tmp_path, slack_app_token=None, slack_signing_secret="demo") as midwatch:
        team = Team(midwatch)
        await team.assemble()
        number = await team.alert()
        await team.clicks("ana", ACK, team.card(number))
        await team.both_cards_say(number, "Acked by @ana via Slack button")
        assert f"#{number}" in await team.types("ana", f"/oncall resolve {number}")
        await team.both_cards_say(number, "Resolved by @ana via Slack command")
        assert not midwatch.sandbox.ledger.calls("apps.connections.open")
