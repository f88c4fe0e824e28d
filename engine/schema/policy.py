"""The ladders: escalation policies by version, and the fallback chain of the organisation.

Never holds a query.
"""

from __future__ import annotations

import sqlalchemy as sa

from engine.schema.columns import at, id_, integer, json, metadata, org, ref, text

policies = sa.Table(
    "policies",
    metadata,
    id_(),
    org(),
    text("name"),
    at("deleted_at"),
    sa.UniqueConstraint("org_id", "name"),
)

policy_versions = sa.Table(
    "policy_versions",
    metadata,
    id_(),
    org(),
    ref("policy_id", "policies"),
    json("definition"),  # levels, repeat, on_exhaustion, ack_timeout; targets by id
    at("created_at", nullable=False),
)
sa.Index("ix_policy_versions_policy", policy_versions.c.org_id, policy_versions.c.policy_id)

fallbacks = sa.Table(
    "fallbacks",  # the organisation's list, tried when nobody can be found or reached
    metadata,
    id_(),
    org(),
    integer("position"),
    text("kind"),
    text("ref"),
    sa.UniqueConstraint("org_id", "position"),
)
