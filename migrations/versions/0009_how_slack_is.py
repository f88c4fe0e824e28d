"""how Slack is, for all workers

It only adds: what came before goes on beside it.

Revision ID: 0009
Revises: 0008
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "slack_state",
        sa.Column("org_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("heard_at", sa.BigInteger(), nullable=True),
        sa.Column("ok_at", sa.BigInteger(), nullable=True),
        sa.Column("told", sa.Text(), nullable=False),
        sa.Column("down_from", sa.BigInteger(), nullable=True),
        sa.Column("down_until", sa.BigInteger(), nullable=True),
        sa.Column("probe_channel", sa.Text(), nullable=True),
        sa.Column("probe_ts", sa.Text(), nullable=True),
        sa.Column("probe_on", sa.Integer(), nullable=False),
        sa.Column("probe_claimed_at", sa.BigInteger(), nullable=True),
        sa.Column("probe_sent_at", sa.BigInteger(), nullable=True),
        sa.Column("probe_waiting", sa.Integer(), nullable=False),
        sa.Column("probe_echoed_at", sa.BigInteger(), nullable=True),
        sa.Column("probe_missed", sa.Integer(), nullable=False),
        sa.CheckConstraint("state IN ('up', 'degraded', 'down')", name=op.f("ck_slack_state_state")),
        sa.PrimaryKeyConstraint("org_id", name=op.f("pk_slack_state")),
    )
    op.create_table(
        "slack_reports",
        sa.Column("org_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("org_id", "owner", name=op.f("pk_slack_reports")),
    )
    op.create_table(
        "rehearsals",
        sa.Column("org_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("incident_id", sa.BigInteger(), nullable=True),
        sa.Column("person_id", sa.BigInteger(), nullable=True),
        sa.Column("begun_at", sa.BigInteger(), nullable=False),
        sa.Column("ends_at", sa.BigInteger(), nullable=False),
        sa.Column("reported_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("org_id", "key", name=op.f("pk_rehearsals")),
    )
    op.execute("UPDATE schema_mark SET revision = '0009'")


def downgrade() -> None:
    op.drop_table("rehearsals")
    op.drop_table("slack_reports")
    op.drop_table("slack_state")
    op.execute("UPDATE schema_mark SET revision = '0008'")
