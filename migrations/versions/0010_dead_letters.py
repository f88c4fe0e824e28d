"""dead letters: who dealt with them, and when they were put aside

It only adds: what came before goes on beside it.

Revision ID: 0010
Revises: 0009
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.add_column(sa.Column("put_aside_at", sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column("handled_by", sa.Text(), nullable=True))
        batch_op.create_index(
            "ix_deliveries_dead",
            ["org_id", "id"],
            sqlite_where=sa.text("status = 'dead' AND put_aside_at IS NULL"),
            postgresql_where=sa.text("status = 'dead' AND put_aside_at IS NULL"),
        )
    op.execute("UPDATE schema_mark SET revision = '0010'")


def downgrade() -> None:
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.drop_index("ix_deliveries_dead")
        batch_op.drop_column("handled_by")
        batch_op.drop_column("put_aside_at")
    op.execute("UPDATE schema_mark SET revision = '0009'")
