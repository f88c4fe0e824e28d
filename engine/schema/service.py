"""Where alerts arrive: services, what lets senders and scripts in, and when pages are held back.

Never holds a query.
"""

from __future__ import annotations

import sqlalchemy as sa

from engine.schema.columns import Duration, at, id_, json, metadata, org, ref, text

services = sa.Table(
    "services",
    metadata,
    id_(),
    org(),
    text("name"),
    ref("policy_id", "policies", nullable=True),
    text("channel", nullable=True),
    json("group_by", nullable=True),
    sa.Column("group_window", Duration, nullable=True),
    sa.Column("flap_window", Duration, nullable=False),
    json("urgency"),
    at("deleted_at"),
    sa.UniqueConstraint("org_id", "name"),
)

integration_keys = sa.Table(
    "integration_keys",
    metadata,
    id_(),
    org(),
    ref("service_id", "services"),
    text("key_hash"),
    text("hint"),  # the first characters, so that people can tell keys apart
    text("name", default=""),
    at("created_at", nullable=False),
    at("revoked_at"),
    at("last_used_at"),
    sa.UniqueConstraint("org_id", "key_hash"),
)
sa.Index("ix_integration_keys_hash", integration_keys.c.key_hash)  # all that a sender shows

api_tokens = sa.Table(
    "api_tokens",
    metadata,
    id_(),
    org(),
    text("name"),
    text("token_hash"),
    text("hint"),
    ref("person_id", "people", nullable=True),
    at("created_at", nullable=False),
    at("revoked_at"),
    at("last_used_at"),
    sa.UniqueConstraint("org_id", "token_hash"),
)
sa.Index("ix_api_tokens_hash", api_tokens.c.token_hash)

maintenance_windows = sa.Table(
    "maintenance_windows",
    metadata,
    id_(),
    org(),
    ref("service_id", "services", nullable=True),
    at("start_at", nullable=False),
    at("end_at", nullable=False),
    text("reason", default=""),
    text("created_by", default=""),
    at("cancelled_at"),
    sa.CheckConstraint("end_at > start_at", name="order"),
)
sa.Index("ix_maintenance_windows_end", maintenance_windows.c.org_id, maintenance_windows.c.end_at)
