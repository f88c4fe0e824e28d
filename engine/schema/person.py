"""Whom, and how: people, their contact methods and their contact rules.

Never holds a query.
"""

from __future__ import annotations

import sqlalchemy as sa

from engine.models import Method, Urgency
from engine.schema.columns import Duration, at, id_, integer, metadata, one_of, org, ref, text

people = sa.Table(
    "people",
    metadata,
    id_(),
    org(),
    text("name"),
    text("slack_user_id", nullable=True),
    text("timezone"),
    sa.Column("admin", sa.Boolean, nullable=False, default=False),
    at("created_at", nullable=False),
    at("deactivated_at"),
    sa.UniqueConstraint("org_id", "name"),
    sa.UniqueConstraint("org_id", "slack_user_id"),
)

contact_methods = sa.Table(
    "contact_methods",
    metadata,
    id_(),
    org(),
    ref("person_id", "people"),
    text("kind"),
    text("address"),  # encrypted; `address_hash` is what inbound messages are matched by
    text("address_hash"),
    at("verified_at"),
    text("verified_by", default=""),
    text("disabled_reason", nullable=True),
    at("created_at", nullable=False),
    sa.UniqueConstraint("org_id", "person_id", "kind", "address_hash"),
    one_of("kind", Method, "kind"),
)
sa.Index("ix_contact_methods_hash", contact_methods.c.org_id, contact_methods.c.address_hash)

contact_rules = sa.Table(
    "contact_rules",
    metadata,
    id_(),
    org(),
    ref("person_id", "people"),
    text("urgency"),
    integer("position"),
    ref("method_id", "contact_methods"),
    sa.Column("delay", Duration, nullable=False),
    sa.UniqueConstraint("org_id", "person_id", "urgency", "position"),
    one_of("urgency", Urgency, "urgency"),
)
