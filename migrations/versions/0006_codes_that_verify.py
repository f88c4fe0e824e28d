"""codes that verify contact methods

It only adds: what came before goes on beside it.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("UPDATE schema_mark SET revision = '0006'")


def downgrade() -> None:
    op.execute("UPDATE schema_mark SET revision = '0005'")
