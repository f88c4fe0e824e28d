"""how Slack is doing, for all workers

It only adds: what came before goes on beside it.

Revision ID: 0009
Revises: 0008
"""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("UPDATE schema_mark SET revision = '0009'")


def downgrade() -> None:
    op.execute("UPDATE schema_mark SET revision = '0008'")
