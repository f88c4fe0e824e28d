"""The shapes that a decision has: let it be, change it, start paging over. And its words for people.

Never knows a command.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from engine.escalation.fate import Arm, CancelPages, Decision, Disarm, Effect, Fate
from engine.models import Actor, IncidentStatus, TimerKind, Urgency

MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)


def same(fate: Fate, reason: str, *effects: Effect) -> Decision:
    return Decision(fate, reason, effects)


def to(fate: Fate, reason: str, *effects: Effect, **changes: Any) -> Decision:
    """The fate changes: every timer that was armed for the old one does nothing any more."""
    return Decision(replace(fate, epoch=fate.epoch + 1, **changes), reason, effects, changed=True)


def new_round(fate: Fate, now: datetime, reason: str, **changes: Any) -> Decision:
    """Paging starts over: everything may be sent again, nothing of the old round goes on."""
    fresh: dict[str, Any] = {
        "status": IncidentStatus.TRIGGERED,
        "round": fate.round + 1,
        "pass_": 0,
        "level": 0,
        "level_started_at": None,
        "reached": False,
        "links": 0,
        "reassigned_to": None,
        "acknowledged_at": None,
        "acknowledged_by": None,
        "snoozed_until": None,
        "held_until": None,
        "resolved_at": None,
        "resolved_by": None,
        "kept": None,
    }
    first = Arm(TimerKind.ESCALATE, now)
    return to(fate, reason, CancelPages(reason), Disarm(), first, **(fresh | changes))


def heard(urgency: Urgency) -> Urgency:
    """The urgency of a page that a person asks for: they want somebody to hear of it."""
    return Urgency.LOW if urgency is Urgency.NONE else urgency


# --- words -----------------------------------------------------------------------------------------


def name_of(actor: Actor | None) -> str:
    return actor.name if actor is not None else "somebody"


def ago(at: datetime | None, now: datetime) -> str:
    if at is None:
        return "before"
    age = now - at
    if age < MINUTE:
        return f"{age // timedelta(seconds=1)} s ago"
    return f"{age // MINUTE} min ago" if age < HOUR else f"{age // HOUR} h ago"


def already_resolved(fate: Fate, now: datetime) -> str:
    if fate.merged_into is not None:
        return "already merged into another incident"
    return f"already resolved by {name_of(fate.resolved_by)} {ago(fate.resolved_at, now)}"
