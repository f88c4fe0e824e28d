"""A notice about shifts, addressed: to a person by the method that can carry it, or to a channel.

Pure: a delivery as a value. Never sends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from engine.directory import ContactMethod, Person
from engine.models import DeliveryKind, Method, NewDelivery

Body = Mapping[str, Any]


def to_person(person: Person, key: str, body: Body, due_at: datetime) -> NewDelivery | None:
    """By direct message, else by mail; None for whom neither reaches."""
    method = _method(person)
    if method is None or not person.active:
        return None
    return NewDelivery(
        incident_id=None,
        kind=DeliveryKind.NOTICE,
        method=method.kind,
        idem_key=key,
        due_at=due_at,
        person_id=person.id,
        method_id=method.id,
        body=body,
    )


def _method(person: Person) -> ContactMethod | None:
    usable = {method.kind: method for method in person.methods if method.usable}
    return usable.get(Method.SLACK) or usable.get(Method.EMAIL)


def has_slack(person: Person) -> bool:
    """Can this person press a button?"""
    method = _method(person)
    return person.active and method is not None and method.kind is Method.SLACK


def to_channel(channel: str, key: str, body: Body, due_at: datetime) -> NewDelivery:
    return NewDelivery(
        incident_id=None,
        kind=DeliveryKind.NOTICE,
        method=Method.CHANNEL,
        idem_key=key,
        due_at=due_at,
        address=channel,
        body=body,
    )
