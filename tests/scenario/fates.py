"""Words for scenarios about the fate of an incident: policies by hand, and what was heard of them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
import yaml

from engine import audit
from engine.config.parse import parse_config
from engine.models import ORG, DeliveryKind, DeliveryStatus
from engine.schema import timers
from engine.store.timers import FATE_KINDS
from tests.scenario.harness import Pager

Heard = list[tuple[str, str]]


def level(*targets: dict[str, str], timeout: str = "5m") -> dict[str, Any]:
    return {"targets": list(targets), "timeout": timeout}


def to(person: str) -> dict[str, str]:
    return {"person": person}


PRIMARY = {"schedule": "primary"}
OPS = {"channel": "#payments"}


async def change(pager: Pager, **sections: Any) -> None:
    """Apply these sections of a midwatch.yaml on top of what is there."""
    known = await pager.app.setup.known()
    await pager.app.setup.apply(parse_config(yaml.safe_dump(sections), known))
    pager.app.receiver.known.forget()


async def walk(pager: Pager, *levels: dict[str, Any], **options: Any) -> None:
    """Give the policy these levels, before anything fires."""
    await change(pager, policies=[{"name": "payments", "levels": list(levels), **options}])


async def rota(pager: Pager, *people: str, **options: Any) -> None:
    """Who is on call on `primary`, week by week; nobody is a schedule that has yet to begin."""
    layer = {
        "name": "week",
        "users": list(people or ("alice",)),
        "start": "2026-01-05T09:00" if people else "2199-01-01T00:00",
        "rotation": {"every": 1, "unit": "week"},
    }
    await change(pager, schedules=[{"name": "primary", "timezone": "UTC", "layers": [layer], **options}])


def take(pager: Pager) -> Heard:
    """Everything that was sent and not taken yet, but for alarms: (person or address, method)."""
    pager.silence_ops()
    heard = sorted((page.person or page.address, page.method.value) for page in pager.pages())
    pager._heard.clear()
    return heard


async def soon(pager: Pager) -> Heard:
    """What is heard within a second: Slack takes one message per second and person."""
    await pager.advance(seconds=1)
    return take(pager)


async def fate_timers(pager: Pager, number: int = 1) -> list[str]:
    """What is armed for the incident."""
    incident = await pager.incident(number)
    async with pager.app.database.snapshot() as tx:
        rows = await tx.execute(
            sa.select(timers.c.kind).where(
                timers.c.org_id == ORG,
                timers.c.subject_id == incident.id,
                timers.c.kind.in_([kind.value for kind in FATE_KINDS]),
            )
        )
        return sorted(rows.scalars())


async def entries(pager: Pager, kind: str, number: int = 1) -> list[str]:
    """The texts of the timeline's entries of one kind."""
    incident = await pager.incident(number)
    return [one.text for one in await pager.app.views.timeline(incident.id) if one.kind == kind]


async def queued(pager: Pager, number: int = 1) -> int:
    """How many deliveries of the incident may still go out; what only tells what became of it left out."""
    incident = await pager.incident(number)
    alive = {DeliveryStatus.QUEUED, DeliveryStatus.SENDING}
    rows = await pager.app.views.deliveries(incident.id)
    return sum(one.status in alive and one.kind is not DeliveryKind.STATUS for one in rows)


async def broken(pager: Pager) -> list[str]:
    """What the audit would complain about."""
    async with pager.app.database.snapshot() as tx:
        found = await audit.find(tx, ORG, pager.clock.now())
    return [f"{one.invariant} {one.subject}" for one in found]
