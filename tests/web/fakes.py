"""The pager as the web sees it, in memory: a receiver, a responder, views and a roster with state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from engine.directory import Directory, Person, Service
from engine.models import (
    ORG,
    Action,
    Actor,
    Body,
    Delivery,
    DeliveryKind,
    DeliveryStatus,
    IncidentStatus,
    IncidentView,
    Method,
    Receipt,
    Severity,
    TimelineEntry,
    Urgency,
)
from engine.pager.respond import Answer
from engine.rota.on_call import OnCallNow
from tests.fakes import START

SERVICE = Service(1, "checkout", None, "#payments")
ANA = Person(1, "ana", "U1", "Europe/Berlin", admin=True, active=True)
BEN = Person(2, "ben", "U2", "Europe/Berlin", admin=False, active=True)
GONE = Person(3, "gone", "U3", "Europe/Berlin", admin=False, active=False)


def incident(
    number: int, status: IncidentStatus = IncidentStatus.TRIGGERED, **changes: object
) -> IncidentView:
    made = IncidentView(
        id=1000 + number,
        org_id=ORG,
        number=number,
        status=status,
        urgency=Urgency.HIGH,
        title=f"db-{number} is down",
        service_id=SERVICE.id,
        service=SERVICE.name,
        channel=SERVICE.channel,
        policy=None,
        severity=Severity.CRITICAL,
        raw_severity="critical",
        epoch=1,
        round=1,
        pass_=0,
        level=0,
        opened_at=START,
        alerts=(),
        alert_count=1,
        firing_count=1,
        event_count=1,
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # tests name the fields


def sms_to(person: Person, view: IncidentView, delivery_id: int = 1, method: Method = Method.SMS) -> Delivery:
    return Delivery(
        id=delivery_id,
        org_id=ORG,
        incident_id=view.id,
        kind=DeliveryKind.PAGE,
        method=method,
        person_id=person.id,
        method_id=1,
        address="+12025550143",  # never filled for a person; here so that a test can look for it
        round=1,
        pass_=0,
        level=0,
        step=0,
        status=DeliveryStatus.SENT,
        idem_key=f"page:{view.id}:{delivery_id}",
        due_at=START,
        created_at=START,
        attempts=1,
        sent_at=START,
    )


@dataclass
class FakePager:
    """Incidents by id; what was asked of it stays readable."""

    held: dict[int, IncidentView] = field(default_factory=dict)
    sent: list[Delivery] = field(default_factory=list)
    bodies: list[tuple[int, int, Body]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    acts: list[tuple[str, int, Actor]] = field(default_factory=list)
    fails: Exception | None = None

    def add(self, *views: IncidentView) -> None:
        self.held.update({view.id: view for view in views})

    # the receiver

    async def accept(self, org_id: int, service_id: int, body: Body) -> list[Receipt]:
        if self.fails is not None:
            raise self.fails
        self.bodies.append((org_id, service_id, body))
        return [
            Receipt(event.dedup_key, self._happened(event.action, event.dedup_key)) for event in body.events
        ]

    def _happened(self, action: Action, key: str) -> str:
        if action is Action.TRIGGER:
            known = key in self.keys
            self.keys.add(key)
            return "repeat" if known else "opened"
        if key not in self.keys:
            return "ignored"
        if action is Action.ACKNOWLEDGE:
            return "acknowledged"
        self.keys.remove(key)
        return "resolved"

    async def open_by_hand(
        self, org_id: int, service_id: int, title: str, dedup_key: str | None, actor: Actor
    ) -> tuple[int, bool]:
        if self.fails is not None:
            raise self.fails
        self.acts.append(("open", service_id, actor))
        for view in self.held.values():
            if dedup_key is not None and view.raw_severity == dedup_key:
                return view.id, False
        made = incident(len(self.held) + 1, title=title, raw_severity=dedup_key or "")
        self.add(made)
        return made.id, True

    # the responder

    async def acknowledge(self, incident_id: int, actor: Actor) -> Answer:
        return self._act("acknowledge", IncidentStatus.ACKNOWLEDGED, incident_id, actor)

    async def resolve(self, incident_id: int, actor: Actor) -> Answer:
        return self._act("resolve", IncidentStatus.RESOLVED, incident_id, actor)

    async def escalate(self, incident_id: int, actor: Actor) -> Answer:
        self.acts.append(("escalate", incident_id, actor))
        return Answer(self.held[incident_id], True, "escalated")

    async def merge(self, incident_id: int, actor: Actor, into: int) -> Answer:
        number = self.held[into].number
        return self._moved("merge", incident_id, actor, IncidentStatus.RESOLVED, number)

    async def unmerge(self, incident_id: int, actor: Actor) -> Answer:
        return self._moved("unmerge", incident_id, actor, IncidentStatus.TRIGGERED, None)

    def _moved(
        self, verb: str, incident_id: int, actor: Actor, status: IncidentStatus, into: int | None
    ) -> Answer:
        self.acts.append((verb, incident_id, actor))
        self.add(replace(self.held[incident_id], status=status, merged_into=into))
        return Answer(self.held[incident_id], True, verb)

    def _act(self, verb: str, status: IncidentStatus, incident_id: int, actor: Actor) -> Answer:
        if self.fails is not None:
            raise self.fails
        self.acts.append((verb, incident_id, actor))
        view = self.held[incident_id]
        if view.status in {status, IncidentStatus.RESOLVED}:
            return Answer(view, False, f"already {view.status}")
        changed = replace(view, status=status)
        self.held[incident_id] = changed
        return Answer(changed, True, status.value)

    # the views

    async def incident(self, incident_id: int) -> IncidentView | None:
        return self.held.get(incident_id)

    async def incidents(self, ids: Sequence[int]) -> Sequence[IncidentView]:
        return [self.held[one] for one in ids if one in self.held]

    async def is_there(self, org_id: int, incident_id: int) -> bool:
        view = self.held.get(incident_id)
        return view is not None and view.org_id == org_id

    async def by_number(self, number: int) -> IncidentView | None:
        return next((view for view in self.held.values() if view.number == number), None)

    async def list(
        self, statuses: Sequence[IncidentStatus] | None, limit: int, before_id: int | None
    ) -> Sequence[IncidentView]:
        views = sorted(self.held.values(), key=lambda view: -view.id)
        return [
            view
            for view in views
            if (statuses is None or view.status in statuses) and (before_id is None or view.id < before_id)
        ][:limit]

    async def timeline(self, incident_id: int) -> Sequence[TimelineEntry]:
        return [TimelineEntry(START, "opened", "alertmanager", "source", "opened")]

    async def deliveries(self, incident_id: int) -> Sequence[Delivery]:
        return [each for each in self.sent if each.incident_id == incident_id]

    async def open_texted_to(self, address_hash: str) -> Sequence[IncidentView]:
        texted = {each.incident_id for each in self.sent if each.method is Method.SMS}
        views = sorted(self.held.values(), key=lambda view: view.number)
        return [v for v in views if v.id in texted and v.status is not IncidentStatus.RESOLVED]


@dataclass
class FakeRoster:
    """Ana and Ben, one service, one schedule; Ana is on call, from six hours before to six after."""

    people: Sequence[Person] = (ANA, BEN, GONE)
    asked_at: list[datetime | None] = field(default_factory=list)

    async def directory(self) -> Directory:
        people = {person.id: person for person in self.people}
        return Directory(ORG, 1, people, {SERVICE.id: SERVICE}, {}, {})

    async def who(self, at: datetime | None = None) -> list[OnCallNow]:
        self.asked_at.append(at)
        now = at or START
        hours = timedelta(hours=6)
        return [OnCallNow(1, "primary", (ANA,), "layer", now - hours, now + hours, (BEN,), now + hours)]
