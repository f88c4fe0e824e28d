"""What a batch of events gathers about incidents: those it touches and those it opens.

Pure: never reads the clock or the database.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from engine.escalation import Decision, Fate, Ladder, decide, open_fate
from engine.escalation.fate import Command, Effect, Joiner
from engine.grouping import severity_weight
from engine.intake.fold import Item, Plan
from engine.intake.rows import title
from engine.models import Actor, Via
from engine.pager.apply import Change
from engine.store.counts import Count
from engine.store.incidents import Incident, NewIncident


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

    def decide(
        self, command: Command, kind: str, actor: Actor, now: datetime, ladder: Ladder | None = None
    ) -> Decision:
        decision = decide(self.fate, command, now, ladder)
        self.fate = decision.fate
        self.effects += decision.effects
        self.changed |= decision.changed
        if decision.changed or decision.effects or isinstance(command, Joiner):
            self.say(kind, actor, decision.reason)
        return decision

    def say(self, kind: str, actor: Actor, reason: str) -> None:
        """What the timeline will tell of it."""
        self.kind, self.actor = kind, actor
        self.reasons.append(reason)

    @property
    def moved(self) -> bool:
        return self.fate != self.incident.fate or bool(self.effects) or bool(self.reasons)

    def count(self, now: datetime) -> Count | None:
        """What it adds to the incident's counts; None when that is nothing."""
        if not self.joined and self.worst is None and self.truncated is None:
            return None
        worst = self.worst.event if self.worst else None
        return Count(
            self.incident.id,
            joined=self.joined,
            last_joined_at=now if self.joined else None,
            worse=worst is not None,
            severity=worst.severity.value if worst and worst.severity else None,
            raw_severity=worst.raw_severity if worst else "",
            truncated=self.truncated,
        )

    def change(self) -> Change:
        decision = Decision(
            self.fate, "; ".join(dict.fromkeys(self.reasons)), tuple(self.effects), self.changed
        )
        actor = self.actor or Actor("a source", Via.SOURCE)
        return Change(self.incident, decision, self.kind, actor, quiet=not self.reasons)


@dataclass(slots=True)
class Opening:
    """An incident that the batch opens; the first plan's first words are its title."""

    service_id: int
    group_key: str
    due_at: datetime
    plans: list[Plan] = field(default_factory=list)
    after: Incident | None = None  # a person resolved this one, and the source still fires

    @property
    def first(self) -> Item:
        return self.plans[0].triggers[0]

    @property
    def loudest(self) -> Item:
        return max((plan.loudest for plan in self.plans), key=lambda item: item.loudness)

    def new(self, now: datetime) -> NewIncident:
        triggers = [item for plan in self.plans for item in plan.triggers]
        worst = max(triggers, key=lambda item: severity_weight(item.event.severity)).event
        return NewIncident(
            service_id=self.service_id,
            group_key=self.group_key,
            title=title(self.first.event),
            fate=open_fate(self.loudest.urgency, severity_weight(worst.severity), len(self.plans)),
            severity=worst.severity.value if worst.severity else None,
            raw_severity=worst.raw_severity,
            opened_at=now,
            alert_count=len(self.plans),
            truncated=max(item.truncated for item in triggers),
            opened_by=self.first.by.name if self.first.by.via is not Via.SOURCE else "",
            last_paged_at=self.after.last_paged_at if self.after else None,
        )
