"""Around a schedule: cover requests, handoffs, what was found ahead, reminders, calendars, what Slack shows.

Never holds a query.
"""

from __future__ import annotations

import sqlalchemy as sa

from engine.schema.columns import at, id_, index_where, integer, json, metadata, one_of, org, ref, text

ASKING = sa.text("status = 'open'")

cover_requests = sa.Table(
    "cover_requests",
    metadata,
    id_(),
    org(),
    ref("schedule_id", "schedules"),
    ref("asker_id", "people"),
    at("start_at", nullable=False),
    at("end_at", nullable=False),
    text("status"),
    integer("rev"),  # of what those who were asked are shown
    at("created_at", nullable=False),
    at("ended_at"),
    one_of("status", ("open", "filled", "expired", "withdrawn"), "status"),
    sa.CheckConstraint("end_at > start_at", name="order"),
)
index_where(ASKING, "ix_cover_requests_open", cover_requests.c.org_id, cover_requests.c.schedule_id)

cover_offers = sa.Table(
    "cover_offers",  # whoever was asked, and what they said
    metadata,
    id_(),
    org(),
    ref("request_id", "cover_requests"),
    ref("person_id", "people"),
    text("answer"),
    at("answered_at"),
    sa.UniqueConstraint("org_id", "request_id", "person_id"),
    one_of("answer", ("asked", "accepted", "declined"), "answer"),
)

cover_parts = sa.Table(
    "cover_parts",  # what was accepted: each is an override, and no longer taken once that is cancelled
    metadata,
    id_(),
    org(),
    ref("request_id", "cover_requests"),
    ref("override_id", "overrides"),
    sa.UniqueConstraint("org_id", "override_id"),
)
sa.Index("ix_cover_parts_request", cover_parts.c.org_id, cover_parts.c.request_id)

handoffs = sa.Table(
    "handoffs",
    metadata,
    id_(),
    org(),
    ref("schedule_id", "schedules"),
    at("at", nullable=False),
    json("people"),  # the ids of those who come on
    json("body"),  # what its post says
    ref("accepted_by", "people", nullable=True),
    at("accepted_at"),
    sa.UniqueConstraint("org_id", "schedule_id", "at"),
)

findings = sa.Table(
    "findings",  # what the look ahead found; told once, until it is gone and comes back
    metadata,
    id_(),
    org(),
    ref("schedule_id", "schedules"),
    text("key"),
    text("text"),
    at("found_at", nullable=False),
    at("told_at"),
    sa.UniqueConstraint("org_id", "schedule_id", "key"),
)

shift_marks = sa.Table(
    "shift_marks",  # how far the changes of a schedule have been told
    metadata,
    id_(),
    org(),
    ref("schedule_id", "schedules"),
    json("people"),  # the ids of those who were said to be on call, the last time
    at("told_until", nullable=False),
    sa.UniqueConstraint("org_id", "schedule_id"),
)

reminders_off = sa.Table(
    "reminders_off",
    metadata,
    id_(),
    org(),
    ref("person_id", "people"),
    text("kind"),
    sa.UniqueConstraint("org_id", "person_id", "kind"),
)

calendar_feeds = sa.Table(
    "calendar_feeds",
    metadata,
    id_(),
    org(),
    text("token_hash"),
    ref("person_id", "people", nullable=True),
    ref("schedule_id", "schedules", nullable=True),
    ref("made_by", "people", nullable=True),  # who holds the link; None: whoever runs Midwatch
    at("created_at", nullable=False),
    at("revoked_at"),
    sa.UniqueConstraint("org_id", "token_hash"),
    sa.CheckConstraint("(person_id IS NULL) <> (schedule_id IS NULL)", name="of_one"),
)

calendar_imports = sa.Table(
    "calendar_imports",
    metadata,
    id_(),
    org(),
    ref("schedule_id", "schedules"),
    text("url"),  # encrypted: it may hold a token
    text("etag", nullable=True),
    text("body", nullable=True),  # the last good copy
    json("shifts"),  # what is made of it: start and end in seconds, and the ids of people
    json("unmatched"),  # what its events name and nobody here is
    at("fetched_at"),  # when the copy was fetched
    at("tried_at"),
    text("error", nullable=True),
    sa.Column("failures", sa.Integer, nullable=False, default=0),  # since the last good one
    sa.UniqueConstraint("org_id", "schedule_id"),
)

shown = sa.Table(
    "shown_in_slack",  # what a user group or a topic was last set to, and what is wrong with it
    metadata,
    id_(),
    org(),
    ref("schedule_id", "schedules"),
    text("what"),
    text("value", nullable=True),
    text("trouble", nullable=True),
    at("at", nullable=False),
    sa.UniqueConstraint("org_id", "schedule_id", "what"),
    one_of("what", ("user_group", "topic"), "what"),
)

drafts = sa.Table(
    "drafts",  # what somebody is typing into a form that is too large for Slack to remember
    metadata,
    id_(),
    org(),
    ref("person_id", "people"),
    text("form"),
    integer("rev"),
    json("body"),
    at("updated_at", nullable=False),
)
sa.Index("ix_drafts_updated", drafts.c.org_id, drafts.c.updated_at)
