"""When Slack makes no sound for somebody: its Do Not Disturb, which pages by Slack do not break through.

Never fails and never makes anybody wait long: where Slack does not say, nothing is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import structlog

from bot.slack.client import SlackClient
from bot.slack.errors import trouble_of

log = structlog.get_logger(__name__)

PATIENCE: Final = timedelta(seconds=1)  # it stands beside an answer that somebody waits for
NEVER: Final = 1  # Slack has no null here: one second of the year 1970


@dataclass(frozen=True, slots=True)
class Silence:
    """The present one, or else the next."""

    start: datetime
    end: datetime


async def silence_of(client: SlackClient, slack_user_id: str | None, now: datetime) -> Silence | None:
    """None: there is none, or Slack does not say."""
    if slack_user_id is None:
        return None
    try:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            said = await client.do_not_disturb(slack_user_id)
        return read(said, now)
    except Exception as error:  # no scope, Slack away, an answer of another form
        log.info("slack.silence_unknown", code=trouble_of(error).code)
        return None


def read(said: Mapping[str, Any], now: datetime) -> Silence | None:
    """What dnd.info says. A pause that somebody made for a while is told to nobody but them."""
    start, end = int(said.get("next_dnd_start_ts") or 0), int(said.get("next_dnd_end_ts") or 0)
    if not said.get("dnd_enabled") or start <= NEVER or end <= start:
        return None
    silence = Silence(datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(end, UTC))
    return silence if silence.end > now else None
