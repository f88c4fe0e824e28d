"""What a source does to an incident: one more alert, the last alert over, the same one again.

Never reads the clock or the database. Which statuses a command is for, `table` says.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from engine.escalation.by_people import resolved
from engine.escalation.fate import (
    Arm,
    Decision,
    Fate,
    Joiner,
    Ladder,
    LastAlertResolved,
    Refire,
    RevivePages,
    Say,
    Tell,
)
from engine.escalation.shapes import new_round, same, to
from engine.models import IncidentStatus, TimerKind, Urgency, Via

OLD_ACK: Final = timedelta(minutes=60)  # an older ack does not speak for a new alert


def joiner(fate: Fate, command: Joiner, now: datetime, _: Ladder) -> Decision:
    counted = replace(fate, severity=max(fate.severity, command.severity))
    if command.urgency is Urgency.NONE:
        return same(counted, "counted: its urgency is none")
    urgency = max(fate.urgency, command.urgency, key=lambda word: word.weight)
    raised = urgency is not fate.urgency
    if fate.status is IncidentStatus.UNANSWERED:
        return new_round(counted, now, "a new alert joined while nobody had answered", urgency=urgency)
    if fate.status is IncidentStatus.TRIGGERED:
        if raised:
            return new_round(counted, now, f"a new alert raised the urgency to {urgency}", urgency=urgency)
        if fate.level_started_at is None and fate.held_until is None and not command.known:
            # Its first page may have been put off for what a person resolved; this is something else.
            return same(counted, "a new alert joined", Arm(TimerKind.ESCALATE, now))
        return same(counted, "a new alert joined")
    if raised or command.severity > fate.severity:
        return new_round(counted, now, "a worse alert joined after the ack", urgency=urgency)
    if fate.acknowledged_at is not None and now - fate.acknowledged_at > OLD_ACK:
        return new_round(counted, now, "a new alert joined, an hour after the ack", urgency=urgency)
    line = f"New alert joined: {command.summary}"
    key = f"joined:{fate.epoch}"  # once for a storm: the epoch moves with the next answer
    return same(counted, "a new alert joined quietly", Say(key, line), Tell(key, line))


def last_alert_resolved(fate: Fate, command: LastAlertResolved, now: datetime, _: Ladder) -> Decision:
    if fate.open_alerts > 0:
        return same(fate, f"{fate.open_alerts} alerts still fire")
    return resolved(fate, command.by, command.timer, now, "source")


def refire(fate: Fate, command: Refire, now: datetime, _: Ladder) -> Decision:
    if command.held_by is not None:
        return same(fate, f"#{command.held_by} holds the key")
    kept = fate.kept
    by_source = fate.resolved_by is not None and fate.resolved_by.via is Via.SOURCE
    recent = fate.resolved_at is not None and now - fate.resolved_at <= command.flap_window
    if kept is None or not by_source or not recent:
        return same(fate, "a new occurrence")
    due_at = now + (kept.left or timedelta())
    return to(
        fate,
        "the source fired again at once: taken up where it was",
        RevivePages(fate.epoch),
        *(() if kept.timer is None else (Arm(kept.timer, due_at),)),
        status=kept.status,
        snoozed_until=due_at if kept.timer is TimerKind.UNSNOOZE else None,
        resolved_at=None,
        resolved_by=None,
        kept=None,
    )
