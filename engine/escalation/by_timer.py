"""What a timer does to an incident when it fires, or finds a maintenance window.

Never reads the clock or the database. Which statuses a command is for, `table` says.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from engine.escalation.climb import climb, fallback
from engine.escalation.fate import (
    FALLBACK,
    AckTimeout,
    Arm,
    Decision,
    Disarm,
    EndOfSnooze,
    Exhaust,
    Fate,
    Hold,
    Ladder,
    PageFallback,
    Say,
    Stuck,
    Timeout,
)
from engine.escalation.shapes import new_round, same, to
from engine.models import IncidentStatus, TimerKind, Urgency

UNANSWERED_EVERY: Final = timedelta(minutes=30)
HOLD_AT_MOST: Final = timedelta(minutes=5)  # a window may be cancelled: look again soon


def timeout(fate: Fate, _: Timeout, now: datetime, ladder: Ladder) -> Decision:
    if fate.urgency is Urgency.NONE:
        return same(fate, "its urgency is none: nobody is paged")
    if fate.held_until is not None:
        return new_round(fate, now, "the maintenance window is over")
    changed, effects, reason = climb(fate, ladder, now)
    return to(fate, reason, *effects, **changed)


def exhaust(fate: Fate, _: Exhaust, now: datetime, _ladder: Ladder) -> Decision:
    if fate.held_until is not None:
        return new_round(fate, now, "the maintenance window is over")
    if fate.urgency is not Urgency.HIGH:
        line = Say("unanswered", "Nobody answered; its urgency is low, so nobody else is paged.")
        return to(fate, "nobody answered", line, status=IncidentStatus.UNANSWERED)
    links = fate.links + 1
    return to(
        fate,
        "nobody answered: paging the fallback",
        PageFallback(links),
        Arm(TimerKind.EXHAUST, now + UNANSWERED_EVERY),
        status=IncidentStatus.UNANSWERED,
        pass_=fate.pass_ + 1,
        level=FALLBACK,
        level_started_at=now,
        links=links,
    )


def end_of_snooze(fate: Fate, _: EndOfSnooze, now: datetime, _ladder: Ladder) -> Decision:
    if fate.snoozed_until is None:
        return same(fate, "it is not snoozed")
    return new_round(fate, now, "the snooze is over")


def ack_timeout(fate: Fate, _: AckTimeout, now: datetime, _ladder: Ladder) -> Decision:
    return new_round(fate, now, "acknowledged, and not resolved in time")


def hold(fate: Fate, command: Hold, now: datetime, _ladder: Ladder) -> Decision:
    again = min(command.until, now + HOLD_AT_MOST)
    held = replace(fate, held_until=command.until)
    by = f" of {command.by}" if command.by else ""
    why = f": {command.why}" if command.why else ""
    reason = f"held by a maintenance window{by} until {command.until:%Y-%m-%d %H:%M} UTC{why}"
    return same(held, reason, Arm(command.timer, again))


def stuck(fate: Fate, _: Stuck, now: datetime, _ladder: Ladder) -> Decision:
    """The fallback is paged in place of what could not be worked; steps under way run on."""
    reason = "its timer could not be worked"
    if fate.status is IncidentStatus.ACKNOWLEDGED:
        again = new_round(fate, now, reason).fate
        changed, effects, _said = fallback(again, now)
        new = replace(again, **changed)
        return Decision(new, f"{reason}: paging the fallback", (Disarm(), *effects), changed=True)
    changed, effects, _said = fallback(fate, now)
    return to(fate, f"{reason}: paging the fallback", Disarm(), *effects, **changed)
