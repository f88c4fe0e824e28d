"""Many rows in one statement: an INSERT or UPDATE that takes them from its parameters.

A row costs a statement far less when it is bound as part of a column than by itself. Knows no table
and decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import ReturningInsert

from engine.db import Tx, insert_of

__all__ = ["Columns", "Insert", "ReturningInsert", "insert_many", "update_many"]

Row: TypeAlias = Mapping[str, Any]
Insert: TypeAlias = postgresql.Insert | sqlite.Insert
NOTHING: Final[Row] = {}
Finish: TypeAlias = Callable[[Insert], sa.Insert | ReturningInsert[Any]]
Columns: TypeAlias = Mapping[str, sa.ColumnElement[Any]]
Change: TypeAlias = Callable[[Columns], Columns]
Convert: TypeAlias = Callable[[Any], Any]

ALWAYS: Final = sa.text("1 = 1")


def _plain(insert: Insert) -> Insert:
    return insert


def _as_given(new: Columns) -> Columns:
    return new


async def insert_many(
    tx: Tx, table: sa.Table, rows: Sequence[Row], finish: Finish = _plain, same: Row = NOTHING
) -> sa.CursorResult[*tuple[Any, ...]]:
    """Insert in the order of `rows`, which all have the columns of the first, and those of `same`.

    `finish` adds ON CONFLICT and RETURNING: a function of a module, because the statement is made
    once for each.
    """
    columns = tuple(rows[0])
    statement = _insert(tx.dialect.name, table, columns, finish, tuple(same))
    bound = _bound(tx.dialect, table, columns, rows) | {f"_{name}": value for name, value in same.items()}
    result: sa.CursorResult[*tuple[Any, ...]] = await tx.execute(statement, bound)
    return result


async def update_many(
    tx: Tx,
    table: sa.Table,
    rows: Sequence[Row],
    where: sa.ColumnElement[bool] | sa.TextClause = ALWAYS,
    *,
    by: tuple[str, ...] = ("id",),
    change: Change = _as_given,
) -> int:
    """Write the other columns of `rows` where those of `by` are theirs, and `where` holds (a constant
    of a module); returns how many there were. No two rows are of the same `by`.

    `change` says what is written, from the new columns: a function of a module. The caller holds the
    locks of these rows, or of the incident that owns them: they are updated in no order.
    """
    columns = tuple(rows[0])
    statement = _update(tx.dialect.name, table, columns, where, by, change)
    result = await tx.execute(statement, _bound(tx.dialect, table, columns, rows))
    return result.rowcount


@lru_cache(maxsize=256)
def _insert(
    dialect: str, table: sa.Table, columns: tuple[str, ...], finish: Finish, same: tuple[str, ...]
) -> Any:
    source = _source(dialect, table, columns)
    constants = [sa.bindparam(f"_{name}", type_=table.c[name].type) for name in same]
    # Why a WHERE: without one SQLite takes the ON of ON CONFLICT for a join.
    taken = sa.select(*(source.c[name] for name in columns), *constants).where(ALWAYS)
    return finish(insert_of(dialect, table).from_select([*columns, *same], taken))


@lru_cache(maxsize=256)
def _update(
    dialect: str,
    table: sa.Table,
    columns: tuple[str, ...],
    where: sa.ColumnElement[bool] | sa.TextClause,
    by: tuple[str, ...],
    change: Change,
) -> sa.Update:
    source = _source(dialect, table, columns)
    theirs = (table.c[name] == source.c[name] for name in by)
    changed = change({name: source.c[name] for name in columns if name not in by})
    return sa.update(table).where(*theirs, where).values(dict(changed))


def _source(dialect: str, table: sa.Table, columns: tuple[str, ...]) -> sa.FromClause:
    """The rows as a table: arrays side by side on PostgreSQL, one JSON text on SQLite."""
    if dialect == "sqlite":
        each = sa.func.json_each(sa.bindparam("_rows", type_=sa.Text)).table_valued("value")
        cells = [
            sa.type_coerce(
                sa.func.json_extract(each.c.value, sa.literal_column(f"'$[{place}]'")), table.c[name].type
            ).label(name)
            for place, name in enumerate(columns)
        ]
        return sa.select(*cells).subquery("rows_of")
    arrays = [
        sa.cast(sa.bindparam(f"_{name}", type_=sa.Text), postgresql.ARRAY(table.c[name].type))
        for name in columns
    ]
    typed: list[Any] = [sa.column(name, table.c[name].type) for name in columns]
    return sa.func.unnest(*arrays).table_valued(*typed, name="rows_of").render_derived()


def _bound(
    dialect: sa.Dialect, table: sa.Table, columns: tuple[str, ...], rows: Sequence[Row]
) -> dict[str, Any]:
    converters = _converters(dialect, table, columns)
    cells = {name: _cells(convert, [row[name] for row in rows]) for name, convert in converters.items()}
    if dialect.name == "sqlite":
        return {"_rows": json.dumps(list(zip(*cells.values(), strict=True)), ensure_ascii=False)}
    return {f"_{name}": _array(column) for name, column in cells.items()}


@lru_cache(maxsize=256)
def _converters(
    dialect: sa.Dialect, table: sa.Table, columns: tuple[str, ...]
) -> Mapping[str, Convert | None]:
    """What the dialect makes of the values of each column, if it does not take them as they are."""
    return {name: table.c[name].type.dialect_impl(dialect).bind_processor(dialect) for name in columns}


def _cells(convert: Convert | None, values: list[Any]) -> list[Any]:
    if convert is None:
        return values
    first = values[0]
    # Why: most columns of a batch hold one value. No objects: what is equal may be written otherwise.
    if not isinstance(first, (dict, list)) and values.count(first) == len(values):
        return [convert(first)] * len(values)
    return [convert(value) for value in values]


def _array(values: list[Any]) -> str:
    """As PostgreSQL writes an array. Why not the driver's own: it asks of every value what it is."""
    if values.count(values[0]) == len(values):
        items = [_item(values[0])] * len(values)
    else:
        items = [_item(value) for value in values]
    return f"{{{','.join(items)}}}"


def _item(value: Any) -> str:
    if value is None:
        return "NULL"
    if not isinstance(value, str):
        return str(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
