"""how fast a provider and a number may be sent to

It only adds: what came before goes on beside it.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("UPDATE schema_mark SET revision = '0007'")


def downgrade() -> None:
    op.execute("UPDATE schema_mark SET revision = '0006'")
