"""Dead letters: deliveries that were given up and that nobody put aside. Decides nothing.

What makes several of them one cause is the method and the beginning of the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from engine.db import Tx, any_of, given, given_list
from engine.models import Delivery, DeliveryStatus, Method
from engine.schema import deliveries, incidents, people
from engine.store.deliveries import delivery_of

CAUSE_LENGTH: Final = 60  # of the reason: what follows may be about this one alone
# Spelled out like the index predicate: see schema.DEAD_LETTER.
_OPEN = sa.text("deliveries.status = 'dead' AND deliveries.put_aside_at IS NULL")
_OF_ORG = deliveries.c.org_id == given("org", deliveries.c.org_id)
_WHY = sa.func.substr(deliveries.c.reason, 1, CAUSE_LENGTH)
_WHO_AND_WHAT = deliveries.outerjoin(people, people.c.id == deliveries.c.person_id).outerjoin(
    incidents, incidents.c.id == deliveries.c.incident_id
)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A delivery that was given up, whom it was for, and the # of the incident it was about."""

    delivery: Delivery
    person: str | None
    incident: int | None

    @property
    def whom(self) -> str:
        """In words, and never an address of a person or a URL."""
        if self.delivery.method is Method.URL:
            return "the fallback URLs"
        if self.delivery.person_id is not None:
            return self.person or "somebody who is gone"
        return self.delivery.address or "the channel"


@dataclass(frozen=True, slots=True)
class Cause:
    """What several died of; `newest` is the last of them."""

    method: Method
    reason: str
    count: int
    first_at: datetime
    newest: DeadLetter


_COUNT = sa.select(sa.func.count()).select_from(deliveries).where(_OF_ORG, _OPEN)


async def count(tx: Tx, org_id: int) -> int:
    return int(await tx.scalar(_COUNT, {"org": org_id}) or 0)


_CAUSES = (
    sa.select(
        deliveries.c.method,
        _WHY.label("why"),
        sa.func.count().label("many"),
        sa.func.max(deliveries.c.id).label("newest"),
        sa.func.min(deliveries.c.ended_at).label("first_at"),
    )
    .where(_OF_ORG, _OPEN)
    .group_by(deliveries.c.method, _WHY)
    .order_by(sa.func.max(deliveries.c.id).desc())
    .limit(sa.bindparam("most", type_=sa.Integer))
)


async def causes(tx: Tx, org_id: int, limit: int) -> list[Cause]:
    """What they died of, the cause of the newest first."""
    rows = (await tx.execute(_CAUSES, {"org": org_id, "most": limit})).all()
    newest = {one.delivery.id: one for one in await read(tx, org_id, [row.newest for row in rows])}
    return [
        Cause(Method(row.method), row.why, row.many, row.first_at, newest[row.newest])
        for row in rows
        if row.newest in newest
    ]


_LETTERS = (
    sa.select(deliveries, people.c.name.label("person_name"), incidents.c.number.label("incident_number"))
    .select_from(_WHO_AND_WHAT)
    .where(_OF_ORG)
)
_READ = _LETTERS.where(any_of(deliveries.c.id, given_list("ids", deliveries.c.id)))


async def read(tx: Tx, org_id: int, ids: Sequence[int]) -> list[DeadLetter]:
    """These deliveries, whatever became of them."""
    return [_letter(row) for row in (await tx.execute(_READ, {"org": org_id, "ids": ids})).mappings()]


async def newest(
    tx: Tx, org_id: int, limit: int, *, before_id: int | None = None, like: DeadLetter | None = None
) -> list[DeadLetter]:
    """Newest first; `like`: only those of its cause; `before_id` goes on where a page ended."""
    wanted = _LETTERS.where(_OPEN)
    if before_id is not None:
        wanted = wanted.where(deliveries.c.id < before_id)
    if like is not None:
        wanted = wanted.where(
            deliveries.c.method == like.delivery.method.value,
            sa.literal(like.delivery.reason[:CAUSE_LENGTH]) == _WHY,
        )
    rows = await tx.execute(wanted.order_by(deliveries.c.id.desc()).limit(limit), {"org": org_id})
    return [_letter(row) for row in rows.mappings()]


def _letter(row: Any) -> DeadLetter:
    return DeadLetter(delivery_of(row), row["person_name"], row["incident_number"])


_THESE = sa.and_(
    _OF_ORG,
    any_of(deliveries.c.id, given_list("ids", deliveries.c.id)),
    sa.text("deliveries.status = 'dead'"),
)
_QUEUE_AGAIN = (
    sa.update(deliveries)
    .where(_THESE)
    .values(
        status=DeliveryStatus.QUEUED.value,
        attempts=0,  # a new series: all of its tries again
        reason="",
        due_at=given("now", deliveries.c.due_at),
        ended_at=None,
        put_aside_at=None,
        handled_by=given("by", deliveries.c.handled_by),
    )
    .returning(deliveries.c.id)
)
_PUT_ASIDE = (
    sa.update(deliveries)
    .where(_THESE, deliveries.c.put_aside_at.is_(None))
    .values(
        put_aside_at=given("now", deliveries.c.put_aside_at),
        handled_by=given("by", deliveries.c.handled_by),
    )
    .returning(deliveries.c.id)
)


async def queue_again(tx: Tx, org_id: int, ids: Sequence[int], by: str, now: datetime) -> set[int]:
    """Those of these that were dead still: they are queued from now on."""
    values = {"org": org_id, "ids": ids, "by": by, "now": now}
    return set((await tx.execute(_QUEUE_AGAIN, values)).scalars()) if ids else set()


async def put_aside(tx: Tx, org_id: int, ids: Sequence[int], by: str, now: datetime) -> set[int]:
    """Those of these that stood in the list: they are in it no more."""
    values = {"org": org_id, "ids": ids, "by": by, "now": now}
    return set((await tx.execute(_PUT_ASIDE, values)).scalars()) if ids else set()
