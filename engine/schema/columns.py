"""What tables are made of: the types, the predicates, and a short word for each usual column.

Never names a table. Names of constraints follow one convention, because SQLite re-creates tables by them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator

# Why literal: a bound parameter in the predicate works on PostgreSQL until the generic plan is
# chosen (the sixth execution on a connection) and then fails for every alert; SQLite refuses it at
# once. The same text stands in the indexes, the upserts and the selects that must match them.
OPEN: Final = sa.text("status <> 'resolved'")
UNFINISHED: Final = sa.text("status IN ('queued', 'sending')")
REFERRED: Final = sa.text("provider_ref <> ''")
CARRIED: Final = sa.text("carried_by IS NOT NULL")
DEAD_LETTER: Final = sa.text("status = 'dead' AND put_aside_at IS NULL")

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)


class Instant(TypeDecorator[datetime]):
    """Aware UTC datetimes as integer microseconds: the same order and arithmetic on both databases."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> int | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a naive datetime is not an instant")
        return (value - EPOCH) // MICROSECOND

    def process_result_value(self, value: int | None, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else EPOCH + value * MICROSECOND


class Duration(TypeDecorator[timedelta]):
    """A timedelta as integer microseconds."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: timedelta | None, dialect: sa.Dialect) -> int | None:
        return None if value is None else value // MICROSECOND

    def process_result_value(self, value: int | None, dialect: sa.Dialect) -> timedelta | None:
        return None if value is None else value * MICROSECOND


metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Key = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite counts only INTEGER keys up


def id_() -> sa.Column[Any]:
    return sa.Column("id", Key, primary_key=True, autoincrement=True)


def org() -> sa.Column[Any]:
    return sa.Column("org_id", sa.BigInteger, nullable=False)


def ref(name: str, target: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, Key, sa.ForeignKey(f"{target}.id"), nullable=nullable)


def text(name: str, *, nullable: bool = False, default: str | None = None) -> sa.Column[Any]:
    return sa.Column(name, sa.Text, nullable=nullable, default=default)


def at(name: str, *, nullable: bool = True) -> sa.Column[Any]:
    return sa.Column(name, Instant, nullable=nullable)


def integer(name: str, *, default: int | None = 0, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer, nullable=nullable, default=default)


def json(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.JSON(none_as_null=True), nullable=nullable)


def one_of(column: str, words: type[StrEnum] | Iterable[str], name: str) -> sa.CheckConstraint:
    values = ", ".join(f"'{word}'" for word in words)
    return sa.CheckConstraint(f"{column} IN ({values})", name=name)


def index_where(where: sa.TextClause, name: str, *columns: sa.Column[Any], unique: bool = False) -> sa.Index:
    """An index of those rows only that the predicate matches."""
    return sa.Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)
