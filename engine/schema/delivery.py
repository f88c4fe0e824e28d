"""Who is told: deliveries, their attempts, and cards.

Never holds a query.
"""

from __future__ import annotations

import sqlalchemy as sa

from engine.models import DeliveryKind, DeliveryStatus, Method
from engine.schema.columns import (
    CARRIED,
    DEAD_LETTER,
    REFERRED,
    UNFINISHED,
    Key,
    at,
    id_,
    index_where,
    integer,
    json,
    metadata,
    one_of,
    org,
    ref,
    text,
)

deliveries = sa.Table(
    "deliveries",
    metadata,
    id_(),
    org(),
    ref("incident_id", "incidents", nullable=True),
    text("kind"),
    text("method"),
    ref("person_id", "people", nullable=True),
    ref("method_id", "contact_methods", nullable=True),
    text("address", nullable=True),
    integer("round"),
    integer("pass"),
    integer("level"),
    integer("step"),
    text("idem_key"),
    text("status"),
    text("reason", default=""),
    integer("attempts"),
    text("provider", default=""),
    text("provider_ref", default=""),
    json("body"),
    at("due_at", nullable=False),
    at("created_at", nullable=False),
    at("sent_at"),
    at("ended_at"),
    integer("cancelled_epoch", default=None, nullable=True),  # what a re-fire may revive
    # The delivery in whose message it was begun last. Why no foreign key: the table would be looked through.
    sa.Column("carried_by", Key, nullable=True),
    at("put_aside_at"),  # a dead letter that an admin wants to see no more
    text("handled_by", nullable=True),  # who retried it or put it aside last, and by which way
    sa.UniqueConstraint("org_id", "idem_key"),
    one_of("kind", DeliveryKind, "kind"),
    one_of("method", Method, "method"),
    one_of("status", DeliveryStatus, "status"),
)
sa.Index("ix_deliveries_incident", deliveries.c.org_id, deliveries.c.incident_id)
index_where(REFERRED, "ix_deliveries_ref", deliveries.c.org_id, deliveries.c.provider_ref)
index_where(UNFINISHED, "ix_deliveries_unfinished", deliveries.c.org_id, deliveries.c.status, deliveries.c.id)
index_where(UNFINISHED, "ix_deliveries_line", deliveries.c.org_id, deliveries.c.method_id)
sa.Index("ix_deliveries_told", deliveries.c.org_id, deliveries.c.method_id, deliveries.c.sent_at)
index_where(CARRIED, "ix_deliveries_carried", deliveries.c.org_id, deliveries.c.carried_by)
index_where(DEAD_LETTER, "ix_deliveries_dead", deliveries.c.org_id, deliveries.c.id)

attempts = sa.Table(
    "attempts",
    metadata,
    id_(),
    org(),
    ref("delivery_id", "deliveries"),
    integer("number"),
    at("started_at", nullable=False),
    at("ended_at"),
    text("outcome"),  # sending, sent, retry, rejected, throttled, unknown, not_started
    text("reason", default=""),
    text("provider", default=""),
    sa.UniqueConstraint("org_id", "delivery_id", "number"),
)

cards = sa.Table(
    "cards",
    metadata,
    id_(),
    org(),
    ref("incident_id", "incidents"),
    text("channel"),
    ref("person_id", "people", nullable=True),
    text("channel_id", nullable=True),
    text("ts", nullable=True),
    text("broken", nullable=True),  # why no card can stand there, said once
    at("shown_at"),
    at("created_at", nullable=False),
    sa.UniqueConstraint("org_id", "incident_id", "channel"),
)
sa.Index("ix_cards_message", cards.c.org_id, cards.c.channel_id, cards.c.ts)
