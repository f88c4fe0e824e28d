"""What a batch of events gathers about incidents: those it touches and those it opens.

Pure: never reads the clock or the database.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from engine.escalation import Decision, Fate, decide, open_fate
from engine.escalation.fate import Command, Effect
from engine.grouping import severity_weight
from engine.models import Actor, Urgency, Via
from engine.pager.apply import Change
from engine.pager.fold import Item, Plan
from engine.pager.rows import title
from engine.store.incidents import Count, Incident, NewIncident


@dataclass(slots=True)
class Touched:
    """An incident that the batch touches, and its fate as the batch goes on."""

    incident: Incident
    fate: Fate
    effects: list[Effect] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    actor: Actor | None = None
    kind: str = "joined"
    changed: bool = False
    joined: int = 0
    worst: Item | None = None
    truncated: int | None = None
    resolving: Actor | None = None

    def decide(self, command: Command, kind: str, actor: Actor, now: datetime) -> Decision:
        decision = decide(self.fate, command, now)
        self.fate = decision.fate
        self.effects += decision.effects
        if decision.changed or decision.effects:
            self.reasons.append(decision.reason)
            self.kind, self.actor = kind, actor
        self.changed |= decision.changed
        return decision

    @property
    def moved(self) -> bool:
        return self.fate != self.incident.fate or bool(self.effects) or self.joined > 0

    def count(self, now: datetime) -> Count | None:
        """What it adds to the incident's counts; None when that is nothing."""
        if not self.joined and self.worst is None and self.truncated is None:
            return None
        worst = self.worst.event if self.worst else None
        return Count(
            self.incident.id,
            joined=self.joined,
            last_joined_at=now if self.joined else None,
            severity=worst.severity.value if worst and worst.severity else None,
            raw_severity=worst.raw_severity if worst else None,
            truncated=self.truncated,
        )

    def change(self) -> Change:
        reason = "; ".join(dict.fromkeys(self.reasons)) or "counted"
        decision = Decision(self.fate, reason, tuple(self.effects), self.changed)
        actor = self.actor or Actor("a source", Via.SOURCE)
        quiet = not self.changed and not self.effects and not self.joined
        return Change(self.incident, decision, self.kind, actor, quiet=quiet)


@dataclass(slots=True)
class Opening:
    """An incident that the batch opens."""

    service_id: int
    group_key: str
    items: list[Item]
    plans: list[Plan]
    due_at: datetime
    last_paged_at: datetime | None = None

    @property
    def worst(self) -> Item:
        return max(self.items, key=lambda item: severity_weight(item.event.severity))

    def new(self, now: datetime, opened_by: str) -> NewIncident:
        first, worst = self.items[0], self.worst
        loudest: Urgency = max((item.urgency for item in self.items), key=lambda word: word.weight)
        weight = severity_weight(worst.event.severity)
        return NewIncident(
            service_id=self.service_id,
            group_key=self.group_key,
            title=title(first.event),
            fate=open_fate(loudest, weight, len(self.items)),
            severity=worst.event.severity.value if worst.event.severity else None,
            raw_severity=worst.event.raw_severity,
            opened_at=now,
            alert_count=len(self.items),
            truncated=first.truncated,
            opened_by=opened_by,
            last_paged_at=self.last_paged_at,
        )
