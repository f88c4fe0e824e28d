"""Everything that is left after a run: the rows, what the database saw, and what the providers took.

Reads only; what must be so is said in `invariants`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa

from engine import metrics, schema
from engine.db import Tx
from engine.models import ORG
from engine.schedule import Schedule
from engine.store.schedules import read_schedules
from tests.crash import witness
from tests.crash.faults import Fault
from tests.crash.ledger import Taken
from tests.crash.witness import Seen

# The directory outlives a run; everything else is what happened in it.
KEPT: Final = frozenset(
    {
        *("people", "contact_methods", "contact_rules", "policies", "policy_versions", "services"),
        *("schedules", "schedule_versions", "overrides", "fallbacks", "integration_keys", "api_tokens"),
        *("counters", "maintenance_windows"),
    }
)
READ: Final = ("incidents", "alerts", "events", "timeline", "deliveries", "attempts", "timers")
COUNTED: Final = ("attempts_unknown", "leases_lost", "sent_after_ack")

Row = Any


@dataclass(frozen=True, slots=True)
class Told:
    """Who is to be told by which method, how long after the alert: the plan of the story."""

    person: str
    method: str
    after: timedelta


@dataclass(slots=True)
class Outside:
    """What the world knows of a run that no table does."""

    fault: Fault
    started_at: datetime
    plan: tuple[Told, ...] = ()
    accepted: int = 0  # posts that were answered with 2xx
    posted: int = 0
    kills: int = 0
    problems: int | None = 1  # how many incidents there are to be; None: any number
    excused: Counter[int] = field(default_factory=Counter)  # deliveries that may be sent once more
    findings: list[str] = field(default_factory=list)  # of the audit, on the way
    counted: dict[str, float] | None = None  # None: the counters died with their process
    dead_counted: float = 0


@dataclass(frozen=True, slots=True)
class History:
    outside: Outside
    ledger: Sequence[Taken]
    seen: Sequence[Seen]
    tables: Mapping[str, Sequence[Row]]
    people: Mapping[int, str]
    schedules: Sequence[Schedule]

    def __getitem__(self, table: str) -> Sequence[Row]:
        return self.tables[table]

    def of(self, what: str) -> list[Seen]:
        return [one for one in self.seen if one.what == what]

    @property
    def pages(self) -> dict[int, Row]:
        return {row.id: row for row in self["deliveries"] if row.kind == "page"}

    def attempts_of(self, delivery_id: int) -> list[Row]:
        return [row for row in self["attempts"] if row.delivery_id == delivery_id]


async def read(tx: Tx, outside: Outside, ledger: Sequence[Taken]) -> History:
    schedules = await read_schedules(tx, ORG, outside.started_at)
    tables = {
        name: (
            await tx.execute(
                sa.select(schema.metadata.tables[name]).order_by(schema.metadata.tables[name].c.id)
            )
        ).all()
        for name in READ
    }
    return History(
        outside=outside,
        ledger=tuple(ledger),
        seen=await witness.read(tx),
        tables=tables,
        people={row.id: row.name for row in await tx.execute(sa.select(schema.people))},
        schedules=[named.schedule for named in schedules.values()],
    )


async def forget(tx: Tx) -> None:
    """Nothing has happened yet; the directory stays."""
    for table in reversed(schema.metadata.sorted_tables):
        if table.name not in KEPT:
            await tx.execute(sa.delete(table))
    await tx.execute(sa.delete(schema.counters).where(schema.counters.c.name == "incident"))
    await witness.forget(tx)


def counters() -> dict[str, float]:
    """The counters that a checker can hold against the rows."""
    return {name: metrics.REGISTRY.get_sample_value(f"midwatch_{name}_total") or 0.0 for name in COUNTED}


def dead_counted() -> float:
    return sum(
        sample.value
        for metric in metrics.deliveries_dead.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    )
