"""deliveries that another one carries

It only adds: what came before goes on beside it.

Revision ID: 0008
Revises: 0007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.add_column(
            sa.Column("carried_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True)
        )
        batch_op.create_index(
            "ix_deliveries_line",
            ["org_id", "method_id"],
            sqlite_where=sa.text("status IN ('queued', 'sending')"),
            postgresql_where=sa.text("status IN ('queued', 'sending')"),
        )
        batch_op.create_index("ix_deliveries_told", ["org_id", "method_id", "sent_at"])
        batch_op.create_index(
            "ix_deliveries_carried",
            ["org_id", "carried_by"],
            sqlite_where=sa.text("carried_by IS NOT NULL"),
            postgresql_where=sa.text("carried_by IS NOT NULL"),
        )
        batch_op.drop_index("ix_deliveries_method")  # the second one begins with its columns
    op.execute("UPDATE schema_mark SET revision = '0008'")


def downgrade() -> None:
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.create_index("ix_deliveries_method", ["org_id", "method_id"])
        batch_op.drop_index("ix_deliveries_carried")
        batch_op.drop_index("ix_deliveries_told")
        batch_op.drop_index("ix_deliveries_line")
        batch_op.drop_column("carried_by")
    op.execute("UPDATE schema_mark SET revision = '0007'")
