"""Slack's rate limits as token buckets, on the sandbox clock.

Decides only whether a call may go ahead and when to try again; never waits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from bot.sandbox.clock import SandboxClock

# Slack says "1 per second and channel, short bursts tolerated" and "50+ per minute"; a bucket of a
# minute's worth is what its tiers let through at once.
POST_BURST = 5
TIERS = {1: 20, 2: 20, 3: 50, 4: 100}
TIER_OF = {
    "apps.connections.open": 1,
    "chat.delete": 3,
    "chat.postEphemeral": 4,
    "chat.update": 3,
    "conversations.history": 3,
    "conversations.info": 3,
    "conversations.join": 3,
    "conversations.list": 2,
    "conversations.members": 4,
    "conversations.open": 3,
    "conversations.replies": 3,
    "conversations.setTopic": 2,
    "reactions.add": 3,
    "reactions.get": 3,
    "reactions.remove": 2,
    "team.info": 3,
    "usergroups.disable": 2,
    "usergroups.enable": 2,
    "usergroups.list": 2,
    "usergroups.users.list": 2,
    "usergroups.users.update": 2,
    "users.info": 4,
    "users.list": 2,
    "users.lookupByEmail": 3,
    "views.open": 4,
    "views.publish": 4,
    "views.push": 4,
    "views.update": 4,
}


@dataclass(slots=True)
class Bucket:
    capacity: float
    per_second: float
    level: float
    at: datetime

    def take(self, now: datetime) -> float:
        """Zero when there was a token, else the seconds until there is one."""
        self.level = min(self.capacity, self.level + (now - self.at).total_seconds() * self.per_second)
        self.at = now
        if self.level >= 1:
            self.level -= 1
            return 0.0
        return (1 - self.level) / self.per_second


class RateLimits:
    def __init__(self, clock: SandboxClock) -> None:
        self._clock = clock
        self._buckets: dict[tuple[str, str], Bucket] = {}

    def retry_after(self, method: str, channel: str) -> int | None:
        """The whole seconds to wait, or None when the call may go ahead."""
        if method == "chat.postMessage":
            wait = self._bucket(method, channel, POST_BURST, 1.0).take(self._clock.now())
        elif method in TIER_OF:
            per_minute = TIERS[TIER_OF[method]]
            wait = self._bucket(method, "", per_minute, per_minute / 60).take(self._clock.now())
        else:
            return None
        return max(1, math.ceil(wait)) if wait > 0 else None

    def _bucket(self, method: str, channel: str, capacity: float, per_second: float) -> Bucket:
        key = (method, channel)
        if key not in self._buckets:
            self._buckets[key] = Bucket(capacity, per_second, capacity, self._clock.now())
        return self._buckets[key]
