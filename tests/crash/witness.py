"""What the database itself saw: every change of a fate, an attempt, a delivery and a timer, in order.

Made of triggers, so that it commits with what it saw, and no statement of the pager knows of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from engine.db import Tx

TABLE: Final = "witness"
_COLUMNS: Final = "tx, what, subject, name, before, after, epoch, due_at"
_SERIAL: Final = {"sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT", "postgresql": "BIGSERIAL PRIMARY KEY"}
_TX: Final = {"sqlite": "NULL", "postgresql": "txid_current()"}

# what, table, event, condition on an update, subject, name, before, after, epoch, due_at
_SEEN: Final = (
    ("fate", "incidents", "INSERT", "", "NEW.id", "''", "NULL", "NEW.status", "NEW.epoch", "NULL"),
    (
        *("fate", "incidents", "UPDATE", "OLD.epoch <> NEW.epoch OR OLD.status <> NEW.status"),
        *("NEW.id", "''", "OLD.status", "NEW.status", "NEW.epoch", "NULL"),
    ),
    (
        *("told", "timeline", "INSERT", ""),
        *("NEW.incident_id", "NEW.kind", "NEW.before", "NEW.after", "NEW.epoch", "NULL"),
    ),
    ("armed", "timers", "INSERT", "", "NEW.subject_id", "NEW.kind", "''", "''", "NEW.epoch", "NEW.due_at"),
    (
        *("armed", "timers", "UPDATE", "OLD.epoch <> NEW.epoch OR OLD.due_at <> NEW.due_at"),
        *("NEW.subject_id", "NEW.kind", "''", "''", "NEW.epoch", "NEW.due_at"),
    ),
    (
        *("attempt", "attempts", "UPDATE", "OLD.outcome <> NEW.outcome OR OLD.ended_at <> NEW.ended_at"),
        *("NEW.delivery_id", "CAST(NEW.number AS TEXT)", "OLD.outcome", "NEW.outcome", "0", "NULL"),
    ),
    (
        *("delivery", "deliveries", "UPDATE", "OLD.status <> NEW.status"),
        *("NEW.id", "''", "OLD.status", "NEW.status", "0", "NULL"),
    ),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """One change; `tx` is its transaction, where the database can tell."""

    tx: int | None
    what: str
    subject: int
    name: str
    before: str | None
    after: str | None
    epoch: int
    due_at: int | None


async def set_up(tx: Tx) -> None:
    dialect = tx.dialect.name
    await tx.exec_driver_sql(
        f"CREATE TABLE {TABLE} (seq {_SERIAL[dialect]}, tx BIGINT, what TEXT, subject BIGINT, name TEXT,"
        " before TEXT, after TEXT, epoch INTEGER, due_at BIGINT)"
    )
    for number, (what, table, on, when, *values) in enumerate(_SEEN):
        columns = ", ".join((_TX[dialect], f"'{what}'", *values))
        insert = (
            f"INSERT INTO {TABLE} (tx, what, subject, name, before, after, epoch, due_at) SELECT {columns};"
        )
        head = f"CREATE TRIGGER witness_{number} AFTER {on} ON {table} FOR EACH ROW"
        condition = f" WHEN ({when})" if when else ""
        if dialect == "sqlite":
            await tx.exec_driver_sql(f"{head}{condition} BEGIN {insert} END")
        else:
            await tx.exec_driver_sql(
                f"CREATE FUNCTION witness_{number}() RETURNS trigger LANGUAGE plpgsql AS"
                f" $$ BEGIN {insert} RETURN NULL; END $$"
            )
            await tx.exec_driver_sql(f"{head}{condition} EXECUTE FUNCTION witness_{number}()")


async def read(tx: Tx) -> list[Seen]:
    rows: Any = await tx.execute(
        sa.text(f"SELECT {_COLUMNS} FROM {TABLE} ORDER BY seq")  # noqa: S608  # a constant
    )
    return [Seen(*row) for row in rows]


async def forget(tx: Tx) -> None:
    await tx.execute(sa.text(f"DELETE FROM {TABLE}"))  # noqa: S608  # a constant
