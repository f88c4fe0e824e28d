"""What the API takes and answers, as pydantic models: the public names of incidents and schedules.

Never shows an address of a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from engine.directory import Person
from engine.models import (
    Delivery,
    DeliveryKind,
    DeliveryStatus,
    IncidentStatus,
    IncidentView,
    Method,
    Severity,
    TimelineEntry,
    Urgency,
    Via,
)
from engine.rota.on_call import OnCallNow

LARGEST_ID: Final = 2**63 - 1
Id = Annotated[int, Field(ge=1, le=LARGEST_ID)]
FIRST_YEAR, LAST_YEAR = 1970, 2199  # beyond, converting between zones may overflow


def _in_utc(value: datetime) -> datetime:
    if not FIRST_YEAR < value.year < LAST_YEAR:
        raise ValueError(f"between {FIRST_YEAR} and {LAST_YEAR}")
    return value.astimezone(UTC)


Instant = Annotated[AwareDatetime, AfterValidator(_in_utc)]
Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1024)]


class Taken(BaseModel):
    """What clients send: a mistyped field is a mistake, not a wish that is passed over."""

    model_config = ConfigDict(extra="forbid")


class IncidentPath(BaseModel):
    id: Id


class SchedulePath(BaseModel):
    name: str


class ListQuery(BaseModel):
    status: list[IncidentStatus] = Field(default=[], description="several: repeated, or with commas")
    limit: int = Field(default=25, ge=1, le=100)
    cursor: str | None = Field(default=None, pattern="^[0-9]{1,18}$", description="`next` of the page before")


class OnCallQuery(BaseModel):
    at: Instant | None = Field(default=None, description="now, if it is not given")


class Act(Taken):
    user_id: Id | None = Field(default=None, description="the person for whom the token acts")


class MergeInto(Act):
    into: Id = Field(description="the incident that goes on")


class NewIncident(Taken):
    service: Word = Field(description="its name")
    title: Word
    dedup_key: Word | None = Field(default=None, description="one open incident per key and service")


class Incident(BaseModel):
    id: int
    number: int
    status: IncidentStatus
    title: str
    service: str
    urgency: Urgency
    severity: Severity | None
    opened_at: datetime
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    acknowledged_via: Via | None
    snoozed_until: datetime | None
    resolved_at: datetime | None
    resolved_by: str | None
    merged_into: int | None = Field(description="the number of the incident that goes on in its place")
    held_until: datetime | None = Field(description="maintenance holds its next step until then")
    alert_count: int
    firing_count: int
    event_count: int
    truncated: int = Field(description="alerts that the source did not show")


class Entry(BaseModel):
    at: datetime
    kind: str
    actor: str
    via: str
    text: str


class Sending(BaseModel):
    id: int
    kind: DeliveryKind
    method: Method
    person: str | None
    level: int
    status: DeliveryStatus
    reason: str
    attempts: int
    due_at: datetime
    sent_at: datetime | None
    ended_at: datetime | None


class WholeIncident(Incident):
    timeline: list[Entry]
    deliveries: list[Sending]


class Acted(Incident):
    changed: bool
    reason: str


class Incidents(BaseModel):
    items: list[Incident]
    next: str | None = Field(description="cursor of the next page; null: this was the last")


class OnCallPerson(BaseModel):
    id: int
    name: str


class OnCall(BaseModel):
    schedule_id: int
    schedule: str
    people: list[OnCallPerson]
    reason: str
    since: datetime | None
    until: datetime | None
    next_people: list[OnCallPerson]
    next_at: datetime | None


class OnCalls(BaseModel):
    items: list[OnCall]


def incident_fields(view: IncidentView) -> dict[str, Any]:
    return {name: getattr(view, name) for name in Incident.model_fields}


def incident(view: IncidentView) -> Incident:
    return Incident(**incident_fields(view))


def entry(each: TimelineEntry) -> Entry:
    return Entry(at=each.at, kind=each.kind, actor=each.actor, via=each.via, text=each.text)


def sending(each: Delivery, people: Mapping[int, Person]) -> Sending:
    person = people.get(each.person_id) if each.person_id is not None else None
    return Sending(
        id=each.id,
        kind=each.kind,
        method=each.method,
        person=None if person is None else person.name,
        level=each.level,
        status=each.status,
        reason=each.reason,
        attempts=each.attempts,
        due_at=each.due_at,
        sent_at=each.sent_at,
        ended_at=each.ended_at,
    )


def on_call(now: OnCallNow) -> OnCall:
    return OnCall(
        schedule_id=now.schedule_id,
        schedule=now.schedule,
        people=_people(now.people),
        reason=now.reason,
        since=now.since,
        until=now.until,
        next_people=_people(now.next_people),
        next_at=now.next_at,
    )


def _people(people: tuple[Person, ...]) -> list[OnCallPerson]:
    return [OnCallPerson(id=person.id, name=person.name) for person in people]
