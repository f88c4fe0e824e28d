"""How fast cards may be written: one post a second and channel, one bucket of updates for all.

Never sleeps and never reads the clock; whoever may not yet is told when.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from engine.notify.pacing import Pace

POST_EVERY: Final = timedelta(seconds=1)  # Slack: one message per second and channel
UPDATES_PER_MINUTE: Final = 50  # Slack's tier 3, for the whole workspace
BURST: Final = 20


class CardPace:
    """`post` and `update` answer when this card may go; `now` means it goes, and is counted."""

    def __init__(self) -> None:
        self._posts = Pace(POST_EVERY)
        self._updates = float(BURST)
        self._filled_at: datetime | None = None
        self._blocked: dict[str, datetime] = {}

    def post(self, channel: str, card_id: int, now: datetime) -> datetime:
        blocked = self._blocked.get("post", now)
        return blocked if blocked > now else self._posts.admit(channel, now, card_id)

    def update(self, now: datetime) -> datetime:
        blocked = self._blocked.get("update", now)
        if blocked > now:
            return blocked
        each = timedelta(minutes=1) / UPDATES_PER_MINUTE
        passed = max(timedelta(), now - (self._filled_at or now))
        self._filled_at = now
        self._updates = min(float(BURST), self._updates + passed / each)
        if self._updates < 1:
            return now + (1 - self._updates) * each
        self._updates -= 1
        return now

    def throttled(self, call: str, until: datetime, channel: str | None = None) -> None:
        """Slack said not before `until`: for posts in one channel, for updates everywhere."""
        if call == "post" and channel is not None:
            self._posts.hold(channel, until)
        else:
            self._blocked[call] = max(until, self._blocked.get(call, until))
