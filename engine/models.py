"""The words of Midwatch as frozen values: event, alert, incident, timer, delivery, card.

Never reads the clock, the database or the network. Instants are aware UTC datetimes, durations
are timedelta, ids are integers; the words themselves are fixed in docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from typing import Any, Final

ORG: Final = 1  # a self-hosted install has one organisation and never sees the word


class Action(StrEnum):
    """What an event asks for."""

    TRIGGER = "trigger"
    ACKNOWLEDGE = "acknowledge"
    RESOLVE = "resolve"


class Severity(StrEnum):
    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Urgency(StrEnum):
    """How people are told: `high` by their high rules, `low` by their low rules, `none` not at all."""

    HIGH = "high"
    LOW = "low"
    NONE = "none"

    @property
    def weight(self) -> int:
        return {"none": 0, "low": 1, "high": 2}[self.value]


class IncidentStatus(StrEnum):
    TRIGGERED = "triggered"
    ACKNOWLEDGED = "acknowledged"
    UNANSWERED = "unanswered"
    RESOLVED = "resolved"


class AlertStatus(StrEnum):
    FIRING = "firing"
    RESOLVED = "resolved"


class DeliveryKind(StrEnum):
    PAGE = "page"
    RESPONDER = "responder"
    STATUS = "status"
    NOTICE = "notice"
    VERIFICATION = "verification"
    OPS = "ops"


class DeliveryStatus(StrEnum):
    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    DELIVERED = "delivered"
    UNCONFIRMED = "unconfirmed"
    DEAD = "dead"
    CANCELLED = "cancelled"


class Method(StrEnum):
    """The kind of channel a delivery goes by. `channel` is a Slack channel, `url` an apprise URL."""

    SLACK = "slack"
    SMS = "sms"
    VOICE = "voice"
    EMAIL = "email"
    PUSH = "push"
    CHANNEL = "channel"
    URL = "url"


class Via(StrEnum):
    """By which way an answer came; shown on the card ("acknowledged by ana via SMS")."""

    SLACK_BUTTON = "slack_button"
    SLACK_COMMAND = "slack_command"
    SLACK_MENTION = "slack_mention"
    SMS = "sms"
    VOICE = "voice"
    WEB = "web"
    API = "api"
    CLI = "cli"
    SOURCE = "source"
    TIMER = "timer"
    CONFIG = "config"


class TimerKind(StrEnum):
    """What must happen later. The subject is an incident, if nothing else stands behind the kind."""

    ESCALATE = "escalate"
    EXHAUST = "exhaust"
    UNSNOOZE = "unsnooze"
    ACK_TIMEOUT = "ack_timeout"
    RAISE_URGENCY = "raise_urgency"
    DELIVER = "deliver"  # a delivery
    CARD = "card"  # a card
    SHIFT = "shift"  # a schedule: its next reminder, or change of who is on call
    HANDOFF = "handoff"  # a handoff: is it accepted?
    COVER = "cover"  # a cover request: its end
    COVERAGE = "coverage"  # a schedule: the look ahead of each morning
    SHOWN = "shown"  # a schedule: its user group and its part of a topic
    CALENDAR = "calendar"  # a calendar import: its next fetch
    RECEIPT = "receipt"  # a delivery: what became of it, if its provider does not say


class LaneName(StrEnum):
    """Who works a timer: a lane has its own queue, so that slow sends never hold up an escalation."""

    FATE = "fate"
    DELIVER = "deliver"
    CARD = "card"
    ROTA = "rota"  # schedules, SQL only
    OUTSIDE = "outside"  # schedules, and work that leaves SQL: claimed with a lease


class Rank(IntEnum):
    """Who goes first when everything is due: pages before cards before notices."""

    PAGE = 0
    CARD = 1
    NOTICE = 2


@dataclass(frozen=True, slots=True)
class Link:
    url: str
    text: str


@dataclass(frozen=True, slots=True)
class Event:
    """One message from a source about one dedup key, cleaned of what SQL and Slack cannot hold."""

    action: Action
    dedup_key: str
    summary: str
    group_key: str | None = None
    severity: Severity | None = None  # None: the source's word is unknown; treated as high urgency
    raw_severity: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class GroupResolve:
    """The source says its whole group is over: every alert under it that began before `before`."""

    group_key: str
    before: datetime | None


@dataclass(frozen=True, slots=True)
class Body:
    """What one request said: its events, group resolves, and what the source did not show."""

    source: str
    events: tuple[Event, ...] = ()
    group_resolves: tuple[GroupResolve, ...] = ()
    truncated: int = 0


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of one event; said to the sender only after the commit."""

    dedup_key: str
    status: str  # opened, joined, repeat, resolved, acknowledged, refired, ignored
    reason: str = ""
    incident_id: int | None = None
    incident_number: int | None = None


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did it and how. `person_id` is None for a source, a timer and the command line."""

    name: str
    via: Via
    person_id: int | None = None
    slack_user_id: str | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    id: int
    incident_id: int
    service_id: int
    dedup_key: str
    source_group: str | None
    status: AlertStatus
    severity: Severity | None
    raw_severity: str
    urgency: Urgency
    summary: str
    labels: Mapping[str, str]
    links: tuple[Link, ...]
    event_count: int
    flap_count: int
    started_at: datetime | None
    first_seen_at: datetime
    last_seen_at: datetime
    resolved_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Timer:
    """A row for something that must happen later. `attempt` is the fence, `rev` counts re-arms."""

    id: int
    org_id: int
    kind: str  # text, not TimerKind: a worker leaves kinds that it does not know alone
    subject_id: int
    due_at: datetime
    rank: int
    epoch: int
    rev: int
    attempt: int


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A delivery to queue; `idem_key` makes a second one of the same step impossible."""

    incident_id: int | None
    kind: DeliveryKind
    method: Method
    idem_key: str
    due_at: datetime
    person_id: int | None = None
    method_id: int | None = None
    address: str | None = None
    round: int = 0
    pass_: int = 0
    level: int = 0
    step: int = 0
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message to one contact method for one step."""

    id: int
    org_id: int
    incident_id: int | None
    kind: DeliveryKind
    method: Method
    person_id: int | None
    method_id: int | None
    address: str | None  # a Slack channel or an apprise URL; a person's address stays in the directory
    round: int
    pass_: int
    level: int
    step: int
    status: DeliveryStatus
    idem_key: str
    due_at: datetime
    created_at: datetime
    attempts: int = 0
    reason: str = ""
    provider: str = ""
    provider_ref: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)
    sent_at: datetime | None = None
    ended_at: datetime | None = None
    carried_by: int | None = None  # the delivery in whose message it was begun last


@dataclass(frozen=True, slots=True)
class Try:
    """An attempt at a delivery as it was recorded; no end: it is under way, or nobody knows."""

    delivery_id: int
    number: int
    started_at: datetime
    ended_at: datetime | None
    outcome: str
    reason: str
    provider: str


@dataclass(frozen=True, slots=True)
class Card:
    """A Slack message that shows an incident: in a channel, or as a DM of one person."""

    id: int
    org_id: int
    incident_id: int
    channel: str  # as configured: "#payments", "C…" or, for a DM, the person's "U…"
    person_id: int | None
    channel_id: str | None  # from the answer of the post; what chat.update needs
    ts: str | None
    shown_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    at: datetime
    kind: str
    actor: str
    via: str
    text: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One line of a receipt: what was sent to whom, when, and what came of it."""

    person: str
    method: Method
    status: DeliveryStatus
    at: datetime
    level: int
    reason: str = ""
    tries: int = 0
    skipped: tuple[tuple[Method, str], ...] = ()  # what their page leaves out, and why


