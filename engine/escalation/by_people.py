"""What people do to an incident: acknowledge, snooze, escalate, assign, resolve, undo.

Never reads the clock or the database. Which statuses a command is for, `table` says.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from engine.escalation.climb import climb
from engine.escalation.fate import (
    REASSIGNED,
    Acknowledge,
    AddResponder,
    Arm,
    Armed,
    CancelPages,
    CloseAlerts,
    Decision,
    Disarm,
    EndResponder,
    EscalateNow,
    Fate,
    Kept,
    Ladder,
    Merge,
    PageResponder,
    RaiseUrgency,
    Reassign,
    Reopen,
    Resolve,
    Snooze,
    Unacknowledge,
    Unmerge,
)
from engine.escalation.shapes import ago, heard, name_of, new_round, same, to
from engine.models import Actor, IncidentStatus, TimerKind, Via


def acknowledge(fate: Fate, command: Acknowledge, now: datetime, ladder: Ladder) -> Decision:
    person = command.by.person_id
    ended = () if person is None else (EndResponder(person),)
    if fate.status is IncidentStatus.ACKNOWLEDGED:
        first = f"already acknowledged by {name_of(fate.acknowledged_by)} {ago(fate.acknowledged_at, now)}"
        return same(fate, first, *ended)
    timeout = () if ladder.ack_timeout is None else (Arm(TimerKind.ACK_TIMEOUT, now + ladder.ack_timeout),)
    return to(
        fate,
        "acknowledged",
        CancelPages(f"acknowledged by {command.by.name}"),
        Disarm(),
        *timeout,
        *ended,
        status=IncidentStatus.ACKNOWLEDGED,
        acknowledged_at=now,
        acknowledged_by=command.by,
        held_until=None,
    )


def unacknowledge(fate: Fate, command: Unacknowledge, now: datetime, _: Ladder) -> Decision:
    return new_round(fate, now, f"unacknowledged by {command.by.name}")


def snooze(fate: Fate, command: Snooze, now: datetime, _: Ladder) -> Decision:
    if command.until <= now:
        return same(fate, "a snooze must end in the future")
    if command.until == fate.snoozed_until:
        return same(fate, "already snoozed until then")
    return to(
        fate,
        "snoozed",
        CancelPages(f"snoozed by {command.by.name}"),
        Disarm(),
        Arm(TimerKind.UNSNOOZE, command.until),
        status=IncidentStatus.ACKNOWLEDGED,
        acknowledged_at=fate.acknowledged_at or now,
        acknowledged_by=fate.acknowledged_by or command.by,
        snoozed_until=command.until,
        held_until=None,
    )


def escalate_now(fate: Fate, command: EscalateNow, now: datetime, ladder: Ladder) -> Decision:
    why = f"escalated by {command.by.name}"
    # Why not held any more: a person wants somebody to hear of it, window or not.
    fate = replace(fate, urgency=heard(fate.urgency), held_until=None)
    if fate.status is IncidentStatus.TRIGGERED:
        changed, effects, reason = climb(fate, ladder, now, forced=True)
        return to(fate, f"{why}: {reason}", Disarm(), *effects, **changed)
    after = fate.level + 1 if fate.level >= 0 and fate.level_started_at is not None else 0
    return new_round(fate, now, why, level=after if after < len(ladder.rungs) else 0)


def reassign(fate: Fate, command: Reassign, now: datetime, _: Ladder) -> Decision:
    waiting = fate.status is IncidentStatus.TRIGGERED and fate.level == REASSIGNED
    if waiting and command.to == fate.reassigned_to:
        return same(fate, "already assigned to them, and they are being paged")
    why = f"assigned by {command.by.name}"
    urgency = heard(fate.urgency)
    return new_round(fate, now, why, level=REASSIGNED, reassigned_to=command.to, urgency=urgency)


def add_responder(fate: Fate, command: AddResponder, _now: datetime, _: Ladder) -> Decision:
    if command.pending:
        return same(fate, "asked already, and still being told")
    page = PageResponder(command.person_id, command.sequence)
    return Decision(fate, "asked to help", (page,), changed=True)


def raise_urgency(fate: Fate, command: RaiseUrgency, now: datetime, _: Ladder) -> Decision:
    if command.urgency.weight <= fate.urgency.weight:
        return same(fate, f"its urgency is {fate.urgency} already")
    return new_round(fate, now, f"urgency raised to {command.urgency}", urgency=command.urgency)


def resolve(fate: Fate, command: Resolve, now: datetime, _: Ladder) -> Decision:
    by = "source" if command.by.via is Via.SOURCE else "human"
    return resolved(fate, command.by, command.timer, now, by)


def reopen(fate: Fate, command: Reopen, now: datetime, _: Ladder) -> Decision:
    if fate.merged_into is not None:
        return same(fate, "it was merged into another incident: unmerge it")
    if command.held_by is not None:
        return same(fate, f"#{command.held_by} is already open for the same problem")
    return new_round(fate, now, f"reopened by {command.by.name}")


def merge(fate: Fate, command: Merge, now: datetime, _: Ladder) -> Decision:
    """Over here; its alerts go on firing, and whoever was asked to help goes on being told, over there."""
    why = f"merged into #{command.number or command.into}"
    return to(
        fate,
        why,
        CancelPages(why),
        Disarm(),
        status=IncidentStatus.RESOLVED,
        open_alerts=0,
        resolved_at=now,
        resolved_by=command.by,
        kept=None,
        held_until=None,
        merged_into=command.into,
    )


def unmerge(fate: Fate, command: Unmerge, now: datetime, _: Ladder) -> Decision:
    if fate.merged_into is None:
        return same(fate, "it was not merged")
    if command.held_by is not None:
        return same(fate, f"#{command.held_by} is already open for the same problem")
    why = f"taken out again by {command.by.name}"
    return new_round(fate, now, why, merged_into=None, open_alerts=command.firing)


def resolved(fate: Fate, actor: Actor, timer: Armed | None, now: datetime, by: str) -> Decision:
    """Everything ends; what a re-fire within the flap window may take up again is put away."""
    left = None if timer is None else max(timer.due_at - now, timedelta())
    return to(
        fate,
        "resolved",
        CancelPages(f"resolved by {actor.name}", responders=True),
        Disarm(),
        CloseAlerts(by),
        status=IncidentStatus.RESOLVED,
        open_alerts=0,
        resolved_at=now,
        resolved_by=actor,
        kept=Kept(fate.status, timer.kind if timer else None, left),
        held_until=None,
    )
