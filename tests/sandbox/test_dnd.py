"""dnd.info of the sandbox, through the real Slack client."""

from __future__ import annotations

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.server import SandboxServer


async def test_whoever_set_nothing_has_no_silence(slack: AsyncWebClient) -> None:
    """As Slack answers: off, and a second of 1970 for never."""
    found = await slack.dnd_info(user="U0ANA")
    assert (found["dnd_enabled"], found["next_dnd_start_ts"]) == (False, 1)


async def test_a_silence_is_told_by_its_next_start_and_end(
    slack: AsyncWebClient, sandbox: SandboxServer
) -> None:
    """In seconds, for this person alone."""
    now = sandbox.world.clock.now()
    sandbox.state.quiet["U0ANA"] = (now, now.replace(year=now.year + 1))
    found = await slack.dnd_info(user="U0ANA")
    assert (found["dnd_enabled"], found["next_dnd_start_ts"]) == (True, int(now.timestamp()))
    assert (await slack.dnd_info(user="U0BEN"))["dnd_enabled"] is False


async def test_somebody_unknown_is_refused(slack: AsyncWebClient) -> None:
    """With Slack's word for it."""
    with pytest.raises(SlackApiError) as caught:
        await slack.dnd_info(user="U0NOBODY")
    assert caught.value.response["error"] == "user_not_found"
