"""What midwatch.yaml says, as frozen values; everything is called by its name.

Never knows an id: the same values are made of a file and of the directory, so that they compare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from engine.directory import OnExhaustion, TargetKind
from engine.models import Method, Urgency
from engine.schedule import Schedule

# What a person may write under `contact`; Slack is the person's `slack`.
CONTACTS: Final = (Method.SMS, Method.VOICE, Method.EMAIL)


@dataclass(frozen=True, slots=True)
class Step:
    """ "sms after 1m"."""

    method: Method
    delay: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class PersonForm:
    name: str
    slack: str | None
    timezone: str
    admin: bool
    contact: Mapping[Method, str]
    rules: Mapping[Urgency, tuple[Step, ...]] | None  # None: the file leaves them to the person

    @property
    def addresses(self) -> dict[Method, str]:
        """Every method with its address, Slack first."""
        slack = {Method.SLACK: self.slack} if self.slack else {}
        return {**slack, **self.contact}


@dataclass(frozen=True, slots=True)
class TargetForm:
    kind: TargetKind
    name: str


@dataclass(frozen=True, slots=True)
class LevelForm:
    targets: tuple[TargetForm, ...]
    timeout: timedelta


@dataclass(frozen=True, slots=True)
class PolicyForm:
    name: str
    levels: tuple[LevelForm, ...]
    repeat: int = 0
    on_exhaustion: OnExhaustion = OnExhaustion.NOTIFY_ADMINS
    ack_timeout: timedelta | None = None


@dataclass(frozen=True, slots=True)
class ScheduleForm:
    """`schedule` has people by name and no overrides; the rest is where Slack shows it."""

    name: str
    schedule: Schedule
    channel: str | None = None
    user_group: str | None = None
    topic: bool = False


@dataclass(frozen=True, slots=True)
class ServiceForm:
    name: str
    policy: str | None = None
    channel: str | None = None
    group_by: tuple[str, ...] | None = None
    group_window: timedelta | None = None
    flap_window: timedelta = timedelta(minutes=2)
    urgency: Mapping[str, Urgency] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Config:
    """Each section by name, in the order of the file. `fallback` None: not in the file."""

    people: Mapping[str, PersonForm] = field(default_factory=dict)
    schedules: Mapping[str, ScheduleForm] = field(default_factory=dict)
    policies: Mapping[str, PolicyForm] = field(default_factory=dict)
    services: Mapping[str, ServiceForm] = field(default_factory=dict)
    fallback: tuple[TargetForm, ...] | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """Names that the file may use without defining them: what is in the directory already."""

    people: frozenset[str] = frozenset()
    schedules: frozenset[str] = frozenset()
    policies: frozenset[str] = frozenset()
