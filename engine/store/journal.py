"""What happened, append-only: events of sources, the timeline of incidents, inbound ids.

Decides nothing, and changes no row that it wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from engine.bulk import insert_many
from engine.db import Tx, any_of, given, given_list, insert_of
from engine.models import Actor, TimelineEntry
from engine.schema import events, inbound, timeline


@dataclass(frozen=True, slots=True)
class EventRow:
    service_id: int
    source: str
    action: str
    dedup_key: str
    outcome: str
    summary: str
    reason: str = ""
    incident_id: int | None = None
    raw_severity: str = ""
    content: Mapping[str, Any] = field(default_factory=dict)
    started_at: datetime | None = None
    ended_at: datetime | None = None


async def append_events(tx: Tx, org_id: int, rows: Sequence[EventRow], now: datetime) -> None:
    if rows:
        await insert_many(
            tx,
            events,
            [
                {
                    "service_id": row.service_id,
                    "incident_id": row.incident_id,
                    "source": row.source,
                    "action": row.action,
                    "dedup_key": row.dedup_key,
                    "outcome": row.outcome,
                    "reason": row.reason,
                    "summary": row.summary,
                    "raw_severity": row.raw_severity,
                    "content": dict(row.content),
                    "started_at": row.started_at,
                    "ended_at": row.ended_at,
                }
                for row in rows
            ],
            same={"org_id": org_id, "received_at": now},
        )


@dataclass(frozen=True, slots=True)
class TimelineRow:
    incident_id: int
    kind: str
    actor: Actor
    text: str
    epoch: int
    before: str | None = None
    after: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


async def append_timeline(tx: Tx, org_id: int, rows: Sequence[TimelineRow], now: datetime) -> None:
    if rows:
        await insert_many(
            tx,
            timeline,
            [
                {
                    "incident_id": row.incident_id,
                    "kind": row.kind,
                    "actor": row.actor.name,
                    "person_id": row.actor.person_id,
                    "via": row.actor.via.value,
                    "text": row.text,
                    "before": row.before,
                    "after": row.after,
                    "epoch": row.epoch,
                    "detail": dict(row.detail),
                }
                for row in rows
            ],
            same={"org_id": org_id, "at": now},
        )


_TIMELINE_OF = (
    sa.select(
        timeline.c.at, timeline.c.kind, timeline.c.actor, timeline.c.via, timeline.c.text, timeline.c.detail
    )
    .where(
        timeline.c.org_id == given("org", timeline.c.org_id),
        any_of(timeline.c.incident_id, given_list("incidents", timeline.c.incident_id)),
    )
    .order_by(timeline.c.at, timeline.c.id)
)


async def timeline_of(tx: Tx, org_id: int, incident_ids: Sequence[int]) -> list[TimelineEntry]:
    rows = await tx.execute(_TIMELINE_OF, {"org": org_id, "incidents": incident_ids})
    return [
        TimelineEntry(at=at, kind=kind, actor=actor, via=via, text=text, detail=detail)
        for at, kind, actor, via, text, detail in rows
    ]


async def first_time(tx: Tx, org_id: int, source: str, external_id: str, now: datetime) -> bool:
    """True once for every id: it was acted on, and a message that comes twice has one effect."""
    new = {"org_id": org_id, "source": source, "external_id": external_id, "at": now}
    row = await tx.execute(_first_time(tx.dialect.name), new)
    return row.rowcount == 1


@lru_cache
def _first_time(dialect: str) -> sa.Insert:
    return insert_of(dialect, inbound).on_conflict_do_nothing(index_elements=[*inbound.primary_key])


async def begin_inbound(
    tx: Tx, org_id: int, source: str, external_id: str, now: datetime, patience: timedelta
) -> bool:
    """May the caller act on this message? Not if it was acted on, or somebody began so lately that they
    may be at it still: whoever began and died is followed by the next who sees it."""
    if await acted_on(tx, org_id, source, [external_id]):
        return False
    begun = {"org_id": org_id, "source": f"{source}:begun", "external_id": external_id, "at": now}
    row = await tx.execute(_begin_inbound(tx.dialect.name), {**begun, "stale": now - patience})
    return row.rowcount == 1


@lru_cache
def _begin_inbound(dialect: str) -> sa.Insert:
    insert = insert_of(dialect, inbound)
    return insert.on_conflict_do_update(
        index_elements=[*inbound.primary_key],
        set_={"at": insert.excluded.at},
        where=inbound.c.at <= given("stale", inbound.c.at),
    )


_ACTED_ON = sa.select(inbound.c.external_id).where(
    inbound.c.org_id == given("org", inbound.c.org_id),
    inbound.c.source == given("source", inbound.c.source),
    any_of(inbound.c.external_id, given_list("ids", inbound.c.external_id)),
)


async def acted_on(tx: Tx, org_id: int, source: str, external_ids: Sequence[str]) -> set[str]:
    """Which of these messages somebody has done with."""
    rows = await tx.execute(_ACTED_ON, {"org": org_id, "source": source, "ids": external_ids})
    return set(rows.scalars())


async def forget_inbound(tx: Tx, before: datetime) -> int:
    """Ids older than any sender repeats."""
    row = await tx.execute(sa.delete(inbound).where(inbound.c.at < before))
    return row.rowcount
