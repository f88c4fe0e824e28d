"""What a fired timer asks of its incident, and what comes of that.

Decides by the table of fates, and never reads the clock or the database.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from engine import metrics
from engine.directory import Policy
from engine.escalation import decide
from engine.escalation.fate import AckTimeout, Command, EndOfSnooze, Exhaust, RaiseUrgency, Timeout
from engine.models import Actor, Timer, TimerKind, Urgency, Via
from engine.pager.apply import Change
from engine.pager.ladder import Ladders
from engine.store.incidents import Incident
from engine.store.timers import FATE_KINDS

CLOCKWORK: Final = Actor("Midwatch", Via.TIMER)
COMMANDS: Final[dict[str, Command]] = {
    TimerKind.ESCALATE: Timeout(),
    TimerKind.EXHAUST: Exhaust(),
    TimerKind.UNSNOOZE: EndOfSnooze(),
    TimerKind.ACK_TIMEOUT: AckTimeout(),
    TimerKind.RAISE_URGENCY: RaiseUrgency(Urgency.HIGH),
}
# Why not all: a change of urgency belongs to the incident, whatever became of it meanwhile.
OF_AN_EPOCH: Final = frozenset(FATE_KINDS) - {TimerKind.RAISE_URGENCY}
ENTRIES: Final[dict[str, str]] = {
    TimerKind.ESCALATE: "escalated",
    TimerKind.EXHAUST: "unanswered",
    TimerKind.UNSNOOZE: "snooze_ended",
    TimerKind.ACK_TIMEOUT: "ack_timed_out",
    TimerKind.RAISE_URGENCY: "urgency_raised",
}


def ruled(
    timer: Timer,
    incident: Incident,
    policy: Policy | None,
    ladders: Ladders,
    now: datetime,
    command: Command,
    entry: str,
) -> Change | None:
    """What the command makes of the incident; None when the timer is of another epoch."""
    # Why the epoch: an ack that committed between the read and this lock has moved on; a page
    # for the old epoch would wake somebody for nothing.
    if timer.kind in OF_AN_EPOCH and timer.epoch != incident.fate.epoch:
        metrics.timers_stale.inc()
        return None
    known = ladders.of(policy, incident.fate.urgency, incident.fate.reassigned_to)
    decision = decide(incident.fate, command, now, known.ladder)
    remarks = known.remarks if decision.changed else ()
    why = ladders.grounds.of(decision, policy, known.chain)
    return Change(incident, decision, entry, CLOCKWORK, known.chain, remarks, why)
