"""Turns effects into deliveries: who is told, by which method, when.

Pure: never reads the clock or the database. The idempotency key is kind, incident, round, pass,
level, recipient, method and step: nothing is sent twice in a round, everything again in the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from engine.directory import Directory, Person
from engine.escalation.fate import FALLBACK, Effect, PageFallback, PageLevel, PageResponder, Say, Tell
from engine.models import DeliveryKind, Method
from engine.pager.ladder import Link, steps
from engine.store.deliveries import NewDelivery
from engine.store.incidents import Incident


def deliveries_of(
    effect: Effect, incident: Incident, directory: Directory, chain: Sequence[Link], now: datetime
) -> list[NewDelivery]:
    """What must be sent for an effect; none for effects that send nothing."""
    if isinstance(effect, PageLevel):
        people = [
            page for one in effect.people for page in _person(incident, directory, one, effect.level, now)
        ]
        return people + [_channel(incident, name, effect.level, now) for name in effect.channels]
    if isinstance(effect, PageFallback):
        return list(_fallback(incident, directory, chain[: effect.links], now))
    if isinstance(effect, PageResponder):
        return _responder(incident, directory, effect, now)
    if isinstance(effect, Say):
        return [say(incident, effect.key, effect.text, now)]
    if isinstance(effect, Tell):
        return tell(incident, effect.key, effect.text, now)
    return []


def _key(incident: Incident, level: int, recipient: str, method: Method, step: int) -> str:
    fate = incident.fate
    return f"page:{incident.id}:{fate.round}:{fate.pass_}:{level}:{recipient}:{method}:{step}"


def _person(
    incident: Incident, directory: Directory, person_id: int, level: int, now: datetime
) -> list[NewDelivery]:
    person = directory.people[person_id]
    return [
        NewDelivery(
            incident_id=incident.id,
            kind=DeliveryKind.PAGE,
            method=step.method.kind,
            idem_key=_key(incident, level, f"p{person_id}", step.method.kind, step.index),
            due_at=now + step.delay,
            person_id=person_id,
            method_id=step.method.id,
            round=incident.fate.round,
            pass_=incident.fate.pass_,
            level=level,
            step=step.index,
        )
        for step in steps(person, incident.fate.urgency)
    ]


def _channel(incident: Incident, channel: str, level: int, now: datetime) -> NewDelivery:
    return _addressed(incident, Method.CHANNEL, channel, f"c{channel}", level, now)


def _addressed(
    incident: Incident, method: Method, address: str, recipient: str, level: int, now: datetime
) -> NewDelivery:
    return NewDelivery(
        incident_id=incident.id,
        kind=DeliveryKind.PAGE,
        method=method,
        idem_key=_key(incident, level, recipient, method, 0),
        due_at=now,
        address=address,
        round=incident.fate.round,
        pass_=incident.fate.pass_,
        level=level,
    )


def _fallback(
    incident: Incident, directory: Directory, links: Iterable[Link], now: datetime
) -> Iterable[NewDelivery]:
    for link in links:
        for person_id in link.people:
            yield from _person(incident, directory, person_id, FALLBACK, now)
        for channel in link.channels:
            yield _channel(incident, channel, FALLBACK, now)
        for url in link.urls:
            # Why the index: an apprise URL holds a secret, which stays in the settings.
            yield _addressed(incident, Method.URL, str(url), f"u{url}", FALLBACK, now)


def _responder(
    incident: Incident, directory: Directory, ask: PageResponder, now: datetime
) -> list[NewDelivery]:
    person: Person | None = directory.people.get(ask.person_id)
    if person is None:
        return []
    return [
        NewDelivery(
            incident_id=incident.id,
            kind=DeliveryKind.RESPONDER,
            method=step.method.kind,
            idem_key=f"responder:{incident.id}:{ask.sequence}:p{person.id}:{step.method.kind}:{step.index}",
            due_at=now + step.delay,
            person_id=person.id,
            method_id=step.method.id,
            round=incident.fate.round,
            pass_=ask.sequence,
            step=step.index,
        )
        for step in steps(person, incident.fate.urgency)
    ]


def say(incident: Incident, key: str, text: str, now: datetime) -> NewDelivery:
    """A line in the thread of the incident's card; the channel is looked up when it is sent."""
    return NewDelivery(
        incident_id=incident.id,
        kind=DeliveryKind.STATUS,
        method=Method.CHANNEL,
        idem_key=f"say:{incident.id}:{incident.fate.round}:{key}",
        due_at=now,
        round=incident.fate.round,
        body={"text": text, "thread": True},
    )


def tell(incident: Incident, key: str, text: str, now: datetime) -> list[NewDelivery]:
    """A quiet message to whoever acknowledged, if that was a person."""
    by = incident.fate.acknowledged_by
    if by is None or by.person_id is None:
        return []
    return [
        NewDelivery(
            incident_id=incident.id,
            kind=DeliveryKind.STATUS,
            method=Method.SLACK,
            idem_key=f"tell:{incident.id}:{incident.fate.round}:{key}:p{by.person_id}",
            due_at=now,
            person_id=by.person_id,
            round=incident.fate.round,
            body={"text": text},
        )
    ]