@dataclass(frozen=True, slots=True)
class IncidentView:
    """Everything a card, an SMS, a call or the API shows of an incident."""

    id: int
    org_id: int
    number: int
    status: IncidentStatus
    urgency: Urgency
    title: str
    service_id: int
    service: str
    channel: str | None
    policy: str | None
    severity: Severity | None
    raw_severity: str
    epoch: int
    round: int
    pass_: int
    level: int
    opened_at: datetime
    alerts: tuple[Alert, ...]  # newest ten; `alert_count` counts them all
    alert_count: int
    firing_count: int
    event_count: int
    truncated: int = 0
    acknowledged_at: datetime | None = None
    acknowledged_by: str | None = None
    acknowledged_via: Via | None = None
    resolved_at: datetime | None = None
    resolved_by: str | None = None
    resolved_via: Via | None = None
    snoozed_until: datetime | None = None
    held_until: datetime | None = None  # a maintenance window holds its next step until then
    merged_into: int | None = None  # the number of the incident that goes on in its place
    next_step_at: datetime | None = None
    receipts: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True)
class Carried:
    """A delivery that goes in the message of another one, and the incident that it is about."""

    id: int
    attempt: int
    incident: IncidentView


@dataclass(frozen=True, slots=True)
class Page:
    """What a transport is given to send; `id` is the delivery id, the same for every attempt."""

    id: int
    attempt: int
    kind: DeliveryKind
    method: Method
    address: str
    person: str | None = None
    incident: IncidentView | None = None
    text: str = ""
    person_id: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    carried: tuple[Carried, ...] = ()
    since: datetime | None = None  # no attempt at it began before

    @property
    def incidents(self) -> tuple[IncidentView, ...]:
        """All that it is about, each once."""
        told = (self.incident, *(one.incident for one in self.carried))
        return tuple({view.id: view for view in told if view is not None}.values())


@dataclass(frozen=True, slots=True)
class Sent:
    """The provider accepted it. `detail` is kept beside the reference (a card's channel and ts)."""

    ref: str
    provider: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    receipt: bool = False  # its provider can be asked what became of it


@dataclass(frozen=True, slots=True)
class Retry:
    """It may work later: an outage, a timeout, an answer we do not know."""

    reason: str
    after: timedelta | None = None  # None: the pipeline's own delays
    down: bool = False  # the provider refuses us altogether (credentials): no use asking it again soon
    unsent: bool = False  # it was surely not sent, so another provider may send it at once


@dataclass(frozen=True, slots=True)
class Rejected:
    """It will never work for this address. `quiet`: that is as configured, and no alarm; `stopped`: the
    person wants no texts, and the method is off until they say otherwise."""

    reason: str
    quiet: bool = False
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Throttled:
    """Not now; not an attempt."""

    until: datetime
    reason: str = "throttled"


Outcome = Sent | Retry | Rejected | Throttled
