"""Whom, and how: people, their contact methods and contact rules, and the codes that verify a method.

Never holds a query.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from engine.models import Method, Urgency
from engine.schema.columns import Duration, at, id_, index_where, integer, metadata, one_of, org, ref, text

# Spelled out like every index predicate: see schema.OPEN.
LIVE: Final = sa.text("ended_at IS NULL")

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
    # Who gave their contact rules: config, person, or nobody; then there are none.
    sa.Column("rules_by", sa.Text, nullable=False, default="", server_default=""),
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
    # Named by midwatch.yaml: what is not stays when a file is applied.
    sa.Column("in_file", sa.Boolean, nullable=False, default=False, server_default=sa.false()),
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

verifications = sa.Table(
    "verifications",  # a row for each code that was sent; kept as long as the limits look back
    metadata,
    id_(),
    org(),
    ref("person_id", "people"),
    ref("method_id", "contact_methods"),
    ref("delivery_id", "deliveries", nullable=True),
    text("address_hash"),  # of its own: the limit of a number goes on when its method is removed
    text("code_hash"),  # keyed: six digits alone would be guessed from any other hash
    integer("tries"),
    at("created_at", nullable=False),
    at("expires_at", nullable=False),
    at("ended_at"),
)
index_where(LIVE, "uq_verifications_live", verifications.c.org_id, verifications.c.method_id, unique=True)
sa.Index("ix_verifications_created", verifications.c.org_id, verifications.c.created_at)
