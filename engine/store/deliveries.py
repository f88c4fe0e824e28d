"""Delivery rows: queued, cancelled, revived, and what a provider says of them later. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import RowMapping

from engine.bulk import Insert, ReturningInsert, insert_many, update_many
from engine.db import Tx, any_of, given, given_list
from engine.models import Delivery, DeliveryKind, DeliveryStatus, IncidentStatus, Method, NewDelivery
from engine.outage import WAITS
from engine.schema import REFERRED, contact_methods, deliveries, incidents

# Spelled out like the index predicate: see schema.UNFINISHED.
QUEUED: Final = sa.text("deliveries.status = 'queued'")
_OF_THESE_INCIDENTS = sa.and_(
    deliveries.c.org_id == given("org", deliveries.c.org_id),
    any_of(deliveries.c.incident_id, given_list("incidents", deliveries.c.incident_id)),
)
_OF_THE_INCIDENT = sa.and_(
    deliveries.c.org_id == given("org", deliveries.c.org_id),
    deliveries.c.incident_id == given("incident", deliveries.c.incident_id),
)
_THESE = any_of(deliveries.c.id, given_list("ids", deliveries.c.id))


def delivery_of(row: RowMapping) -> Delivery:
    return Delivery(
        id=row["id"],
        org_id=row["org_id"],
        incident_id=row["incident_id"],
        kind=DeliveryKind(row["kind"]),
        method=Method(row["method"]),
        person_id=row["person_id"],
        method_id=row["method_id"],
        address=row["address"],
        round=row["round"],
        pass_=row["pass"],
        level=row["level"],
        step=row["step"],
        status=DeliveryStatus(row["status"]),
        idem_key=row["idem_key"],
        due_at=row["due_at"],
        created_at=row["created_at"],
        attempts=row["attempts"],
        reason=row["reason"],
        provider=row["provider"],
        provider_ref=row["provider_ref"],
        body=row["body"],
        sent_at=row["sent_at"],
        ended_at=row["ended_at"],
        carried_by=row["carried_by"],
    )


async def queue(tx: Tx, org_id: int, new: Sequence[NewDelivery], now: datetime) -> list[tuple[int, datetime]]:
    """Insert what is not there yet; returns (id, due_at) of the new rows, whose timers must be armed."""
    unique = {one.idem_key: one for one in new}
    if not unique:
        return []
    rows = await insert_many(
        tx,
        deliveries,
        [_row(one) for _, one in sorted(unique.items())],
        _unless_there,
        {"org_id": org_id, "status": DeliveryStatus.QUEUED.value, "created_at": now},
    )
    return [(row["id"], row["due_at"]) for row in rows.mappings()]


def _row(new: NewDelivery) -> dict[str, Any]:
    return {
        "incident_id": new.incident_id,
        "kind": new.kind.value,
        "method": new.method.value,
        "person_id": new.person_id,
        "method_id": new.method_id,
        "address": new.address,
        "round": new.round,
        "pass": new.pass_,
        "level": new.level,
        "step": new.step,
        "idem_key": new.idem_key,
        "body": dict(new.body),
        "due_at": new.due_at,
    }


def _unless_there(insert: Insert) -> ReturningInsert[Any]:
    insert = insert.on_conflict_do_nothing(index_elements=["org_id", "idem_key"])
    return insert.returning(deliveries.c.id, deliveries.c.due_at)


_READ = sa.select(deliveries).where(_THESE)


async def read(tx: Tx, ids: Sequence[int]) -> dict[int, Delivery]:
    rows = await tx.execute(_READ, {"ids": ids})
    return {one.id: one for one in map(delivery_of, rows.mappings())}


_INCIDENTS_OF = sa.select(deliveries.c.id, deliveries.c.incident_id).where(
    _THESE, deliveries.c.incident_id.is_not(None)
)


async def incidents_of(tx: Tx, ids: Sequence[int]) -> dict[int, int]:
    """The incident of each of these deliveries that is about one."""
    rows = await tx.execute(_INCIDENTS_OF, {"ids": ids})
    return dict(rows.all())


_OF_INCIDENTS = sa.select(deliveries).where(_OF_THESE_INCIDENTS).order_by(deliveries.c.id)


async def of_incidents(tx: Tx, org_id: int, incident_ids: Sequence[int]) -> list[Delivery]:
    rows = await tx.execute(_OF_INCIDENTS, {"org": org_id, "incidents": incident_ids})
    return [delivery_of(row) for row in rows.mappings()]


_BY_REF = (
    sa.select(deliveries.c.id)
    .where(
        deliveries.c.org_id == given("org", deliveries.c.org_id),
        deliveries.c.provider_ref == given("ref", deliveries.c.provider_ref),
        REFERRED,
    )
    .order_by(deliveries.c.id)
)


async def by_ref(tx: Tx, org_id: int, provider_ref: str) -> list[int]:
    """The deliveries that went in the message with this reference."""
    return [*await tx.scalars(_BY_REF, {"org": org_id, "ref": provider_ref})]


_TO_CANCEL = sa.select(deliveries.c.id, deliveries.c.incident_id).where(
    _OF_THESE_INCIDENTS, any_of(deliveries.c.kind, given_list("kinds", deliveries.c.kind)), QUEUED
)


async def cancel(
    tx: Tx,
    org_id: int,
    incident_ids: Sequence[int],
    kinds: Sequence[DeliveryKind],
    reason: str,
    epochs: Mapping[int, int],
    now: datetime,
) -> list[int]:
    """Cancel what is still queued for these incidents; one being sent is recorded by its sender.

    `epochs` is the incident's epoch after the change: what a re-fire may revive.
    """
    of_these = {"org": org_id, "incidents": incident_ids, "kinds": [kind.value for kind in kinds]}
    found = (await tx.execute(_TO_CANCEL, of_these)).all()
    if found:
        cancelled = {"status": DeliveryStatus.CANCELLED.value, "reason": reason, "ended_at": now}
        ended = [{"id": one, **cancelled, "cancelled_epoch": epochs[incident]} for one, incident in found]
        await update_many(tx, deliveries, ended, QUEUED)
    return [one for one, _ in found]


async def supersede(tx: Tx, delivery_ids: Sequence[int], reason: str, now: datetime) -> None:
    """Cancel those of these that are queued still; nothing revives them."""
    if delivery_ids:
        cancelled = {"status": DeliveryStatus.CANCELLED.value, "reason": reason, "ended_at": now}
        await update_many(tx, deliveries, [{"id": one, **cancelled} for one in sorted(delivery_ids)], QUEUED)


_CANCEL_RESPONDER = (
    sa.update(deliveries)
    .where(
        _OF_THE_INCIDENT,
        deliveries.c.person_id == given("person", deliveries.c.person_id),
        deliveries.c.kind == DeliveryKind.RESPONDER.value,
        QUEUED,
    )
    .values(
        status=DeliveryStatus.CANCELLED.value,
        reason=given("why", deliveries.c.reason),
        ended_at=given("now", deliveries.c.ended_at),
    )
    .returning(deliveries.c.id)
)


async def cancel_responder(
    tx: Tx, org_id: int, incident_id: int, person_id: int, reason: str, now: datetime
) -> list[int]:
    of_the_person = {"org": org_id, "incident": incident_id, "person": person_id}
    rows = await tx.execute(_CANCEL_RESPONDER, {**of_the_person, "why": reason, "now": now})
    return list(rows.scalars())


_REVIVE = (
    sa.update(deliveries)
    .where(
        _OF_THE_INCIDENT,
        deliveries.c.status == DeliveryStatus.CANCELLED.value,
        deliveries.c.cancelled_epoch == given("epoch", deliveries.c.cancelled_epoch),
    )
    .values(status=DeliveryStatus.QUEUED.value, reason="", ended_at=None, cancelled_epoch=None)
    .returning(deliveries.c.id, deliveries.c.due_at)
)


async def revive(tx: Tx, org_id: int, incident_id: int, epoch: int) -> list[tuple[int, datetime]]:
    """Queue again exactly what was cancelled when the incident came to `epoch`."""
    rows = await tx.execute(_REVIVE, {"org": org_id, "incident": incident_id, "epoch": epoch})
    return [(one, due_at) for one, due_at in rows]


_beside = deliveries.alias("beside")
_its_incident = incidents.alias("its_incident")
# In the same call, about an incident for which somebody is being paged still.
_WANTED_BESIDE = (
    sa.select(_beside.c.id)
    .join(_its_incident, _its_incident.c.id == _beside.c.incident_id)
    .where(
        _beside.c.org_id == deliveries.c.org_id,
        _beside.c.provider_ref == deliveries.c.provider_ref,
        sa.text("beside.provider_ref <> ''"),
        _beside.c.id != deliveries.c.id,
        _beside.c.round == _its_incident.c.round,
        _its_incident.c.status.in_([IncidentStatus.TRIGGERED.value, IncidentStatus.UNANSWERED.value]),
    )
    .correlate(deliveries)
)
_RINGING = sa.select(deliveries).where(
    _OF_THESE_INCIDENTS,
    deliveries.c.method == Method.VOICE.value,
    deliveries.c.status == DeliveryStatus.SENT.value,
    ~sa.exists(_WANTED_BESIDE),
)


async def ringing(tx: Tx, org_id: int, incident_ids: Sequence[int]) -> list[Delivery]:
    """Calls that were placed and of which no end is known, unless they ring for another incident too."""
    rows = await tx.execute(_RINGING, {"org": org_id, "incidents": incident_ids})
    return [delivery_of(row) for row in rows.mappings()]


_SET_STATUS = (
    sa.update(deliveries)
    .where(deliveries.c.id == given("one", deliveries.c.id))
    .values(
        status=given("now_is", deliveries.c.status),
        reason=given("why", deliveries.c.reason),
        ended_at=given("ended", deliveries.c.ended_at),
    )
)


_GO_ON: Final = frozenset({DeliveryStatus.QUEUED, DeliveryStatus.SENDING, DeliveryStatus.SENT})


async def set_status(tx: Tx, delivery_id: int, status: DeliveryStatus, reason: str, now: datetime) -> None:
    ended = None if status in _GO_ON else now
    await tx.execute(_SET_STATUS, {"one": delivery_id, "now_is": status.value, "why": reason, "ended": ended})


_QUEUED = (
    sa.select(deliveries).where(_OF_THESE_INCIDENTS, QUEUED).order_by(deliveries.c.step, deliveries.c.id)
)


async def queued(tx: Tx, org_id: int, incident_ids: Sequence[int]) -> list[Delivery]:
    """What these incidents still have queued, the next steps first."""
    rows = await tx.execute(_QUEUED, {"org": org_id, "incidents": incident_ids})
    return [delivery_of(row) for row in rows.mappings()]


_OF_THE_LEVEL = sa.and_(
    incidents.c.id == deliveries.c.incident_id,
    incidents.c.round == deliveries.c.round,
    incidents.c["pass"] == deliveries.c["pass"],
    incidents.c.level == deliveries.c.level,
)
_WITH_LIVING_PAGES = (
    sa.select(deliveries.c.incident_id)
    .distinct()
    .join(incidents, _OF_THE_LEVEL)
    .where(
        _OF_THESE_INCIDENTS,
        deliveries.c.kind == DeliveryKind.PAGE.value,
        deliveries.c.method != Method.CHANNEL.value,
        deliveries.c.status != DeliveryStatus.DEAD.value,
        sa.not_(sa.and_(QUEUED, deliveries.c.reason.startswith(WAITS, autoescape=True))),
    )
)


async def with_living_pages(tx: Tx, org_id: int, incident_ids: Sequence[int]) -> set[int]:
    """Those of these incidents whose present level has a page to a person that has not died, and does not
    wait for a provider that is down."""
    rows = await tx.execute(_WITH_LIVING_PAGES, {"org": org_id, "incidents": incident_ids})
    return set(rows.scalars())


_INCIDENTS_TEXTED_TO = (
    sa.select(incidents.c.id)
    .distinct()
    .select_from(
        deliveries.join(contact_methods, contact_methods.c.id == deliveries.c.method_id).join(
            incidents, incidents.c.id == deliveries.c.incident_id
        )
    )
    .where(
        deliveries.c.org_id == given("org", deliveries.c.org_id),
        contact_methods.c.org_id == given("org", contact_methods.c.org_id),
        contact_methods.c.address_hash == given("address_hash", contact_methods.c.address_hash),
        deliveries.c.method == Method.SMS.value,
        sa.or_(deliveries.c.sent_at.is_not(None), deliveries.c.status == DeliveryStatus.SENDING.value),
        sa.text("incidents.status <> 'resolved'"),
    )
    .order_by(incidents.c.id.desc())
)


async def incidents_texted_to(tx: Tx, org_id: int, address_hash: str) -> list[int]:
    """Open incidents that were sent by SMS to this number, newest first."""
    rows = await tx.execute(_INCIDENTS_TEXTED_TO, {"org": org_id, "address_hash": address_hash})
    return list(rows.scalars())
