"""What a source's resolve of its whole group means for alerts that its body does not mention.

Decides nothing about incidents; it only adds resolves to the plans of a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from engine.db import Tx
from engine.intake.fold import Plan, Request, prepare
from engine.models import Action, Body, Event
from engine.store import alerts
from engine.store.dedup_keys import Key


async def add_group_resolves(
    tx: Tx, org_id: int, requests: Iterable[Request], plans: dict[Key, Plan]
) -> None:
    """Resolve every alert open under these groups: it was cut off, or its own end was lost."""
    for request in requests:
        service, body = request.service, request.body
        if not body.group_resolves:
            continue
        ends = {one.group_key: one.before for one in body.group_resolves}
        found = await alerts.of_source_groups(tx, org_id, service.id, sorted(ends))
        mentioned = {item.event.dedup_key for item in request.items}
        for event in unmentioned(found, ends, mentioned):
            plan = plans.setdefault((service.id, event.dedup_key), Plan(service, event.dedup_key))
            (item,) = prepare(service, Body(body.source, (event,))).items
            plan.add(replace(item, place=None))


def unmentioned(
    open_alerts: Sequence[tuple[str, str, datetime | None]],
    ends: dict[str, datetime | None],
    mentioned: set[str],
) -> list[Event]:
    """A resolve for each alert of the groups that began before its group's end; later ones stay."""
    events = []
    for group, dedup_key, started_at in open_alerts:
        end = ends[group]
        over = end is None or started_at is None or started_at < end
        if over and dedup_key not in mentioned:
            events.append(Event(Action.RESOLVE, dedup_key, "", group_key=group, ended_at=end))
    return events
