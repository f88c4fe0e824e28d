"""The ends of leases: what was claimed is finished or given back, by whoever still holds it.

Decides nothing. A worker that stalled past its lease changes nothing, whatever it believes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from engine.bulk import update_many
from engine.db import Tx, any_of, given_list
from engine.models import Timer
from engine.schema import timers
from engine.store.timers import finish_all


@dataclass(frozen=True, slots=True)
class End:
    """A claimed timer that is finished, or due again at `again_at`."""

    timer: Timer
    again_at: datetime | None = None


# Why first and in this order: whoever moves some of these timers does it in the order of their ids.
_LOCK = (
    sa.select(timers.c.id, timers.c.attempt, timers.c.rev, timers.c.due_at)
    .where(any_of(timers.c.id, given_list("ids", timers.c.id)))
    .order_by(timers.c.id)
    .with_for_update()
)


async def end(tx: Tx, ends: Sequence[End]) -> list[bool]:
    """End these leases; says of each whether it was still held, by the attempt number. One that was
    armed again meanwhile is due when that said."""
    if not ends:
        return []
    rows = await tx.execute(_LOCK, {"ids": [one.timer.id for one in ends]})
    found = {(timer, attempt): (rev, due_at) for timer, attempt, rev, due_at in rows}
    held = [(one, found.get((one.timer.id, one.timer.attempt))) for one in ends]
    done: list[int] = []
    due: dict[int, datetime] = {}
    for one, row in held:
        if row is None:
            continue
        rev, due_at = row
        if rev != one.timer.rev:
            due[one.timer.id] = due_at
        elif one.again_at is None:
            done.append(one.timer.id)
        else:
            due[one.timer.id] = one.again_at
    await finish_all(tx, done)
    if due:
        free = {"lease_until": None, "lease_owner": None}
        await update_many(tx, timers, [{"id": one, "due_at": at, **free} for one, at in due.items()])
    return [row is not None for _, row in held]
