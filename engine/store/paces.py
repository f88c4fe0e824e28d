"""Rows of lines: when the next message may start there. They hold over all workers.

Decides nothing. Whoever keeps a line waits for no incident meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

import sqlalchemy as sa

from engine.bulk import Insert, insert_many, update_many
from engine.db import Tx, any_of, given, given_list
from engine.schema import EPOCH, paces


@dataclass(frozen=True, slots=True)
class Standing:
    """A line as it is: see `schema.pace`."""

    free_at: datetime
    first_at: datetime
    high_until: datetime
    low_until: datetime
    held_until: datetime | None = None
    day: datetime = EPOCH  # of the count
    begun: int = 0


FRESH: Final = Standing(EPOCH, EPOCH, EPOCH, EPOCH)  # nothing was sent there for long

_KEPT = (
    sa.select(
        paces.c.line,
        paces.c.free_at,
        paces.c.first_at,
        paces.c.high_until,
        paces.c.low_until,
        paces.c.held_until,
        paces.c.day,
        paces.c.begun,
    )
    .where(
        paces.c.org_id == given("org", paces.c.org_id),
        any_of(paces.c.line, given_list("lines", paces.c.line)),
    )
    .order_by(paces.c.line)  # Why: two workers that want the same lines lock them in one order
    .with_for_update()
)


async def keep(tx: Tx, org_id: int, lines: Collection[str]) -> dict[str, Standing]:
    """Keep these lines to this transaction, made where they are new."""
    if not lines:
        return {}
    kept = await _kept(tx, org_id, lines)
    if missing := {*lines} - kept.keys():
        await insert_many(
            tx,
            paces,
            [{"line": line, **asdict(FRESH)} for line in sorted(missing)],
            _unless_there,
            {"org_id": org_id},
        )
        kept = await _kept(tx, org_id, lines)
    return kept


async def _kept(tx: Tx, org_id: int, lines: Collection[str]) -> dict[str, Standing]:
    rows = await tx.execute(_KEPT, {"org": org_id, "lines": sorted(lines)})
    return {line: Standing(*rest) for line, *rest in rows}


def _unless_there(insert: Insert) -> sa.Insert:
    return insert.on_conflict_do_nothing(index_elements=["org_id", "line"])


async def store(tx: Tx, org_id: int, standings: Mapping[str, Standing]) -> None:
    """Write lines that this transaction keeps."""
    rows = [{"org_id": org_id, "line": line, **asdict(one)} for line, one in sorted(standings.items())]
    if rows:
        await update_many(tx, paces, rows, by=("org_id", "line"))


_FORGET = sa.delete(paces).where(
    paces.c.org_id == given("org", paces.c.org_id),
    paces.c.free_at < given("before", paces.c.free_at),
    paces.c.high_until < given("before", paces.c.high_until),
    paces.c.low_until < given("before", paces.c.low_until),
    sa.or_(paces.c.held_until.is_(None), paces.c.held_until < given("before", paces.c.held_until)),
)


async def forget(tx: Tx, org_id: int, before: datetime) -> int:
    """Lines where nothing was sent since, and nobody waits: they are as good as new."""
    return (await tx.execute(_FORGET, {"org": org_id, "before": before})).rowcount
