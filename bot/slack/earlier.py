"""Cards that an earlier try may have posted without our hearing of it: which, and where they stand.

Never posts, and never keeps a card away: where nobody can tell, a second card is better than none.
"""

from __future__ import annotations

from typing import Final

import structlog

from bot.slack.client import Placed, SlackClient, card_metadata
from bot.slack.errors import trouble_of
from engine.models import Card, Timer

log = structlog.get_logger(__name__)

KEPT_MOST: Final = 5_000


class Earlier:
    """Why it remembers what was put off: else a storm of new cards would ask for each of them."""

    def __init__(self, client: SlackClient) -> None:
        self._client = client
        self._put_off: dict[int, int] = {}  # by card: the attempt that surely posted nothing

    def put_off(self, timer: Timer) -> None:
        """This attempt posted nothing, and nor did those before it."""
        if len(self._put_off) >= KEPT_MOST:
            self._put_off.clear()
        self._put_off[timer.subject_id] = timer.attempt

    def may_stand(self, timer: Timer) -> bool:
        """Whether an attempt before this one may have posted: its answer was lost, or its process ended."""
        return self._put_off.pop(timer.subject_id, 0) < timer.attempt - 1

    async def find(self, channel: str, card: Card) -> Placed | None:
        """Where the card stands, besides the message that we know of."""
        try:
            found = await self._client.find_sent(channel, card_metadata(card.id))
        except Exception as error:  # not knowing is an answer
            log.info("card.history_unreadable", card=card.id, code=trouble_of(error).code)
            return None
        return None if found is None or found.ts == card.ts else found
