"""who may still work on this schema

Each migration writes the mark: its own revision, and the oldest version of Midwatch (by the newest
revision that it knows) that may go on beside it. What only adds leaves `oldest` as it is.

Revision ID: 0003
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "schema_mark",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("oldest", sa.Integer(), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_schema_mark_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schema_mark")),
    )
    op.execute("INSERT INTO schema_mark (id, revision, oldest) VALUES (1, '0003', 3)")


def downgrade() -> None:
    op.drop_table("schema_mark")
