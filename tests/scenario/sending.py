"""What the delivery tests share: two people on a ladder, a transport that waits, and what was stored."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from engine import metrics, schema
from engine.models import ORG, Delivery, DeliveryStatus, Method, Outcome, Page
from engine.notify.status import ProviderStatus
from engine.store import deliveries, incidents
from tests.fakes import FakeTransport
from tests.scenario.harness import Pager

LADDER = """
people:
  - {name: ann, slack: U0ANN, timezone: UTC, contact: {sms: "+12025550111", voice: "+12025550111"},
     rules: {high: [sms, voice after 3m], low: [sms, voice after 3m]}}
  - {name: ben, timezone: UTC, contact: {sms: "+12025550112"}, rules: {high: [sms], low: [sms]}}
policies:
  - name: ladder
    levels:
      - {targets: [{person: ann}], timeout: 10m}
      - {targets: [{person: ben}], timeout: 10m}
  - name: ben-first
    levels:
      - {targets: [{person: ben}], timeout: 10m}
      - {targets: [{person: ann}], timeout: 10m}
services:
  - {name: checkout, policy: ladder, urgency: {warning: low}}
  - {name: search, policy: ben-first}
fallback: [{person: ben}]
"""


@dataclass
class Gate(FakeTransport):
    """Holds every send until it is opened; says when as many as awaited have come in."""

    entered: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    awaited: int = 1
    inside: int = 0

    async def send(self, page: Page) -> Outcome:
        self.inside += 1
        if self.inside >= self.awaited:
            self.entered.set()
        await self.opened.wait()
        return await super().send(page)


class Killed(BaseException):
    """The process ends here."""


def gate(method: Method) -> Gate:
    return Gate(frozenset({method}), method.value)


def provider(pager: Pager) -> ProviderStatus:
    """What providers say of their messages: (reference, word, code)."""
    app = pager.app
    return ProviderStatus(app.database, app.clock, app.roster.directory, app.nudge)


async def stored(pager: Pager, method: Method | None = None, number: int = 1) -> list[Delivery]:
    """The deliveries of an incident, oldest first."""
    async with pager.app.database.snapshot() as tx:
        incident = await incidents.id_of(tx, ORG, number)
        assert incident is not None
        found = await deliveries.of_incidents(tx, ORG, [incident])
    return [one for one in found if method in (None, one.method)]


async def only(pager: Pager, method: Method) -> Delivery:
    (one,) = await stored(pager, method)
    return one


async def statuses(pager: Pager) -> dict[str, DeliveryStatus]:
    return {one.method.value: one.status for one in await stored(pager)}


async def tries(pager: Pager, delivery_id: int) -> list[tuple[int, str, datetime]]:
    """(number, outcome, begun at) of every attempt of a delivery."""
    table = schema.attempts
    async with pager.app.database.snapshot() as tx:
        rows = await tx.execute(
            sa.select(table.c.number, table.c.outcome, table.c.started_at)
            .where(table.c.delivery_id == delivery_id)
            .order_by(table.c.id)
        )
        return [(row.number, row.outcome, row.started_at) for row in rows]


def counted(name: str, **labels: str) -> float:
    """The value of a metric now."""
    return metrics.REGISTRY.get_sample_value(f"midwatch_{name}", labels) or 0.0


async def alarms(pager: Pager) -> list[Any]:
    """The stored alarms to whoever runs Midwatch: (text, address)."""
    table = schema.deliveries
    async with pager.app.database.snapshot() as tx:
        rows = await tx.execute(sa.select(table).where(table.c.kind == "ops").order_by(table.c.id))
        return [(row.body["text"], row.address) for row in rows]
