"""The fate of an incident, what can be asked of it, and what follows: all as frozen values.

Never decides; see `decide`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from engine.directory import OnExhaustion, Target
from engine.models import Actor, IncidentStatus, TimerKind, Urgency

REASSIGNED: Final = -1  # the level of a person who was assigned by hand
FALLBACK: Final = -2  # the level of the fallback chain


@dataclass(frozen=True, slots=True)
class Armed:
    """The live timer of an incident when it was resolved, and when it would have fired."""

    kind: TimerKind
    due_at: datetime


@dataclass(frozen=True, slots=True)
class Kept:
    """What a resolve put away, for a re-fire within the flap window to take up again."""

    status: IncidentStatus
    timer: TimerKind | None = None
    left: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Fate:
    """Where an incident stands. `epoch` grows with every change; timers of another epoch do nothing."""

    status: IncidentStatus
    urgency: Urgency
    severity: int = 0  # weight: higher is worse
    epoch: int = 1
    round: int = 1
    pass_: int = 0
    level: int = 0
    level_started_at: datetime | None = None
    reached: bool = False
    links: int = 0
    reassigned_to: Target | None = None
    open_alerts: int = 0
    acknowledged_at: datetime | None = None
    acknowledged_by: Actor | None = None
    snoozed_until: datetime | None = None
    held_until: datetime | None = None
    resolved_at: datetime | None = None
    resolved_by: Actor | None = None
    kept: Kept | None = None
    merged_into: int | None = None

    @property
    def open(self) -> bool:
        return self.status is not IncidentStatus.RESOLVED


@dataclass(frozen=True, slots=True)
class Rung:
    """One level of the policy, resolved to people at this instant."""

    people: tuple[int, ...] = ()
    channels: tuple[str, ...] = ()
    timeout: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Ladder:
    """The policy as it was when the incident opened, with who is on call now."""

    rungs: tuple[Rung, ...] = ()
    repeat: int = 0
    on_exhaustion: OnExhaustion = OnExhaustion.NOTIFY_ADMINS
    ack_timeout: timedelta | None = None
    reassigned: Rung | None = None


# --- commands --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Joiner:
    """A new alert in the group, or a repeat with a higher severity or a later start."""

    urgency: Urgency
    severity: int
    summary: str = ""
    known: bool = False  # a person has just resolved this very alert: it alone hurries nobody


@dataclass(frozen=True, slots=True)
class Timeout:
    """The `escalate` timer fired: a level begins, or its time is over."""


@dataclass(frozen=True, slots=True)
class Exhaust:
    """The `exhaust` timer fired."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """Its timer could not be worked, however often that was tried."""


@dataclass(frozen=True, slots=True)
class Acknowledge:
    by: Actor


@dataclass(frozen=True, slots=True)
class Unacknowledge:
    by: Actor


@dataclass(frozen=True, slots=True)
class EndOfSnooze:
    pass


@dataclass(frozen=True, slots=True)
class AckTimeout:
    pass


@dataclass(frozen=True, slots=True)
class Snooze:
    by: Actor
    until: datetime


@dataclass(frozen=True, slots=True)
class EscalateNow:
    by: Actor


@dataclass(frozen=True, slots=True)
class Reassign:
    by: Actor
    to: Target


@dataclass(frozen=True, slots=True)
class AddResponder:
    """`sequence` counts how often this person was asked; `pending`: they are still being told."""

    by: Actor
    person_id: int
    sequence: int = 1
    pending: bool = False


@dataclass(frozen=True, slots=True)
class RaiseUrgency:
    urgency: Urgency


@dataclass(frozen=True, slots=True)
class Resolve:
    by: Actor
    timer: Armed | None = None


@dataclass(frozen=True, slots=True)
class LastAlertResolved:
    by: Actor
    timer: Armed | None = None


@dataclass(frozen=True, slots=True)
class Refire:
    flap_window: timedelta
    held_by: int | None = None  # the number of an open incident that holds the key


@dataclass(frozen=True, slots=True)
class Reopen:
    by: Actor
    held_by: int | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """`into` is the id of the other incident; people call it by its `number`."""

    by: Actor
    into: int
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Unmerge:
    """`firing` of its alerts come back; `held_by`: the number of an open incident for its problem."""

    by: Actor
    firing: int = 0
    held_by: int | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """A timer found a maintenance window that ends at `until`; who set it, and why."""

    timer: TimerKind
    until: datetime
    by: str = ""
    why: str = ""


Command = (
    Joiner
    | Timeout
    | Exhaust
    | Acknowledge
    | Unacknowledge
    | EndOfSnooze
    | AckTimeout
    | Stuck
    | Snooze
    | EscalateNow
    | Reassign
    | AddResponder
    | RaiseUrgency
    | Resolve
    | LastAlertResolved
    | Refire
    | Reopen
    | Merge
    | Unmerge
    | Hold
)

# --- effects ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arm:
    kind: TimerKind
    due_at: datetime


@dataclass(frozen=True, slots=True)
class Disarm:
    """Every timer of the incident that moves its fate."""


@dataclass(frozen=True, slots=True)
class PageLevel:
    level: int
    people: tuple[int, ...]
    channels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PageFallback:
    """Page the first `links` links of the fallback chain."""

    links: int


@dataclass(frozen=True, slots=True)
class PageResponder:
    person_id: int
    sequence: int


@dataclass(frozen=True, slots=True)
class CancelPages:
    """Queued pages are cancelled and ringing calls hung up; `responders` too, when it is over."""

    reason: str
    responders: bool = False


@dataclass(frozen=True, slots=True)
class EndResponder:
    person_id: int


@dataclass(frozen=True, slots=True)
class RevivePages:
    """Exactly what the resolve of this epoch cancelled is queued again."""

    epoch: int


@dataclass(frozen=True, slots=True)
class CloseAlerts:
    by: str  # source or human


@dataclass(frozen=True, slots=True)
class Tell:
    """A quiet message to whoever acknowledged; once for `key` in a round."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Say:
    """A line in the incident's channel; once for `key` in a round."""

    key: str
    text: str


Effect = (
    Arm
    | Disarm
    | PageLevel
    | PageFallback
    | PageResponder
    | CancelPages
    | EndResponder
    | RevivePages
    | CloseAlerts
    | Tell
    | Say
)


@dataclass(frozen=True, slots=True)
class Decision:
    """The new fate, what follows from it, and why, in a sentence for people.

    Not `changed`: what was asked for was not done, or was done already.
    """

    fate: Fate
    reason: str
    effects: tuple[Effect, ...] = ()
    changed: bool = False
