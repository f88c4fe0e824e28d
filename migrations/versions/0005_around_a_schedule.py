"""around a schedule: cover requests, handoffs, findings, reminders, calendars, and what Slack shows

It only adds: what came before goes on beside it, and leaves the new kinds of timers alone.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('calendar_feeds',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('org_id', sa.BigInteger(), nullable=False),
    sa.Column('token_hash', sa.Text(), nullable=False),
    sa.Column('person_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=True),
    sa.Column('schedule_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=True),
    sa.Column('made_by', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=True),
    sa.Column('created_at', sa.BigInteger(), nullable=False),
    sa.Column('revoked_at', sa.BigInteger(), nullable=True),
    sa.CheckConstraint('(person_id IS NULL) <> (schedule_id IS NULL)', name=op.f('ck_calendar_feeds_of_one')),
    sa.ForeignKeyConstraint(['made_by'], ['people.id'], name=op.f('fk_calendar_feeds_made_by_people')),
    sa.ForeignKeyConstraint(['person_id'], ['people.id'], name=op.f('fk_calendar_feeds_person_id_people')),
    sa.ForeignKeyConstraint(['schedule_id'], ['schedules.id'], name=op.f('fk_calendar_feeds_schedule_id_schedules')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_calendar_feeds')),
    sa.UniqueConstraint('org_id', 'token_hash', name=op.f('uq_calendar_feeds_org_id_token_hash'))
    )
    op.create_table('calendar_imports',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('org_id', sa.BigInteger(), nullable=False),
    sa.Column('schedule_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('url', sa.Text(), nullable=False),
    sa.Column('etag', sa.Text(), nullable=True),
    sa.Column('body', sa.Text(), nullable=True),
    sa.Column('shifts', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('unmatched', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('fetched_at', sa.BigInteger(), nullable=True),
    sa.Column('tried_at', sa.BigInteger(), nullable=True),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('failures', sa.Integer(), nullable=False),
    sa.ForeignKeyConstraint(['schedule_id'], ['schedules.id'], name=op.f('fk_calendar_imports_schedule_id_schedules')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_calendar_imports')),
    sa.UniqueConstraint('org_id', 'schedule_id', name=op.f('uq_calendar_imports_org_id_schedule_id'))
    )
    op.create_table('cover_requests',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('org_id', sa.BigInteger(), nullable=False),
    sa.Column('schedule_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('asker_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('start_at', sa.BigInteger(), nullable=False),
    sa.Column('end_at', sa.BigInteger(), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('rev', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.BigInteger(), nullable=False),
    sa.Column('ended_at', sa.BigInteger(), nullable=True),
    sa.CheckConstraint("status IN ('open', 'filled', 'expired', 'withdrawn')", name=op.f('ck_cover_requests_status')),
    sa.CheckConstraint('end_at > start_at', name=op.f('ck_cover_requests_order')),
    sa.ForeignKeyConstraint(['asker_id'], ['people.id'], name=op.f('fk_cover_requests_asker_id_people')),
    sa.ForeignKeyConstraint(['schedule_id'], ['schedules.id'], name=op.f('fk_cover_requests_schedule_id_schedules')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_cover_requests'))
    )
    with op.batch_alter_table('cover_requests', schema=None) as batch_op:
        batch_op.create_index('ix_cover_requests_open', ['org_id', 'schedule_id'], unique=False, sqlite_where=sa.text("status = 'open'"), postgresql_where=sa.text("status = 'open'"))

    op.create_table('findings',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('org_id', sa.BigInteger(), nullable=False),
    sa.Column('schedule_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('text', sa.Text(), nullable=False),
    sa.Column('found_at', sa.BigInteger(), nullable=False),
    sa.Column('told_at', sa.BigInteger(), nullable=True),
    sa.ForeignKeyConstraint(['schedule_id'], ['schedules.id'], name=op.f('fk_findings_schedule_id_schedules')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_findings')),
    sa.UniqueConstraint('org_id', 'schedule_id', 'key', name=op.f('uq_findings_org_id_schedule_id_key'))
    )
    op.create_table('handoffs',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('org_id', sa.BigInteger(), nullable=False),
    sa.Column('schedule_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.Column('people', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('body', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('accepted_by', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=True),
    sa.Column('accepted_at', sa.BigInteger(), nullable=True),
    sa.ForeignKeyConstraint(['accepted_by'], ['people.id'], name=op.f('fk_handoffs_accepted_by_people')),
    sa.ForeignKeyConstraint(['schedule_id'], ['schedules.id'], name=op.f('fk_handoffs_schedule_id_schedules')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_handoffs')),
    sa.UniqueConstraint('org_id', 'schedule_id', 'at', name=op.f('uq_handoffs_org_id_schedule_id_at'))
    )
    op.create_table('reminders_off',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('org_id', sa.BigInteger(), nullable=False),
    sa.Column('person_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.ForeignKeyConstraint(['person_id'], ['people.id'], name=op.f('fk_reminders_off_person_id_people')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_reminders_off')),
    sa.UniqueConstraint('org_id', 'person_id', 'kind', name=op.f('uq_reminders_off_org_id_person_id_kind'))
    )
    op.create_table('shown_in_slack',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('org_id', sa.BigInteger(), nullable=False),
    sa.Column('schedule_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('what', sa.Text(), nullable=False),
    sa.Column('value', sa.Text(), nullable=True),
    sa.Column('trouble', sa.Text(), nullable=True),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.CheckConstraint("what IN ('user_group', 'topic')", name=op.f('ck_shown_in_slack_what')),
    sa.ForeignKeyConstraint(['schedule_id'], ['schedules.id'], name=op.f('fk_shown_in_slack_schedule_id_schedules')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_shown_in_slack')),
    sa.UniqueConstraint('org_id', 'schedule_id', 'what', name=op.f('uq_shown_in_slack_org_id_schedule_id_what'))
    )
    op.create_table('cover_offers',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('org_id', sa.BigInteger(), nullable=False),
    sa.Column('request_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('person_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('answer', sa.Text(), nullable=False),
    sa.Column('answered_at', sa.BigInteger(), nullable=True),
    sa.CheckConstraint("answer IN ('asked', 'accepted', 'declined')", name=op.f('ck_cover_offers_answer')),
    sa.ForeignKeyConstraint(['person_id'], ['people.id'], name=op.f('fk_cover_offers_person_id_people')),
    sa.ForeignKeyConstraint(['request_id'], ['cover_requests.id'], name=op.f('fk_cover_offers_request_id_cover_requests')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_cover_offers')),
    sa.UniqueConstraint('org_id', 'request_id', 'person_id', name=op.f('uq_cover_offers_org_id_request_id_person_id'))
    )
    op.create_table('cover_parts',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('org_id', sa.BigInteger(), nullable=False),
    sa.Column('request_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('override_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.ForeignKeyConstraint(['override_id'], ['overrides.id'], name=op.f('fk_cover_parts_override_id_overrides')),
    sa.ForeignKeyConstraint(['request_id'], ['cover_requests.id'], name=op.f('fk_cover_parts_request_id_cover_requests')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_cover_parts')),
    sa.UniqueConstraint('org_id', 'override_id', name=op.f('uq_cover_parts_org_id_override_id'))
    )
    with op.batch_alter_table('cover_parts', schema=None) as batch_op:
        batch_op.create_index('ix_cover_parts_request', ['org_id', 'request_id'], unique=False)

    op.create_table('shift_marks',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('org_id', sa.BigInteger(), nullable=False),
    sa.Column('schedule_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('people', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('told_until', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['schedule_id'], ['schedules.id'], name=op.f('fk_shift_marks_schedule_id_schedules')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_shift_marks')),
    sa.UniqueConstraint('org_id', 'schedule_id', name=op.f('uq_shift_marks_org_id_schedule_id'))
    )
    op.create_table('drafts',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('org_id', sa.BigInteger(), nullable=False),
    sa.Column('person_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('form', sa.Text(), nullable=False),
    sa.Column('rev', sa.Integer(), nullable=False),
    sa.Column('body', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('updated_at', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['person_id'], ['people.id'], name=op.f('fk_drafts_person_id_people')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_drafts'))
    )
    with op.batch_alter_table('drafts', schema=None) as batch_op:
        batch_op.create_index('ix_drafts_updated', ['org_id', 'updated_at'], unique=False)

    with op.batch_alter_table('schedule_versions', schema=None) as batch_op:
        batch_op.add_column(sa.Column('created_by', sa.Text(), server_default='', nullable=False))
    with op.batch_alter_table('schedules', schema=None) as batch_op:
        batch_op.add_column(sa.Column('deleted_by', sa.Text(), nullable=True))
        batch_op.add_column(sa.Column('channel', sa.Text(), nullable=True))
        batch_op.add_column(sa.Column('user_group', sa.Text(), nullable=True))
        batch_op.add_column(sa.Column('topic', sa.Boolean(), server_default=sa.false(), nullable=False))
    with op.batch_alter_table('overrides', schema=None) as batch_op:
        batch_op.create_index('ix_overrides_end', ['org_id', 'end_at'], unique=False)
    op.execute("UPDATE schema_mark SET revision = '0005'")


def downgrade() -> None:
    with op.batch_alter_table('overrides', schema=None) as batch_op:
        batch_op.drop_index('ix_overrides_end')
    with op.batch_alter_table('schedules', schema=None) as batch_op:
        batch_op.drop_column('topic')
        batch_op.drop_column('user_group')
        batch_op.drop_column('channel')
        batch_op.drop_column('deleted_by')
    with op.batch_alter_table('schedule_versions', schema=None) as batch_op:
        batch_op.drop_column('created_by')

    with op.batch_alter_table('drafts', schema=None) as batch_op:
        batch_op.drop_index('ix_drafts_updated')

    op.drop_table('drafts')
    op.drop_table('shift_marks')
    op.drop_table('cover_parts')
    op.drop_table('cover_offers')
    op.drop_table('shown_in_slack')
    op.drop_table('reminders_off')
    op.drop_table('handoffs')
    op.drop_table('findings')
    with op.batch_alter_table('cover_requests', schema=None) as batch_op:
        batch_op.drop_index('ix_cover_requests_open', sqlite_where=sa.text("status = 'open'"), postgresql_where=sa.text("status = 'open'"))

    op.drop_table('cover_requests')
    op.drop_table('calendar_imports')
    op.drop_table('calendar_feeds')
    op.execute("UPDATE schema_mark SET revision = '0004'")
