"""Which alerts this process has lately seen open, so that repeats cost one UPDATE.

Only a hint: the UPDATE asks again whether the alert is open, and what it does not match goes the
long way. Never the truth about anything.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from engine.models import Action, Event
from engine.store.dedup_keys import Key

KEPT: Final = 100_000


@dataclass(frozen=True, slots=True)
class Seen:
    alert_id: int
    incident_id: int
    number: int | None
    started_at: datetime | None
    raw_severity: str
    words: int  # the hash of the summary, so that new words are noticed

    def says_the_same(self, event: Event) -> bool:
        return self.words == hash(event.summary)


class Memory:
    """The last KEPT open alerts, by (service, dedup key)."""

    def __init__(self) -> None:
        self._seen: OrderedDict[Key, Seen] = OrderedDict()

    def repeat_of(self, service_id: int, event: Event) -> Seen | None:
        """The open alert that `event` repeats unchanged: the same key, start and severity."""
        if event.action is not Action.TRIGGER:
            return None
        seen = self._seen.get((service_id, event.dedup_key))
        if seen is None or seen.started_at != event.started_at or seen.raw_severity != event.raw_severity:
            return None
        return seen

    def keep(self, key: Key, seen: Seen) -> None:
        self._seen[key] = seen
        self._seen.move_to_end(key)
        if len(self._seen) > KEPT:
            self._seen.popitem(last=False)

    def forget(self, key: Key) -> None:
        self._seen.pop(key, None)
