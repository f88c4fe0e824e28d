"""Lines: what goes to one contact method, in turn. Who else waits there, when it was told last, who sends.

A line is the id of a contact method. Decides nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import sqlalchemy as sa

from engine.bulk import update_many
from engine.db import Tx, any_of, given, given_list
from engine.models import DeliveryKind, DeliveryStatus, Timer, TimerKind
from engine.schema import attempts, contact_methods, deliveries, incidents, timers
from engine.store.timers import COLUMNS, timer_of

# Spelled out like the index predicate: see schema.UNFINISHED.
_UNFINISHED = sa.text("deliveries.status IN ('queued', 'sending')")
_COUNTED: Final = [kind.value for kind in (DeliveryKind.PAGE, DeliveryKind.RESPONDER, DeliveryKind.STATUS)]
# What the carrier lost told nobody anything.
_THERE: Final = [s.value for s in (DeliveryStatus.SENT, DeliveryStatus.DELIVERED, DeliveryStatus.UNCONFIRMED)]
_OF_LINES = sa.and_(
    deliveries.c.org_id == given("org", deliveries.c.org_id),
    any_of(deliveries.c.method_id, given_list("lines", deliveries.c.method_id)),
    any_of(deliveries.c.kind, _COUNTED),
)
# A status update is never of high urgency, whatever it is about.
_HIGH = sa.and_(incidents.c.urgency == "high", deliveries.c.kind != DeliveryKind.STATUS.value)
_WITH_INCIDENT = deliveries.outerjoin(incidents, incidents.c.id == deliveries.c.incident_id)


@dataclass(frozen=True, slots=True)
class Told:
    """When a line was last sent something, and something of high urgency; and whether that is going on."""

    any_at: datetime | None = None
    high_at: datetime | None = None
    flying: bool = False
    flying_high: bool = False


NOTHING: Final = Told()

_TOLD = (
    sa.select(
        deliveries.c.method_id,
        sa.func.max(deliveries.c.sent_at),
        sa.func.max(sa.case((_HIGH, deliveries.c.sent_at))),
    )
    .select_from(_WITH_INCIDENT)
    .where(
        _OF_LINES,
        deliveries.c.sent_at > given("since", deliveries.c.sent_at),
        any_of(deliveries.c.status, _THERE),
    )
    .group_by(deliveries.c.method_id)
)
_FLYING = (
    sa.select(deliveries.c.method_id, sa.func.max(sa.case((_HIGH, 1), else_=0)))
    .select_from(
        _WITH_INCIDENT.join(
            attempts,
            sa.and_(attempts.c.org_id == deliveries.c.org_id, attempts.c.delivery_id == deliveries.c.id),
        )
    )
    .where(
        _OF_LINES,
        _UNFINISHED,
        sa.text("deliveries.status = 'sending'"),
        attempts.c.outcome == "sending",
        attempts.c.started_at > given("flying_since", attempts.c.started_at),
    )
    .group_by(deliveries.c.method_id)
)


async def told(
    tx: Tx, org_id: int, lines: Collection[int], since: datetime, flying_since: datetime
) -> dict[int, Told]:
    """Of these lines, those that were sent something after `since`, or to which an attempt is on its way
    that began after `flying_since`."""
    if not lines:
        return {}
    of = {"org": org_id, "lines": sorted(lines)}
    sent = {row[0]: row for row in await tx.execute(_TOLD, {**of, "since": since})}
    flying = {row[0]: bool(row[1]) for row in await tx.execute(_FLYING, {**of, "flying_since": flying_since})}
    found: dict[int, Told] = {}
    for line in {*sent, *flying}:
        _, any_at, high_at = sent.get(line, (line, None, None))
        found[line] = Told(any_at, high_at, line in flying, flying.get(line, False))
    return found


_HOLD = (
    sa.select(contact_methods.c.id)
    .where(any_of(contact_methods.c.id, given_list("lines", contact_methods.c.id)))
    .order_by(contact_methods.c.id)
    .with_for_update(skip_locked=True, key_share=True)
)


async def hold(tx: Tx, lines: Collection[int]) -> set[int]:
    """Keep these lines to this transaction; returns those that no other has. Waits for nobody."""
    return {*await tx.scalars(_HOLD, {"lines": sorted(lines)})} if lines else set()


_THESE = any_of(deliveries.c.id, given_list("ids", deliveries.c.id))
_HIGH_OF = (
    sa.select(deliveries.c.id)
    .join(incidents, incidents.c.id == deliveries.c.incident_id)
    .where(_THESE, _HIGH)
)


async def high(tx: Tx, delivery_ids: Sequence[int]) -> set[int]:
    """Those of these deliveries that are of high urgency."""
    return {*await tx.scalars(_HIGH_OF, {"ids": delivery_ids})}


_LINES_OF = (
    sa.select(deliveries.c.method_id)
    .where(
        _THESE,
        deliveries.c.method_id.is_not(None),
        any_of(deliveries.c.kind, _COUNTED),
        any_of(deliveries.c.method, given_list("methods", deliveries.c.method)),
    )
    .distinct()
)
_NOW = given("now", timers.c.due_at)
# Why materialized: without statistics PostgreSQL would look through all timers for each of the lines.
_WAITING = (
    sa.select(deliveries.c.org_id, deliveries.c.id, deliveries.c.incident_id)
    .where(_OF_LINES, _UNFINISHED, sa.text("deliveries.status = 'queued'"))
    .cte("waiting")
    .prefix_with("MATERIALIZED")
)
_ALONG = (
    sa.select(*COLUMNS, _WAITING.c.incident_id)
    .select_from(
        _WAITING.join(
            timers, sa.and_(timers.c.org_id == _WAITING.c.org_id, timers.c.subject_id == _WAITING.c.id)
        )
    )
    .where(
        timers.c.kind == TimerKind.DELIVER.value,
        timers.c.due_at <= _NOW,
        sa.or_(timers.c.lease_until.is_(None), timers.c.lease_until <= _NOW),
    )
    .order_by(timers.c.due_at, timers.c.id)
    .limit(given("most", timers.c.attempt))
)


async def along(
    tx: Tx, org_id: int, delivery_ids: Sequence[int], methods: Sequence[str], now: datetime, most: int
) -> dict[Timer, int | None]:
    """What else is due on the lines of these deliveries, with its incident: the oldest first."""
    lines = sorted(await tx.scalars(_LINES_OF, {"ids": delivery_ids, "methods": methods}))
    if not lines:
        return {}
    rows = (await tx.execute(_ALONG, {"org": org_id, "lines": lines, "now": now, "most": most})).all()
    return {timer_of(row[:-1]): row[-1] for row in rows}


async def carry(tx: Tx, carriers: Mapping[int, int | None]) -> None:
    """Keep in whose message each of these deliveries goes; None: in its own."""
    rows = [{"id": one, "carried_by": carrier} for one, carrier in sorted(carriers.items())]
    if rows:
        await update_many(tx, deliveries, rows)


_CARRIED_BY = (
    sa.select(deliveries.c.carried_by, deliveries.c.id)
    .where(
        deliveries.c.org_id == given("org", deliveries.c.org_id),
        any_of(deliveries.c.carried_by, given_list("ids", deliveries.c.carried_by)),
        sa.text("deliveries.carried_by IS NOT NULL"),
    )
    .order_by(deliveries.c.id)
)


async def carried_by(tx: Tx, org_id: int, delivery_ids: Sequence[int]) -> dict[int, list[int]]:
    """The deliveries that were begun last in the message of each of these."""
    found: dict[int, list[int]] = defaultdict(list)
    for carrier, one in await tx.execute(_CARRIED_BY, {"org": org_id, "ids": delivery_ids}):
        found[carrier].append(one)
    return dict(found)
