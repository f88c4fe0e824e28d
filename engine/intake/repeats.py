"""What a batch merely counts: alerts that were seen again, unchanged and open.

Decides nothing and takes no lock but those of the alerts, in order of their ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from engine.db import Tx
from engine.intake.waiting import Waiting
from engine.store import alerts


@dataclass(frozen=True, slots=True)
class Repeats:
    """How often each alert was seen again, and its newest words where they are new."""

    times: Counter[int] = field(default_factory=Counter)  # by alert
    words: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, batch: Iterable[Waiting]) -> Repeats:
        repeats = cls()
        for waiting in batch:
            for item in waiting.request.items:
                seen = waiting.repeats.get(item.position)
                if seen is not None:
                    same = seen.says_the_same(item.event)
                    repeats.add(seen.alert_id, 1, None if same else item.event.summary)
        return repeats

    def add(self, alert_id: int, times: int, words: str | None) -> None:
        self.times[alert_id] += times
        if words is not None:
            self.words[alert_id] = words

    async def store(self, tx: Tx, org_id: int, now: datetime) -> frozenset[int]:
        """Count them; returns those that were open."""
        matched = await alerts.repeat(tx, org_id, self.times, now)
        await alerts.reword(tx, org_id, self.words)
        return frozenset(matched)
