"""Decides what becomes of an incident: the table of docs/architecture.md, "the fate of an incident".

Never reads the clock, the database or the network. A pair of command and status that is not in
the table changes nothing and says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from engine.escalation.climb import climb
from engine.escalation.fate import (
    FALLBACK,
    REASSIGNED,
    Acknowledge,
    AckTimeout,
    AddResponder,
    Arm,
    CancelPages,
    CloseAlerts,
    Command,
    Decision,
    Disarm,
    Effect,
    EndOfSnooze,
    EndResponder,
    EscalateNow,
    Exhaust,
    Fate,
    Hold,
    Joiner,
    Kept,
    Ladder,
    LastAlertResolved,
    Merge,
    PageFallback,
    PageResponder,
    RaiseUrgency,
    Reassign,
    Refire,
    Reopen,
    Resolve,
    RevivePages,
    Say,
    Snooze,
    Tell,
    Timeout,
    Unacknowledge,
)
from engine.models import Actor, IncidentStatus, TimerKind, Urgency, Via

TRIGGERED, ACKNOWLEDGED = IncidentStatus.TRIGGERED, IncidentStatus.ACKNOWLEDGED
UNANSWERED, RESOLVED = IncidentStatus.UNANSWERED, IncidentStatus.RESOLVED

UNANSWERED_EVERY: Final = timedelta(minutes=30)
OLD_ACK: Final = timedelta(minutes=60)  # an older ack does not speak for a new alert
HOLD_AT_MOST: Final = timedelta(minutes=5)  # a window may be cancelled: look again soon


def open_fate(urgency: Urgency, severity: int, open_alerts: int) -> Fate:
    """The fate of a new incident; its `escalate` timer is armed at once."""
    return Fate(TRIGGERED, urgency, severity, open_alerts=open_alerts)


def decide(fate: Fate, command: Command, now: datetime, ladder: Ladder | None = None) -> Decision:
    """The new fate and its effects. Commands that climb need the `ladder`, resolved at `now`."""
    return _TABLE[type(command)](fate, command, now, ladder or Ladder())


def still_wanted(kind: str, round_: int, fate: Fate) -> str | None:
    """Why a delivery of an incident should no longer go out, or None while it should."""
    if kind == "page":
        if fate.status not in {TRIGGERED, UNANSWERED}:
            return f"the incident is {fate.status}"
        if round_ != fate.round:
            return "paging started over"
    if kind == "responder" and not fate.open:
        return "the incident is resolved"
    return None


# --- shapes of a decision ----------------------------------------------------------------------------


def _same(fate: Fate, reason: str, *effects: Effect) -> Decision:
    return Decision(fate, reason, effects)


def _to(fate: Fate, reason: str, *effects: Effect, **changes: Any) -> Decision:
    return Decision(replace(fate, epoch=fate.epoch + 1, **changes), reason, effects, changed=True)


def _new_round(fate: Fate, now: datetime, reason: str, **changes: Any) -> Decision:
    """Paging starts over: everything may be sent again, nothing of the old round goes on."""
    fresh: dict[str, Any] = {
        "status": TRIGGERED,
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
    return _to(
        fate,
        reason,
        CancelPages(reason),
        Disarm(),
        Arm(TimerKind.ESCALATE, now),
        **(fresh | changes),
    )


# --- what the source does ------------------------------------------------------------------------------


def _joiner(fate: Fate, command: Joiner, now: datetime, _: Ladder) -> Decision:
    if not fate.open:
        return _same(fate, "the incident is resolved")
    urgency = max(fate.urgency, command.urgency, key=lambda word: word.weight)
    severity = max(fate.severity, command.severity)
    raised = urgency is not fate.urgency
    worse = severity > fate.severity
    counted = replace(fate, severity=severity)
    if command.urgency is Urgency.NONE:
        return _same(counted, "counted: its urgency is none")
    if fate.status is UNANSWERED:
        return _new_round(counted, now, "a new alert joined while nobody had answered", urgency=urgency)
    if fate.status is TRIGGERED:
        if raised:
            return _new_round(counted, now, f"a new alert raised the urgency to {urgency}", urgency=urgency)
        return _same(counted, "a new alert joined")
    old = fate.acknowledged_at is not None and now - fate.acknowledged_at > OLD_ACK
    if raised or worse or old:
        why = "an ack of more than an hour ago" if old and not (raised or worse) else "a worse alert"
        return _new_round(counted, now, f"a new alert joined after {why}", urgency=urgency)
    line = f"New alert joined: {command.summary}"
    key = f"joined:{fate.epoch}"
    return _same(counted, "a new alert joined quietly", Say(key, line), Tell(key, line))


def _last_alert_resolved(fate: Fate, command: LastAlertResolved, now: datetime, _: Ladder) -> Decision:
    if not fate.open:
        return _same(fate, "it was resolved already")
    if fate.open_alerts > 0:
        return _same(fate, f"{fate.open_alerts} alerts still fire")
    return _resolved(fate, command, now, "source")


def _refire(fate: Fate, command: Refire, now: datetime, _: Ladder) -> Decision:
    if fate.open:
        return _same(fate, "it is open")
    if command.held_by is not None:
        return _same(fate, f"#{command.held_by} holds the key")
    by_source = fate.resolved_by is not None and fate.resolved_by.via is Via.SOURCE
    recent = fate.resolved_at is not None and now - fate.resolved_at <= command.flap_window
    if fate.kept is None or not by_source or not recent:
        return _same(fate, "a new occurrence")
    kept = fate.kept
    arm = () if kept.timer is None else (Arm(kept.timer, now + (kept.left or timedelta())),)
    return _to(
        fate,
        "the source fired again at once: taken up where it was",
        RevivePages(fate.epoch),
        *arm,
        status=kept.status,
        resolved_at=None,
        resolved_by=None,
        kept=None,
    )


# --- what timers do ------------------------------------------------------------------------------------


def _timeout(fate: Fate, _command: Timeout, now: datetime, ladder: Ladder) -> Decision:
    if fate.status is not TRIGGERED:
        return _same(fate, f"the incident is {fate.status}")
    if fate.urgency is Urgency.NONE:
        return _same(fate, "its urgency is none: nobody is paged")
    if fate.held_until is not None:
        return _new_round(fate, now, "the maintenance window is over")
    new, effects, reason = climb(fate, ladder, now)
    return _to(new, reason, *effects)


def _exhaust(fate: Fate, _command: Exhaust, now: datetime, _: Ladder) -> Decision:
    if fate.status not in {TRIGGERED, UNANSWERED}:
        return _same(fate, f"the incident is {fate.status}")
    if fate.held_until is not None:
        return _new_round(fate, now, "the maintenance window is over")
    if fate.urgency is not Urgency.HIGH:
        line = Say("unanswered", "Nobody answered; its urgency is low, so nobody else is paged.")
        return _to(fate, "nobody answered", line, status=UNANSWERED)
    links = fate.links + 1
    return _to(
        fate,
        "nobody answered: paging the fallback",
        PageFallback(links),
        Arm(TimerKind.EXHAUST, now + UNANSWERED_EVERY),
        status=UNANSWERED,
        pass_=fate.pass_ + 1,
        level=FALLBACK,
        level_started_at=now,
        links=links,
    )


def _end_of_snooze(fate: Fate, _command: EndOfSnooze, now: datetime, _: Ladder) -> Decision:
    if fate.status is not ACKNOWLEDGED or fate.snoozed_until is None:
        return _same(fate, "it is not snoozed")
    return _new_round(fate, now, "the snooze is over")


def _ack_timeout(fate: Fate, _command: AckTimeout, now: datetime, _: Ladder) -> Decision:
    if fate.status is not ACKNOWLEDGED:
        return _same(fate, f"the incident is {fate.status}")
    return _new_round(fate, now, "acknowledged, and not resolved in time")


def _hold(fate: Fate, command: Hold, now: datetime, _: Ladder) -> Decision:
    if not fate.open:
        return _same(fate, "the incident is resolved")
    again = min(command.until, now + HOLD_AT_MOST)
    held = replace(fate, held_until=command.until)
    return _same(held, "held by a maintenance window", Arm(command.timer, again))


# --- what people do ------------------------------------------------------------------------------------


def _acknowledge(fate: Fate, command: Acknowledge, now: datetime, ladder: Ladder) -> Decision:
    if fate.status is RESOLVED:
        return _same(fate, _already_resolved(fate, now))
    if fate.status is ACKNOWLEDGED:
        first = f"already acknowledged by {_name(fate.acknowledged_by)} {_ago(fate.acknowledged_at, now)}"
        person = command.by.person_id
        return _same(fate, first, *(() if person is None else (EndResponder(person),)))
    timeout = () if ladder.ack_timeout is None else (Arm(TimerKind.ACK_TIMEOUT, now + ladder.ack_timeout),)
    return _to(
        fate,
        "acknowledged",
        CancelPages(f"acknowledged by {command.by.name}"),
        Disarm(),
        *timeout,
        *(() if command.by.person_id is None else (EndResponder(command.by.person_id),)),
        status=ACKNOWLEDGED,
        acknowledged_at=now,
        acknowledged_by=command.by,
        held_until=None,
    )


def _unacknowledge(fate: Fate, command: Unacknowledge, now: datetime, _: Ladder) -> Decision:
    if fate.status is not ACKNOWLEDGED:
        return _same(fate, f"it is not acknowledged: it is {fate.status}")
    return _new_round(fate, now, f"unacknowledged by {command.by.name}")


def _snooze(fate: Fate, command: Snooze, now: datetime, _: Ladder) -> Decision:
    if not fate.open:
        return _same(fate, _already_resolved(fate, now))
    if command.until <= now:
        return _same(fate, "a snooze must end in the future")
    by = fate.acknowledged_by or command.by
    return _to(
        fate,
        "snoozed",
        CancelPages(f"snoozed by {command.by.name}"),
        Disarm(),
        Arm(TimerKind.UNSNOOZE, command.until),
        status=ACKNOWLEDGED,
        acknowledged_at=fate.acknowledged_at or now,
        acknowledged_by=by,
        snoozed_until=command.until,
        held_until=None,
    )


def _escalate_now(fate: Fate, command: EscalateNow, now: datetime, ladder: Ladder) -> Decision:
    if not fate.open:
        return _same(fate, _already_resolved(fate, now))
    if fate.urgency is Urgency.NONE:
        return _same(fate, "its urgency is none: raise it first")
    if fate.status is TRIGGERED:
        new, effects, reason = climb(fate, ladder, now, forced=fate.reached)
        return _to(new, f"escalated by {command.by.name}: {reason}", Disarm(), *effects)
    after = fate.level + 1 if fate.level >= 0 and fate.level_started_at is not None else 0
    return _new_round(fate, now, f"escalated by {command.by.name}", level=after)


def _reassign(fate: Fate, command: Reassign, now: datetime, _: Ladder) -> Decision:
    if not fate.open:
        return _same(fate, _already_resolved(fate, now))
    why = f"assigned by {command.by.name}"
    return _new_round(fate, now, why, level=REASSIGNED, reassigned_to=command.to)


def _add_responder(fate: Fate, command: AddResponder, now: datetime, _: Ladder) -> Decision:
    if not fate.open:
        return _same(fate, _already_resolved(fate, now))
    return _same(fate, "asked to help", PageResponder(command.person_id))


def _raise_urgency(fate: Fate, command: RaiseUrgency, now: datetime, _: Ladder) -> Decision:
    if fate.status not in {TRIGGERED, UNANSWERED}:
        return _same(fate, f"the incident is {fate.status}")
    if command.urgency.weight <= fate.urgency.weight:
        return _same(fate, f"its urgency is {fate.urgency} already")
    return _new_round(fate, now, f"urgency raised to {command.urgency}", urgency=command.urgency)


def _resolve(fate: Fate, command: Resolve, now: datetime, _: Ladder) -> Decision:
    if not fate.open:
        return _same(fate, _already_resolved(fate, now))
    return _resolved(fate, command, now, "source" if command.by.via is Via.SOURCE else "human")


def _resolved(fate: Fate, command: Resolve | LastAlertResolved, now: datetime, by: str) -> Decision:
    timer = command.timer
    kept = (
        Kept(fate.status)
        if timer is None
        else Kept(fate.status, timer.kind, max(timer.due_at - now, timedelta()))
    )
    return _to(
        fate,
        "resolved",
        CancelPages(f"resolved by {command.by.name}", responders=True),
        Disarm(),
        CloseAlerts(by),
        status=RESOLVED,
        open_alerts=0,
        resolved_at=now,
        resolved_by=command.by,
        kept=kept,
        held_until=None,
    )


def _reopen(fate: Fate, command: Reopen, now: datetime, _: Ladder) -> Decision:
    if fate.open:
        return _same(fate, f"it is open: {fate.status}")
    if fate.merged_into is not None:
        return _same(fate, f"it was merged into #{fate.merged_into}")
    if command.held_by is not None:
        return _same(fate, f"#{command.held_by} is already open for the same problem")
    return _new_round(fate, now, f"reopened by {command.by.name}")


def _merge(fate: Fate, command: Merge, now: datetime, _: Ladder) -> Decision:
    if not fate.open:
        return _same(fate, _already_resolved(fate, now))
    decision = _resolved(fate, Resolve(command.by), now, "human")
    merged = replace(decision.fate, merged_into=command.into, kept=None)
    effects = tuple(effect for effect in decision.effects if not isinstance(effect, CloseAlerts))
    return Decision(merged, f"merged into #{command.into}", effects, changed=True)


# --- words ---------------------------------------------------------------------------------------------


def _name(actor: Actor | None) -> str:
    return actor.name if actor is not None else "somebody"


def _ago(at: datetime | None, now: datetime) -> str:
    if at is None:
        return "before"
    seconds = int((now - at).total_seconds())
    if seconds < 60:
        return f"{seconds} s ago"
    if seconds < 3600:
        return f"{seconds // 60} min ago"
    return f"{seconds // 3600} h ago"


def _already_resolved(fate: Fate, now: datetime) -> str:
    return f"already resolved by {_name(fate.resolved_by)} {_ago(fate.resolved_at, now)}"


_TABLE: Final[dict[type[Any], Callable[[Fate, Any, datetime, Ladder], Decision]]] = {
    Joiner: _joiner,
    LastAlertResolved: _last_alert_resolved,
    Refire: _refire,
    Timeout: _timeout,
    Exhaust: _exhaust,
    EndOfSnooze: _end_of_snooze,
    AckTimeout: _ack_timeout,
    Hold: _hold,
    Acknowledge: _acknowledge,
    Unacknowledge: _unacknowledge,
    Snooze: _snooze,
    EscalateNow: _escalate_now,
    Reassign: _reassign,
    AddResponder: _add_responder,
    RaiseUrgency: _raise_urgency,
    Resolve: _resolve,
    Reopen: _reopen,
    Merge: _merge,
}
