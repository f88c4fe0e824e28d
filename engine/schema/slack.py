"""How Slack is, for all processes: what each one sees, and what they all go by.

Never holds a query.
"""

from __future__ import annotations

import sqlalchemy as sa

from engine.outage import State
from engine.schema.columns import at, integer, json, metadata, one_of, text

slack_state = sa.Table(
    "slack_state",  # one row of an organisation
    metadata,
    sa.Column("org_id", sa.BigInteger, primary_key=True, autoincrement=False),
    text("state"),
    at("since", nullable=False),
    text("reason", default=""),
    at("heard_at"),
    at("ok_at"),
    text("told", default=""),
    at("down_from"),
    at("down_until"),
    text("probe_channel", nullable=True),  # where the message stands on which a reaction is toggled
    text("probe_ts", nullable=True),
    integer("probe_on"),  # 1 while the reaction is on it
    at("probe_claimed_at"),
    at("probe_sent_at"),
    integer("probe_waiting"),
    at("probe_echoed_at"),
    integer("probe_missed"),
    one_of("state", State, "state"),
)

slack_reports = sa.Table(
    "slack_reports",  # one row of a process
    metadata,
    sa.Column("org_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("owner", sa.Text, primary_key=True),
    at("at", nullable=False),
    json("body"),
)

rehearsals = sa.Table(
    "rehearsals",  # of an outage, with an incident of its own; or of one person's contact methods
    metadata,
    sa.Column("org_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("key", sa.Text, primary_key=True),  # of the incident: nobody can guess it
    text("schedule"),
    sa.Column("incident_id", sa.BigInteger, nullable=True),
    sa.Column("person_id", sa.BigInteger, nullable=True),
    at("begun_at", nullable=False),
    at("ends_at", nullable=False),
    at("reported_at"),
)
