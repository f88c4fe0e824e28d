"""timers by rank, and lighter indexes

The index of what is due next begins with the lane and the rank, so that a backlog of lesser messages
is never read to find a page. Nothing is looked up by a timer's subject alone, nor by an empty
reference of a provider.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

REFERRED = sa.text("provider_ref <> ''")


def upgrade() -> None:
    op.drop_index("ix_timers_due", table_name="timers")
    op.drop_index("ix_timers_subject", table_name="timers")
    op.create_index("ix_timers_due", "timers", ["lane", "rank", "due_at", "id"])
    op.drop_index("ix_deliveries_ref", table_name="deliveries")
    op.create_index(
        "ix_deliveries_ref",
        "deliveries",
        ["org_id", "provider_ref"],
        sqlite_where=REFERRED,
        postgresql_where=REFERRED,
    )
    op.execute("UPDATE schema_mark SET revision = '0004'")


def downgrade() -> None:
    op.drop_index("ix_deliveries_ref", table_name="deliveries")
    op.create_index("ix_deliveries_ref", "deliveries", ["org_id", "provider_ref"])
    op.drop_index("ix_timers_due", table_name="timers")
    op.create_index("ix_timers_due", "timers", ["lane", "due_at", "id"])
    op.create_index("ix_timers_subject", "timers", ["subject_id"])
    op.execute("UPDATE schema_mark SET revision = '0003'")
