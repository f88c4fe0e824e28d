"""How fast a line may be sent to: paces.

Never holds a query.
"""

from __future__ import annotations

import sqlalchemy as sa

from engine.schema.columns import at, id_, integer, metadata, org, text

paces = sa.Table(
    "paces",  # one for each line: a Slack channel or person, all SMS, all calls
    metadata,
    id_(),
    org(),
    text("line"),
    at("free_at", nullable=False),  # the next message may start
    at("first_at", nullable=False),  # the next that passes those who wait
    at("high_until", nullable=False),  # the end of the places given to high urgency
    at("low_until", nullable=False),  # and to the others
    at("held_until"),  # the provider wants nothing before
    at("day", nullable=False),  # in UTC, of the count beside it
    integer("begun"),  # messages on that day
    sa.UniqueConstraint("org_id", "line"),
)
