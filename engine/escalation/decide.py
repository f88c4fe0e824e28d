"""Decides what becomes of an incident: the table of docs/architecture.md, "the fate of an incident".

Never reads the clock, the database or the network. A pair of command and status that is not in
the table changes nothing and says why.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from engine.escalation import by_people, by_source, by_timer
from engine.escalation.fate import (
    Acknowledge,
    AckTimeout,
    AddResponder,
    Command,
    Decision,
    EndOfSnooze,
    EscalateNow,
    Exhaust,
    Fate,
    Hold,
    Joiner,
    Ladder,
    LastAlertResolved,
    Merge,
    RaiseUrgency,
    Reassign,
    Refire,
    Reopen,
    Resolve,
    Snooze,
    Stuck,
    Timeout,
    Unacknowledge,
    Unmerge,
)
from engine.escalation.shapes import already_resolved, same
from engine.escalation.table import TABLE
from engine.models import IncidentStatus, Urgency

_DECIDERS: Final[dict[type[Any], Callable[[Fate, Any, datetime, Ladder], Decision]]] = {
    Joiner: by_source.joiner,
    LastAlertResolved: by_source.last_alert_resolved,
    Refire: by_source.refire,
    Timeout: by_timer.timeout,
    Exhaust: by_timer.exhaust,
    EndOfSnooze: by_timer.end_of_snooze,
    AckTimeout: by_timer.ack_timeout,
    Hold: by_timer.hold,
    Stuck: by_timer.stuck,
    Acknowledge: by_people.acknowledge,
    Unacknowledge: by_people.unacknowledge,
    Snooze: by_people.snooze,
    EscalateNow: by_people.escalate_now,
    Reassign: by_people.reassign,
    AddResponder: by_people.add_responder,
    RaiseUrgency: by_people.raise_urgency,
    Resolve: by_people.resolve,
    Reopen: by_people.reopen,
    Merge: by_people.merge,
    Unmerge: by_people.unmerge,
}


@lru_cache(maxsize=256)  # incidents open alike by the dozen, and a fate never changes
def open_fate(urgency: Urgency, severity: int, open_alerts: int) -> Fate:
    """The fate of a new incident; its `escalate` timer is armed at once."""
    return Fate(IncidentStatus.TRIGGERED, urgency, severity, open_alerts=open_alerts)


def decide(fate: Fate, command: Command, now: datetime, ladder: Ladder | None = None) -> Decision:
    """The new fate and its effects. Commands that climb need the `ladder`, resolved at `now`."""
    if fate.status not in TABLE[type(command)]:
        return same(fate, _refusal(fate, now))
    return _DECIDERS[type(command)](fate, command, now, ladder or Ladder())


def _refusal(fate: Fate, now: datetime) -> str:
    return f"it is {fate.status}" if fate.open else already_resolved(fate, now)


def still_wanted(kind: str, round_: int, fate: Fate) -> str | None:
    """Why a delivery of an incident should no longer go out, or None while it should."""
    if kind == "page":
        if fate.status not in {IncidentStatus.TRIGGERED, IncidentStatus.UNANSWERED}:
            return f"the incident is {fate.status}"
        if round_ != fate.round:
            return "paging started over"
    if kind == "responder" and not fate.open:
        return "the incident is resolved"
    return None
