"""Problems: dedup keys, incidents and their alerts.

Never holds a query.
"""

from __future__ import annotations

import sqlalchemy as sa

from engine.models import AlertStatus, IncidentStatus, Urgency
from engine.schema.columns import (
    OPEN,
    Duration,
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

dedup_keys = sa.Table(
    "dedup_keys",  # locked first; remembers the source's last start and end when no alert is open
    metadata,
    sa.Column("org_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("service_id", Key, sa.ForeignKey("services.id"), primary_key=True, autoincrement=False),
    sa.Column("dedup_key", sa.Text, primary_key=True),
    at("last_started_at"),
    at("last_ended_at"),
    at("end_arrived_at"),  # when the source's last end arrived, by our clock
    text("last_severity", nullable=True),
    ref("last_incident_id", "incidents", nullable=True),
    text("ended_by", nullable=True),
)

incidents = sa.Table(
    "incidents",
    metadata,
    id_(),
    org(),
    integer("number", default=None, nullable=True),  # given last of all, under the counter's lock
    ref("service_id", "services"),
    text("group_key"),
    text("status"),
    text("urgency"),
    text("title"),
    text("severity", nullable=True),
    text("raw_severity", default=""),
    integer("epoch", default=1),
    integer("round", default=1),
    integer("pass", default=0),
    integer("level", default=0),
    at("level_started_at"),  # when `level` was paged; empty: its `escalate` has yet to fire
    sa.Column("reached", sa.Boolean, nullable=False, default=False),  # did this pass reach a person
    integer("links"),  # how far down the fallback chain this round has paged
    json("reassigned_to", nullable=True),
    ref("policy_version_id", "policy_versions", nullable=True),
    integer("open_alerts", default=0),
    integer("alert_count", default=0),
    integer("truncated", default=0),
    text("opened_by", default=""),  # empty: a source
    at("opened_at", nullable=False),
    at("last_joined_at", nullable=False),
    at("last_paged_at"),
    at("acknowledged_at"),
    ref("acknowledged_by", "people", nullable=True),
    text("acknowledged_name", nullable=True),
    text("acknowledged_via", nullable=True),
    at("snoozed_until"),
    at("held_until"),
    at("resolved_at"),
    text("resolved_by", nullable=True),  # the name; `resolved_via` = source means the source did it
    text("resolved_via", nullable=True),
    text("kept_status", nullable=True),  # what a re-fire within the flap window takes up again
    text("kept_timer", nullable=True),
    sa.Column("kept_left", Duration, nullable=True),
    ref("merged_into", "incidents", nullable=True),
    sa.UniqueConstraint("org_id", "number"),
    one_of("status", IncidentStatus, "status"),
    one_of("urgency", Urgency, "urgency"),
    sa.CheckConstraint("open_alerts >= 0", name="open_alerts"),
    sa.CheckConstraint("status <> 'resolved' OR open_alerts = 0", name="resolved_has_no_open_alert"),
)
index_where(
    OPEN, "uq_incidents_open", incidents.c.org_id, incidents.c.service_id, incidents.c.group_key, unique=True
)
sa.Index("ix_incidents_newest", incidents.c.org_id, incidents.c.opened_at)

alerts = sa.Table(
    "alerts",
    metadata,
    id_(),
    org(),
    ref("service_id", "services"),
    ref("incident_id", "incidents"),
    text("dedup_key"),
    text("source_group", nullable=True),  # the raw key: the source's group resolve goes by it
    text("status"),
    text("severity", nullable=True),
    text("raw_severity", default=""),
    text("urgency"),
    text("summary"),
    json("labels"),
    json("links"),
    integer("event_count", default=1),
    integer("flap_count", default=0),
    at("started_at"),
    at("first_seen_at", nullable=False),
    at("last_seen_at", nullable=False),
    at("resolved_at"),
    text("resolved_by", nullable=True),
    one_of("status", AlertStatus, "status"),
    one_of("resolved_by", ("source", "human"), "resolved_by"),
    sa.CheckConstraint("(status = 'resolved') = (resolved_at IS NOT NULL)", name="resolved_at"),
)
index_where(OPEN, "uq_alerts_open", alerts.c.org_id, alerts.c.service_id, alerts.c.dedup_key, unique=True)
sa.Index("ix_alerts_incident", alerts.c.org_id, alerts.c.incident_id)
index_where(OPEN, "ix_alerts_source_group", alerts.c.org_id, alerts.c.service_id, alerts.c.source_group)
