"""Which providers are down: after some faults in a row they are left alone for a while.

Never reads a clock and never sends; it is told outcomes and asked before a send. Why not a library:
those count exceptions around a call on a monotonic clock of their own, and let every waiting caller
through at once when they half-open. Ours are values, `now` is an argument, and one page goes first.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from engine.models import Method, Outcome, Retry

THRESHOLD: Final = 5
OPEN_FOR: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Breaker:
    """One provider's state: closed while `opened_at` is None, else open, then half open."""

    threshold: int = THRESHOLD
    open_for: timedelta = OPEN_FOR
    faults: int = 0
    opened_at: datetime | None = None
    probed_at: datetime | None = None

    def open_until(self, now: datetime) -> datetime | None:
        """Until when nothing may be sent; None: something may be sent now."""
        since = self.probed_at or self.opened_at
        # A clock that was set back must not keep a provider closed off for hours.
        if since is None or now < since or now >= since + self.open_for:
            return None
        return since + self.open_for

    def probe(self, now: datetime) -> Breaker:
        """The state once a page is let through: half open, the next one waits for its outcome.

        A probe of which nothing is heard is given up after `open_for`, and another goes.
        """
        return self if self.opened_at is None else replace(self, probed_at=now)

    def record(self, outcome: Outcome, now: datetime) -> Breaker:
        """The state after an outcome. Only a fault of the provider counts; any other answer closes."""
        if not isinstance(outcome, Retry):
            return Breaker(self.threshold, self.open_for)
        faults = self.faults + 1
        if self.opened_at is not None and self.probed_at is None:
            return replace(self, faults=faults)  # begun before it opened: that fault is known already
        if outcome.down or self.opened_at is not None or faults >= self.threshold:
            return replace(self, faults=faults, opened_at=now, probed_at=None)
        return replace(self, faults=faults)


class Breakers:
    """A breaker per provider; only those that have seen a fault are kept."""

    def __init__(self, threshold: int = THRESHOLD, open_for: timedelta = OPEN_FOR) -> None:
        self._fresh = Breaker(threshold, open_for)
        self._breakers: dict[str, Breaker] = {}

    def allows(self, key: str, now: datetime) -> bool:
        """Whether to send now. True takes the half-open place, so ask only right before a send."""
        breaker = self._breakers.get(key)
        if breaker is None:
            return True
        if breaker.open_until(now) is not None:
            return False
        self._breakers[key] = breaker.probe(now)
        return True

    def record(self, key: str, outcome: Outcome, now: datetime) -> None:
        breaker = self._breakers.get(key, self._fresh).record(outcome, now)
        if breaker == self._fresh:
            self._breakers.pop(key, None)
        else:
            self._breakers[key] = breaker

    def opened(self, now: datetime) -> dict[str, datetime]:
        """The providers that are left alone now, and until when: for metrics and status."""
        until = {key: breaker.open_until(now) for key, breaker in self._breakers.items()}
        return {key: when for key, when in until.items() if when is not None}


def breaker_key(provider: str, method: Method, address: str) -> str:
    """What fails together. Voice may work while SMS does not, and each URL is a provider of its own."""
    if method in (Method.URL, Method.PUSH):
        return f"{provider}:{method}:{hashlib.sha256(address.encode()).hexdigest()[:12]}"
    return f"{provider}:{method}"
