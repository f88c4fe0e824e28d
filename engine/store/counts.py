"""What is counted of incidents: alerts that joined, how bad it is, and the # of each. Decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from engine.bulk import Insert, ReturningInsert, insert_many, update_many
from engine.db import Tx, given
from engine.schema import counters, incidents

INCIDENT: Final = "incident"


@dataclass(frozen=True, slots=True)
class Count:
    """What a batch adds to an incident that was open already."""

    incident_id: int
    joined: int = 0
    last_joined_at: datetime | None = None
    worse: bool = False  # then the severity and its raw word are the new ones, even if nobody knows it
    severity: str | None = None
    raw_severity: str = ""
    truncated: int | None = None


def _else_kept(name: str, parameter: str) -> sa.ColumnElement[Any]:
    column = incidents.c[name]
    return sa.func.coalesce(given(parameter, column), column)


def _if_worse(name: str, parameter: str) -> sa.ColumnElement[Any]:
    column, worse = incidents.c[name], sa.bindparam("worse", type_=sa.Boolean)
    return sa.case((worse, given(parameter, column)), else_=column)


_COUNT = (
    sa.update(incidents)
    .where(incidents.c.id == given("of_id", incidents.c.id))
    .values(
        alert_count=incidents.c.alert_count + given("joined", incidents.c.alert_count),
        last_joined_at=_else_kept("last_joined_at", "joined_at"),
        truncated=_else_kept("truncated", "hidden"),
        severity=_if_worse("severity", "new_severity"),
        raw_severity=_if_worse("raw_severity", "new_raw"),
    )
)


async def count(tx: Tx, counts: Sequence[Count]) -> None:
    if counts:
        await tx.execute(_COUNT, [_count_parameters(one) for one in counts])


def _count_parameters(one: Count) -> dict[str, Any]:
    return {
        "of_id": one.incident_id,
        "joined": one.joined,
        "joined_at": one.last_joined_at,
        "hidden": one.truncated,
        "worse": one.worse,
        "new_severity": one.severity,
        "new_raw": one.raw_severity,
    }


async def touch(tx: Tx, org_id: int, name: str) -> None:
    """Write a row that means nothing: reading alone finds no full disk and no standby."""
    await insert_many(tx, counters, [{"org_id": org_id, "name": name, "value": 1}], _added)


def _added(insert: Insert) -> ReturningInsert[Any]:
    return insert.on_conflict_do_update(
        index_elements=["org_id", "name"], set_={"value": counters.c.value + insert.excluded.value}
    ).returning(counters.c.value)


async def number(tx: Tx, org_id: int, ids: Sequence[int]) -> dict[int, int]:
    """Give each its #, in order of id."""
    if not ids:
        return {}
    row = {"org_id": org_id, "name": INCIDENT, "value": len(ids)}
    last = int((await insert_many(tx, counters, [row], _added)).scalar_one())
    numbers = dict(zip(sorted(ids), range(last - len(ids) + 1, last + 1), strict=True))
    await update_many(tx, incidents, [{"id": one, "number": number} for one, number in numbers.items()])
    return numbers
