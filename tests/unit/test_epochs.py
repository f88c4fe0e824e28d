"""Which timers do nothing once the fate of their incident has moved on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.directory import Directory
from engine.models import ORG, Rank, Timer, TimerKind, Urgency
from engine.pager.fired import COMMANDS, ENTRIES, ruled
from engine.pager.ladder import Ladders
from engine.store.incidents import Incident
from tests.unit.escalations import NOW, fresh

NOBODY = Directory(ORG, 1, {}, {}, {}, {})
INCIDENT = Incident(7, ORG, 7, 1, "db-1", "db-1 is down", None, NOW, NOW, None, 1, fresh(Urgency.LOW))


def does_something(kind: TimerKind, epoch: int) -> bool:
    timer = Timer(1, ORG, kind.value, INCIDENT.id, NOW, Rank.PAGE, epoch, 1, 0)
    incident = replace(INCIDENT, fate=replace(INCIDENT.fate, epoch=5))
    change = ruled(timer, incident, None, Ladders(NOBODY, NOW), NOW, COMMANDS[kind], ENTRIES[kind])
    return change is not None


@pytest.mark.parametrize(
    "kind", [TimerKind.ESCALATE, TimerKind.EXHAUST, TimerKind.UNSNOOZE, TimerKind.ACK_TIMEOUT]
)
def test_a_timer_of_another_epoch_does_nothing(kind: TimerKind) -> None:
    """An ack, a snooze or a reassignment came between: what was armed before it is void."""
    assert does_something(kind, 5)
    assert not does_something(kind, 4)


def test_a_change_of_urgency_is_of_every_epoch() -> None:
    """It stays due, however often the incident was answered and went on meanwhile."""
    assert does_something(TimerKind.RAISE_URGENCY, 5)
    assert does_something(TimerKind.RAISE_URGENCY, 4)
