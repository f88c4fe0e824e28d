"""codes that verify contact methods

It only adds: what came before goes on beside it.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


LIVE = sa.text("ended_at IS NULL")
STOPPED = "the person replied STOP"


def _key() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "verifications",
        sa.Column("id", _key(), autoincrement=True, nullable=False),
        sa.Column("org_id", sa.BigInteger(), nullable=False),
        sa.Column("person_id", _key(), nullable=False),
        sa.Column("method_id", _key(), nullable=False),
        sa.Column("delivery_id", _key(), nullable=True),
        sa.Column("address_hash", sa.Text(), nullable=False),
        sa.Column("code_hash", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["delivery_id"], ["deliveries.id"], name=op.f("fk_verifications_delivery_id_deliveries")
        ),
        sa.ForeignKeyConstraint(
            ["method_id"], ["contact_methods.id"], name=op.f("fk_verifications_method_id_contact_methods")
        ),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_verifications_person_id_people")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_verifications")),
    )
    op.create_index("ix_verifications_created", "verifications", ["org_id", "created_at"])
    op.create_index(
        "uq_verifications_live",
        "verifications",
        ["org_id", "method_id"],
        unique=True,
        sqlite_where=LIVE,
        postgresql_where=LIVE,
    )
    op.add_column("people", sa.Column("rules_by", sa.Text(), server_default="", nullable=False))
    op.add_column(
        "contact_methods", sa.Column("in_file", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    _as_it_was()
    op.execute("UPDATE schema_mark SET revision = '0006'")


def _as_it_was() -> None:
    """Until now only midwatch.yaml gave numbers and rules."""
    methods = sa.table(
        "contact_methods", sa.column("in_file"), sa.column("verified_by"), sa.column("disabled_reason")
    )
    on = sa.or_(methods.c.disabled_reason.is_(None), methods.c.disabled_reason == STOPPED)
    op.execute(sa.update(methods).where(methods.c.verified_by == "config", on).values(in_file=sa.true()))
    people, rules = (
        sa.table("people", sa.column("id"), sa.column("rules_by")),
        sa.table("contact_rules", sa.column("person_id")),
    )
    op.execute(
        sa.update(people).where(people.c.id.in_(sa.select(rules.c.person_id))).values(rules_by="config")
    )


def downgrade() -> None:
    with op.batch_alter_table("contact_methods", schema=None) as batch_op:
        batch_op.drop_column("in_file")
    with op.batch_alter_table("people", schema=None) as batch_op:
        batch_op.drop_column("rules_by")
    op.drop_index("uq_verifications_live", table_name="verifications")
    op.drop_index("ix_verifications_created", table_name="verifications")
    op.drop_table("verifications")
    op.execute("UPDATE schema_mark SET revision = '0005'")
