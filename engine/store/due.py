"""The queues of timers, one for each lane and rank, in the order in which they are due.

Only reads. Says what is untaken, and never takes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from engine.db import ListOf, Tx, any_of
from engine.models import LaneName, Rank, Timer
from engine.schema import EPOCH, Instant, timers
from engine.store.timers import COLUMNS, LANE_OF, LANES, timer_of


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere in the queue of a lane and rank; without `due_at` its beginning."""

    lane: LaneName
    rank: Rank
    due_at: datetime = EPOCH
    id: int = 0


def beginnings(lanes: Iterable[LaneName] = LaneName) -> tuple[Place, ...]:
    return tuple(Place(lane, rank) for lane in lanes for rank in Rank)


async def near(
    tx: Tx, places: Sequence[Place], now: datetime, until: datetime, limit: int
) -> tuple[list[Timer], tuple[Place, ...]]:
    """What comes after these places, due `until` then and untaken now: at most `limit` of each queue,
    in one statement. Second: where to read on in queues that have more."""
    bound: dict[str, Any] = {"until": until, "now": now, "few": limit, "kinds": [*LANES]}
    for n, place in enumerate(places):
        bound |= {f"lane{n}": place.lane, f"rank{n}": int(place.rank)}
        bound |= {f"due{n}": place.due_at, f"id{n}": place.id}
    rows = await tx.execute(_near(len(places)), bound)
    found = [timer_of(row) for row in rows]
    last: dict[tuple[LaneName, int], list[Timer]] = defaultdict(list)
    for timer in found:
        last[LANE_OF[timer.kind], timer.rank].append(timer)
    full = [
        Place(lane, Rank(rank), *max((timer.due_at, timer.id) for timer in these))
        for (lane, rank), these in last.items()
        if len(these) == limit
    ]
    return sorted(found, key=lambda timer: (timer.rank, timer.due_at, timer.id)), tuple(full)


@lru_cache(maxsize=32)
def _near(queues: int) -> sa.CompoundSelect[Any]:
    """One probe of the index for each queue. Kinds of a newer version are left alone."""
    until, now = (sa.bindparam(name, type_=Instant) for name in ("until", "now"))
    free = sa.or_(timers.c.lease_until.is_(None), timers.c.lease_until <= now)
    known = any_of(timers.c.kind, sa.bindparam("kinds", type_=ListOf(sa.Text)))
    each = []
    for n in range(queues):
        place = sa.tuple_(sa.bindparam(f"due{n}", type_=Instant), sa.bindparam(f"id{n}", type_=sa.BigInteger))
        queue = (
            sa.select(*COLUMNS)
            .where(timers.c.lane == sa.bindparam(f"lane{n}", type_=sa.Text))
            .where(timers.c.rank == sa.bindparam(f"rank{n}", type_=sa.Integer))
            .where(sa.tuple_(timers.c.due_at, timers.c.id) > place, timers.c.due_at <= until, free, known)
            .order_by(timers.c.due_at, timers.c.id)
            .limit(sa.bindparam("few", type_=sa.Integer))
        )
        each.append(sa.select(queue.subquery(f"queue{n}")))
    return sa.union_all(*each)


async def next_due(tx: Tx) -> datetime | None:
    """When the earliest timer of any lane is due, or its lease ends, whichever is later."""
    earliest = []
    for lane in LaneName:
        rows = await tx.execute(
            sa.select(timers.c.due_at, timers.c.lease_until)
            .where(timers.c.lane == lane.value, any_of(timers.c.kind, [*LANES]))
            .order_by(timers.c.due_at, timers.c.id)
            .limit(50)
        )
        earliest += [max(row.due_at, row.lease_until or row.due_at) for row in rows]
    return min(earliest, default=None)
