"""Who is on call: schedules by version, and overrides.

Never holds a query.
"""

from __future__ import annotations

import sqlalchemy as sa

from engine.schema.columns import at, id_, json, metadata, one_of, org, ref, text

schedules = sa.Table(
    "schedules",
    metadata,
    id_(),
    org(),
    text("name"),
    text("channel", nullable=True),  # where its changes, handoffs and warnings are told
    text("user_group", nullable=True),  # of Slack, that holds whoever is on call
    sa.Column(
        "topic", sa.Boolean, nullable=False, default=False, server_default=sa.false()
    ),  # of the channel
    at("deleted_at"),
    text("deleted_by", nullable=True),
    sa.UniqueConstraint("org_id", "name"),
)

schedule_versions = sa.Table(
    "schedule_versions",
    metadata,
    id_(),
    org(),
    ref("schedule_id", "schedules"),
    at("effective_from", nullable=False),
    json("definition"),  # timezone, layers, holidays, fallback; people by the text of their id
    at("created_at", nullable=False),
    sa.Column("created_by", sa.Text, nullable=False, default="", server_default=""),
)
sa.Index("ix_schedule_versions_schedule", schedule_versions.c.org_id, schedule_versions.c.schedule_id)

overrides = sa.Table(
    "overrides",
    metadata,
    id_(),
    org(),
    ref("schedule_id", "schedules"),
    text("kind"),
    ref("person_id", "people"),
    ref("covers_id", "people", nullable=True),
    at("start_at", nullable=False),
    at("end_at", nullable=False),
    text("created_by", default=""),
    at("created_at", nullable=False),
    at("cancelled_at"),
    one_of("kind", ("replace_all", "cover", "add"), "kind"),
    sa.CheckConstraint("end_at > start_at", name="order"),
)
sa.Index("ix_overrides_schedule", overrides.c.org_id, overrides.c.schedule_id, overrides.c.end_at)
# Why: the directory reads what is not over of all schedules, however many overrides there were.
sa.Index("ix_overrides_end", overrides.c.org_id, overrides.c.end_at)
