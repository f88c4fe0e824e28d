"""Codes as rows: one for each that was sent, kept for as long as the limits look back.

Decides nothing. Never holds a code: a keyed hash of it, and the delivery that brings it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from engine.db import Tx, any_of
from engine.models import DeliveryStatus, Method
from engine.schema import LIVE, deliveries, verifications

_SENT = verifications.c


@dataclass(frozen=True, slots=True)
class NewCode:
    """A code that is about to be sent."""

    person_id: int
    method_id: int
    address_hash: str
    code_hash: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Code:
    """A code that was not used yet nor replaced, and how its delivery stands."""

    id: int
    method_id: int
    code_hash: str
    tries: int
    created_at: datetime
    expires_at: datetime
    method: Method
    status: DeliveryStatus
    reason: str


async def asked(
    tx: Tx, org_id: int, person_id: int, address_hash: str, hour: datetime, day: datetime
) -> tuple[int, int, int]:
    """How many codes this person was sent since `hour`, this address since `day`, everybody since `hour`."""

    def count(*which: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
        return sa.func.coalesce(sa.func.sum(sa.case((sa.and_(*which), 1), else_=0)), 0)

    row = (
        await tx.execute(
            sa.select(
                count(_SENT.created_at > hour, _SENT.person_id == person_id),
                count(_SENT.address_hash == address_hash),
                count(_SENT.created_at > hour),
            ).where(_SENT.org_id == org_id, _SENT.created_at > min(hour, day))
        )
    ).one()
    person, address, everybody = row
    return int(person), int(address), int(everybody)


async def insert(tx: Tx, org_id: int, new: NewCode, now: datetime) -> int:
    row = {
        "org_id": org_id,
        "person_id": new.person_id,
        "method_id": new.method_id,
        "address_hash": new.address_hash,
        "code_hash": new.code_hash,
        "tries": 0,
        "created_at": now,
        "expires_at": new.expires_at,
    }
    return int((await tx.execute(sa.insert(verifications).values(row).returning(_SENT.id))).scalar_one())


async def brought_by(tx: Tx, org_id: int, code_id: int, delivery_id: int) -> None:
    this = sa.update(verifications).where(_SENT.org_id == org_id, _SENT.id == code_id)
    await tx.execute(this.values(delivery_id=delivery_id))


async def end(tx: Tx, org_id: int, method_ids: Sequence[int], now: datetime) -> list[int]:
    """Codes of these methods are worth nothing any more; the deliveries that bring them."""
    ended = await tx.execute(
        sa.update(verifications)
        .where(_SENT.org_id == org_id, any_of(_SENT.method_id, method_ids), LIVE)
        .values(ended_at=now)
        .returning(_SENT.delivery_id)
    )
    return sorted(one for one in ended.scalars() if one is not None)


async def live(tx: Tx, org_id: int, person_id: int) -> list[Code]:
    """Neither used nor replaced; whether one is too old or was tried too often is for the caller."""
    rows = await tx.execute(
        sa.select(
            _SENT.id,
            _SENT.method_id,
            _SENT.code_hash,
            _SENT.tries,
            _SENT.created_at,
            _SENT.expires_at,
            deliveries.c.method,
            deliveries.c.status,
            deliveries.c.reason,
        )
        .join(deliveries, deliveries.c.id == _SENT.delivery_id)
        .where(
            _SENT.org_id == org_id, _SENT.person_id == person_id, sa.text("verifications.ended_at IS NULL")
        )
        .order_by(_SENT.id)
    )
    return [Code(*row[:6], Method(row.method), DeliveryStatus(row.status), row.reason) for row in rows]


async def count_try(tx: Tx, org_id: int, code_ids: Sequence[int]) -> None:
    await tx.execute(
        sa.update(verifications)
        .where(_SENT.org_id == org_id, any_of(_SENT.id, code_ids))
        .values(tries=_SENT.tries + 1)
    )


async def forget(tx: Tx, org_id: int, before: datetime) -> int:
    """Those that no limit looks back to."""
    old = sa.delete(verifications).where(_SENT.org_id == org_id, _SENT.created_at <= before)
    return (await tx.execute(old)).rowcount
