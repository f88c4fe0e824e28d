"""Which command moves an incident from which status to which: the table of docs/architecture.md.

Never decides more than that: what a command does, and when it lets things be, is in the other rooms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from engine.escalation.fate import (
    Acknowledge,
    AckTimeout,
    AddResponder,
    EndOfSnooze,
    EscalateNow,
    Exhaust,
    Hold,
    Joiner,
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
from engine.models import IncidentStatus

Moves = Mapping[IncidentStatus, frozenset[IncidentStatus]]

_T, _A = IncidentStatus.TRIGGERED, IncidentStatus.ACKNOWLEDGED
_U, _R = IncidentStatus.UNANSWERED, IncidentStatus.RESOLVED


def _from(*origins: IncidentStatus, to: set[IncidentStatus]) -> Moves:
    return {origin: frozenset(to) for origin in origins}


def _stays(*statuses: IncidentStatus) -> Moves:
    return {status: frozenset({status}) for status in statuses}


# A status that a command does not name refuses it: nothing changes, and the answer says why.
TABLE: Final[Mapping[type[Any], Moves]] = {
    # what the source does
    Joiner: {_T: frozenset({_T}), _A: frozenset({_A, _T}), _U: frozenset({_U, _T})},
    LastAlertResolved: _from(_T, _A, _U, to={_R}),
    Refire: _from(_R, to={_T, _A, _U}),
    # what timers do
    Timeout: _stays(_T),
    Exhaust: _from(_T, _U, to={_U, _T}),
    EndOfSnooze: _from(_A, to={_T}),
    AckTimeout: _from(_A, to={_T}),
    Hold: _stays(_T, _A, _U),
    Stuck: {_T: frozenset({_T}), _A: frozenset({_T}), _U: frozenset({_U})},
    # what people do
    Acknowledge: _from(_T, _A, _U, to={_A}),
    Unacknowledge: _from(_A, to={_T}),
    Snooze: _from(_T, _A, _U, to={_A}),
    EscalateNow: _from(_T, _A, _U, to={_T}),
    Reassign: _from(_T, _A, _U, to={_T}),
    AddResponder: _stays(_T, _A, _U),
    RaiseUrgency: _from(_T, _U, to={_T}),
    Resolve: _from(_T, _A, _U, to={_R}),
    Reopen: _from(_R, to={_T}),
    Merge: _from(_T, _A, _U, to={_R}),
    Unmerge: _from(_R, to={_T}),
}
