"""What came in and what was done: events, the timeline, and the ids of inbound messages.

Never holds a query.
"""

from __future__ import annotations

import sqlalchemy as sa

from engine.schema.columns import at, id_, integer, json, metadata, org, ref, text

events = sa.Table(
    "events",  # append-only
    metadata,
    id_(),
    org(),
    ref("service_id", "services"),
    ref("incident_id", "incidents", nullable=True),
    text("source"),
    text("action"),
    text("dedup_key"),
    text("outcome"),
    text("reason", default=""),
    text("summary"),
    text("raw_severity", default=""),
    json("content"),
    at("started_at"),
    at("ended_at"),
    at("received_at", nullable=False),
)
sa.Index("ix_events_incident", events.c.org_id, events.c.incident_id)

timeline = sa.Table(
    "timeline",  # one row for every change of an incident, in the transaction of the change
    metadata,
    id_(),
    org(),
    ref("incident_id", "incidents"),
    at("at", nullable=False),
    text("kind"),
    text("actor"),
    ref("person_id", "people", nullable=True),
    text("via"),
    text("text", default=""),
    text("before", nullable=True),
    text("after", nullable=True),
    integer("epoch"),
    json("detail"),
)
sa.Index("ix_timeline_incident", timeline.c.org_id, timeline.c.incident_id)

inbound = sa.Table(
    "inbound",  # ids of what Slack and Twilio sent, so that the same click twice is one effect
    metadata,
    sa.Column("org_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("source", sa.Text, primary_key=True),
    sa.Column("external_id", sa.Text, primary_key=True),
    at("at", nullable=False),
)
sa.Index("ix_inbound_at", inbound.c.at)
