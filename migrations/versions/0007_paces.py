"""how fast a provider and a number may be sent to

It only adds: what came before goes on beside it.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('paces',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('org_id', sa.BigInteger(), nullable=False),
    sa.Column('line', sa.Text(), nullable=False),
    sa.Column('free_at', sa.BigInteger(), nullable=False),
    sa.Column('first_at', sa.BigInteger(), nullable=False),
    sa.Column('high_until', sa.BigInteger(), nullable=False),
    sa.Column('low_until', sa.BigInteger(), nullable=False),
    sa.Column('held_until', sa.BigInteger(), nullable=True),
    sa.Column('day', sa.BigInteger(), nullable=False),
    sa.Column('begun', sa.Integer(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_paces')),
    sa.UniqueConstraint('org_id', 'line', name=op.f('uq_paces_org_id_line'))
    )
    op.execute("UPDATE schema_mark SET revision = '0007'")


def downgrade() -> None:
    op.drop_table('paces')
    op.execute("UPDATE schema_mark SET revision = '0006'")
