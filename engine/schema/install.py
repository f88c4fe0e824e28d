"""The install itself: counters, and the mark of the schema.

Never holds a query.
"""

from __future__ import annotations

import sqlalchemy as sa

from engine.schema.columns import integer, metadata, text

counters = sa.Table(
    "counters",  # of an organisation: `incident` gives the next #, `directory` is its revision
    metadata,
    sa.Column("org_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.BigInteger, nullable=False),
)

schema_mark = sa.Table(
    "schema_mark",  # one row, written by every migration
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    text("revision"),
    integer("oldest", default=None),  # the oldest version that may still work here, by its newest revision
    sa.CheckConstraint("id = 1", name="one_row"),
)
