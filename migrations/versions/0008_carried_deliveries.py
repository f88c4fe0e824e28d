"""deliveries that another one carries

It only adds: what came before goes on beside it.

Revision ID: 0008
Revises: 0007
"""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("UPDATE schema_mark SET revision = '0008'")


def downgrade() -> None:
    op.execute("UPDATE schema_mark SET revision = '0007'")
