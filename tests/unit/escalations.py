"""Values for tests of the fate: people, ladders, and a fate of every status and shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from engine.directory import OnExhaustion, Target, TargetKind
from engine.escalation import Fate, Ladder, Rung, decide, open_fate
from engine.escalation import fate as f
from engine.models import Actor, IncidentStatus, TimerKind, Urgency, Via

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MIN = timedelta(minutes=1)
ANA = Actor("ana", Via.SLACK_BUTTON, 1)
BEN = Actor("ben", Via.SMS, 2)
SOURCE = Actor("alertmanager", Via.SOURCE)
CLOCKWORK = Actor("Midwatch", Via.TIMER)
FLAP = timedelta(minutes=2)
TO_BEN = Target(TargetKind.PERSON, 2)
LADDER = Ladder((Rung((1,)), Rung((2,), ("#ops",), 10 * MIN)), reassigned=Rung((2,)))
REPEATING = replace(LADDER, on_exhaustion=OnExhaustion.REPEAT)


def fresh(urgency: Urgency = Urgency.HIGH, alerts: int = 1) -> Fate:
    return open_fate(urgency, 3, alerts)


def after(*commands: f.Command, of: Fate | None = None, ladder: Ladder = LADDER, at: datetime = NOW) -> Fate:
    """The fate after these commands, all at one instant."""
    fate = of or fresh()
    for command in commands:
        fate = decide(fate, command, at, ladder).fate
    return fate


def armed(decision: f.Decision) -> dict[TimerKind, datetime]:
    return {effect.kind: effect.due_at for effect in decision.effects if isinstance(effect, f.Arm)}


def exhausted(urgency: Urgency = Urgency.HIGH) -> Fate:
    return after(f.Timeout(), f.Timeout(), f.Exhaust(), of=fresh(urgency))


def every_fate() -> Iterator[Fate]:
    """At least one fate of each status, and of each shape that a command looks at."""
    snooze = f.Snooze(ANA, NOW + 60 * MIN)
    timer = f.Armed(TimerKind.ESCALATE, NOW + MIN)
    for urgency in Urgency:
        first = fresh(urgency)
        yield first
        yield after(f.Timeout(), of=first)
        yield replace(first, held_until=NOW)
        yield after(f.Reassign(ANA, TO_BEN), of=first)
        for acknowledged in (
            after(f.Timeout(), f.Acknowledge(ANA), of=first),
            after(f.Acknowledge(SOURCE), of=first),
            after(snooze, of=first),
        ):
            yield acknowledged
            yield replace(acknowledged, acknowledged_at=NOW - 61 * MIN)
        unanswered = after(f.Timeout(), f.Timeout(), f.Exhaust(), of=first)
        yield replace(unanswered, held_until=NOW)
        for fate in (first, unanswered, after(f.Acknowledge(ANA), of=first)):
            yield replace(fate, open_alerts=0)
            yield after(f.Resolve(ANA, timer), of=fate)
            yield after(f.Resolve(SOURCE, timer), of=fate)
        yield after(f.Merge(ANA, 7), of=first)


COMMANDS: tuple[f.Command, ...] = (
    f.Joiner(Urgency.HIGH, 4, "db-2 is down"),
    f.Joiner(Urgency.LOW, 1, "db-2 is slow"),
    f.Joiner(Urgency.NONE, 0),
    f.Joiner(Urgency.NONE, 9),
    f.LastAlertResolved(SOURCE),
    f.Refire(FLAP),
    f.Refire(FLAP, held_by=7),
    f.Timeout(),
    f.Exhaust(),
    f.EndOfSnooze(),
    f.AckTimeout(),
    f.Hold(TimerKind.ESCALATE, NOW + 90 * MIN),
    f.Stuck(),
    f.Acknowledge(ANA),
    f.Acknowledge(SOURCE),
    f.Unacknowledge(BEN),
    f.Snooze(BEN, NOW + 30 * MIN),
    f.Snooze(BEN, NOW),
    f.EscalateNow(BEN),
    f.Reassign(BEN, TO_BEN),
    f.AddResponder(ANA, 2),
    f.AddResponder(ANA, 2, pending=True),
    f.RaiseUrgency(Urgency.HIGH),
    f.Resolve(ANA),
    f.Reopen(ANA),
    f.Reopen(ANA, held_by=7),
    f.Merge(ANA, 7),
    f.Unmerge(ANA),
    f.Unmerge(ANA, 2, held_by=7),
)


def of_status(status: IncidentStatus) -> list[Fate]:
    return [fate for fate in every_fate() if fate.status is status]
