"""The directory as frozen values: people, contact methods and rules, services, policies, schedules.

One `Directory` is what was true at one revision; the worker keeps it until the revision moves.
Never reads the clock, the database or the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from engine.models import Method, Urgency
from engine.schedule import Schedule


class TargetKind(StrEnum):
    SCHEDULE = "schedule"
    PERSON = "person"
    CHANNEL = "channel"


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a level pages. `ref` is the id of a schedule or person, or the name of a channel."""

    kind: TargetKind
    ref: int | str


@dataclass(frozen=True, slots=True)
class Level:
    targets: tuple[Target, ...]
    timeout: timedelta

    def pages(self, schedule_id: int) -> bool:
        return any(one.kind is TargetKind.SCHEDULE and one.ref == schedule_id for one in self.targets)


class OnExhaustion(StrEnum):
    NOTIFY_ADMINS = "notify_admins"
    REPEAT = "repeat"


@dataclass(frozen=True, slots=True)
class Policy:
    """One version of an escalation policy; an incident walks the version it opened under."""

    id: int  # of the policy
    version_id: int
    name: str
    levels: tuple[Level, ...]
    repeat: int = 0  # extra passes
    on_exhaustion: OnExhaustion = OnExhaustion.NOTIFY_ADMINS
    ack_timeout: timedelta | None = None
    created_at: datetime | None = field(default=None, compare=False)  # of this version


STOPPED: Final = "the person replied STOP"  # why an SMS method is off until they reply START
REMOVED: Final = "removed"  # of a contact method: its address is forgotten, and nobody sees it any more
BY_CONFIG: Final = "config"  # given by midwatch.yaml: whoever may apply a file is trusted with what is in it
BY_PERSON: Final = "person"
BY_CODE: Final = "code"
IMPORTED: Final = "import"  # what it is `verified_by` while nobody has: an importer wrote it down


@dataclass(frozen=True, slots=True)
class ContactMethod:
    id: int
    person_id: int
    kind: Method
    address: str  # in clear, in memory only: never logged
    verified: bool
    disabled_reason: str | None = None
    verified_by: str = ""  # config, slack or code; import: it is not verified, an importer wrote it down
    in_file: bool = False  # midwatch.yaml names it

    @property
    def usable(self) -> bool:
        return self.verified and self.disabled_reason is None

    @property
    def last_resort(self) -> bool:
        """Is it used while nothing of its person is verified? What people type is not: it may be anyone's."""
        return not self.verified and self.disabled_reason is None and self.verified_by == IMPORTED


@dataclass(frozen=True, slots=True)
class ContactRule:
    """ "SMS after 1 min": the method and the delay from the start of the level."""

    method_id: int
    delay: timedelta


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    name: str
    slack_user_id: str | None
    timezone: str
    admin: bool
    active: bool
    methods: tuple[ContactMethod, ...] = ()
    rules: Mapping[Urgency, tuple[ContactRule, ...]] = field(default_factory=dict)
    rules_by: str = ""  # config or person; else nobody gave any, and the usual order is in force


@dataclass(frozen=True, slots=True)
class Service:
    id: int
    name: str
    policy_id: int | None
    channel: str | None
    group_by: tuple[str, ...] | None = None  # None: the source's own grouping; (): each key alone
    group_window: timedelta | None = None
    flap_window: timedelta = timedelta(minutes=2)  # docs/architecture.md: the fate of an incident
    urgency: Mapping[str, Urgency] = field(default_factory=dict)  # by severity, or the raw word


@dataclass(frozen=True, slots=True)
class InForce:
    """A version of a schedule from `start` up to `end`."""

    schedule: Schedule
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class NamedSchedule:
    """A schedule with its id and name. `schedule` names people by the decimal text of their id."""

    id: int
    name: str
    schedule: Schedule
    people: tuple[int, ...] = ()
    fallback: int | None = None
    channel: str | None = None  # where its changes, handoffs and warnings are told
    user_group: str | None = None  # of Slack, by handle or id, that holds whoever is on call
    topic: bool = False  # whoever is on call stands in the channel's topic


@dataclass(frozen=True, slots=True)
class Directory:
    org_id: int
    rev: int
    people: Mapping[int, Person]
    services: Mapping[int, Service]
    policies: Mapping[int, Policy]  # the newest version, by policy id
    schedules: Mapping[int, NamedSchedule]  # the version in force and its overrides, by schedule id
    fallback: tuple[Target, ...] = ()
    fallback_urls: Sequence[str] = ()

    @property
    def admins(self) -> tuple[int, ...]:
        return tuple(p.id for p in self.people.values() if p.admin and p.active)

    def policies_paging(self, schedule_id: int) -> list[Policy]:
        """Those that page the schedule at some level, by name."""
        found = [one for one in self.policies.values() if any(each.pages(schedule_id) for each in one.levels)]
        return sorted(found, key=lambda one: one.name)


def keeping(directory: Directory, known: Directory | None) -> Directory:
    """The directory with the very schedules of a former one that are as they were.

    Those know what was worked out about them already (docs/decisions/0017).
    """
    former = {} if known is None else known.schedules
    schedules = {
        named.id: replace(named, schedule=former[named.id].schedule)
        if named.id in former and former[named.id].schedule == named.schedule
        else named
        for named in directory.schedules.values()
    }
    return replace(directory, schedules=schedules)


@dataclass(frozen=True, slots=True)
class Override:
    """Who takes over, on which schedule, from when to when (half open)."""

    id: int
    schedule_id: int
    kind: str  # replace_all, cover or add
    person_id: int
    covers_id: int | None
    start_at: datetime
    end_at: datetime
    created_by: str = ""
