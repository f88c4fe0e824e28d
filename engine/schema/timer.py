"""What happens later: timers.

Never holds a query.
"""

from __future__ import annotations

import sqlalchemy as sa

from engine.schema.columns import at, id_, integer, metadata, org, text

timers = sa.Table(
    "timers",  # a row is live until it is deleted; history is the timeline
    metadata,
    id_(),
    org(),
    text("kind"),
    text("lane"),  # which queue works it; with it, "what is due next" is one index probe
    sa.Column("subject_id", sa.BigInteger, nullable=False),
    at("due_at", nullable=False),
    integer("rank"),
    integer("epoch"),
    integer("rev", default=1),
    integer("attempt"),
    at("lease_until"),
    text("lease_owner", nullable=True),
    sa.UniqueConstraint("org_id", "kind", "subject_id"),
    # Why: SQLite gives the id of a deleted row again, and a worker that stalled would take the new
    # timer for the one it held.
    sqlite_autoincrement=True,
)
sa.Index("ix_timers_due", timers.c.lane, timers.c.rank, timers.c.due_at, timers.c.id)
