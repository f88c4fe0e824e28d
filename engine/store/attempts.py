"""Attempts at deliveries: begun, recorded, or never heard of again. Decides nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from engine.bulk import Columns, update_many
from engine.db import Tx, any_of, given, given_list
from engine.models import DeliveryStatus, Try
from engine.schema import attempts, deliveries

ENDED: Final = frozenset({DeliveryStatus.DEAD, DeliveryStatus.CANCELLED})

_DELIVERIES = any_of(deliveries.c.id, given_list("ids", deliveries.c.id))
_SENDING = sa.update(deliveries).where(_DELIVERIES).values(status=DeliveryStatus.SENDING.value)
_LAST = (
    sa.select(sa.func.coalesce(sa.func.max(attempts.c.number), 0))
    .where(attempts.c.org_id == deliveries.c.org_id, attempts.c.delivery_id == deliveries.c.id)
    .scalar_subquery()
)
_BEGIN = (
    sa.insert(attempts)
    .from_select(
        ["org_id", "delivery_id", "number", "started_at", "outcome"],
        sa.select(
            deliveries.c.org_id,
            deliveries.c.id,
            _LAST + 1,
            given("now", attempts.c.started_at),
            sa.literal("sending", sa.Text),
        ).where(deliveries.c.org_id == given("org", deliveries.c.org_id), _DELIVERIES),
    )
    .returning(attempts.c.delivery_id, attempts.c.number)
)


async def begin(tx: Tx, org_id: int, delivery_ids: Sequence[int], now: datetime) -> dict[int, int]:
    """Write the `sending` rows: with their commit the sends begin. Returns each one's attempt number.

    Numbers go on where a delivery was revived or its timer made anew, so no attempt overwrites another.
    """
    if not delivery_ids:
        return {}
    await tx.execute(_SENDING, {"ids": delivery_ids})
    rows = await tx.execute(_BEGIN, {"org": org_id, "ids": delivery_ids, "now": now})
    return dict(rows.all())


_OF_DELIVERIES = any_of(attempts.c.delivery_id, given_list("deliveries", attempts.c.delivery_id))
_HOW_MANY = (
    sa.select(attempts.c.delivery_id, sa.func.count()).where(_OF_DELIVERIES).group_by(attempts.c.delivery_id)
)


async def how_many(tx: Tx, delivery_ids: Sequence[int]) -> dict[int, int]:
    """How many attempts of each of these deliveries were begun."""
    rows = await tx.execute(_HOW_MANY, {"deliveries": delivery_ids})
    return dict(rows.all())


_CLOSE_UNKNOWN = (
    sa.update(attempts)
    .where(
        attempts.c.org_id == given("org", attempts.c.org_id), _OF_DELIVERIES, attempts.c.outcome == "sending"
    )
    .values(outcome="unknown", reason="lease expired", ended_at=given("now", attempts.c.ended_at))
    .returning(attempts.c.delivery_id)
)


async def close_unknown(tx: Tx, org_id: int, delivery_ids: Sequence[int], now: datetime) -> dict[int, int]:
    """Attempts of these deliveries whose end nobody recorded, now that their lease is over.

    They may have been sent or not: they are closed as unknown and count. Returns how many by delivery.
    """
    if not delivery_ids:
        return {}
    rows = await tx.execute(_CLOSE_UNKNOWN, {"org": org_id, "deliveries": delivery_ids, "now": now})
    counted = Counter(rows.scalars())
    if counted:
        more = [{"id": one, "attempts": count} for one, count in counted.items()]
        await update_many(tx, deliveries, more, change=_counted)
    return dict(counted)


@dataclass(frozen=True, slots=True)
class Record:
    """How an attempt ended, and where that leaves the delivery."""

    delivery_id: int
    number: int  # 0: it never began
    outcome: str
    reason: str
    status: DeliveryStatus
    provider: str = ""
    provider_ref: str = ""
    counts: bool = True  # a throttled or unstarted attempt does not count against the delivery
    passed_over: str = ""  # providers that did not take it, before the one that was asked last
    epoch: int | None = None  # of the incident that was resolved meanwhile: what a re-fire may revive


async def record(tx: Tx, org_id: int, ends: Sequence[Record], now: datetime) -> None:
    """Close these attempts, one of a delivery. What the provider said of a delivery meanwhile (delivered,
    failed) stays."""
    if not ends:
        return
    closed = [
        {
            "org_id": org_id,
            "delivery_id": end.delivery_id,
            "number": end.number,
            "outcome": end.outcome,
            "reason": "; ".join(filter(None, (end.reason, end.passed_over))),
            "provider": end.provider,
            "ended_at": now,
        }
        for end in ends
    ]
    await update_many(tx, attempts, closed, by=("org_id", "delivery_id", "number"))
    await update_many(tx, deliveries, [_left(end, now) for end in ends], change=_recorded)


def _left(end: Record, now: datetime) -> dict[str, Any]:
    """The delivery after it; None is what stays as it was."""
    sent = end.status is DeliveryStatus.SENT
    return {
        "id": end.delivery_id,
        "status": end.status.value,
        "reason": end.reason,
        "attempts": int(end.counts),
        "provider": end.provider if sent else None,
        "provider_ref": end.provider_ref if sent else None,
        "sent_at": now if sent else None,
        "ended_at": now if end.status in ENDED else None,
        "cancelled_epoch": end.epoch,
    }


def _recorded(new: Columns) -> Columns:
    open_ = sa.text("deliveries.status IN ('queued', 'sending')")
    judged = {name: sa.case((open_, new[name]), else_=deliveries.c[name]) for name in ("status", "reason")}
    kept = {name: sa.func.coalesce(value, deliveries.c[name]) for name, value in new.items()}
    return {**kept, **judged, **_counted(new)}


def _counted(new: Columns) -> Columns:
    return {"attempts": deliveries.c.attempts + new["attempts"]}


_TRIES = (
    sa.select(
        attempts.c.delivery_id,
        attempts.c.number,
        attempts.c.started_at,
        attempts.c.ended_at,
        attempts.c.outcome,
        attempts.c.reason,
        attempts.c.provider,
    )
    .where(
        attempts.c.org_id == given("org", attempts.c.org_id),
        any_of(attempts.c.delivery_id, given_list("ids", attempts.c.delivery_id)),
    )
    .order_by(attempts.c.id)
)


async def of_deliveries(tx: Tx, org_id: int, delivery_ids: Sequence[int]) -> list[Try]:
    """Every attempt at these, in the order in which they began."""
    return [Try(*row) for row in await tx.execute(_TRIES, {"org": org_id, "ids": delivery_ids})]
