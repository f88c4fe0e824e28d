"""In which order each transaction takes its locks, read off its statements, and whether that is the
order of docs/architecture.md.

PostgreSQL only: SQLite has one writer. Rows that a statement inserts and nobody else can name are no
lock; an upsert is one, since it may wait for whoever inserts the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import event

from engine.db import Tx

ORDER: Final = ("dedup_keys", "incidents", "alerts", "new incidents", "new alerts", "timers", "counters")
# Why no place for deliveries: they and their timers are touched under their incident's lock, in any
# order; where no incident is locked, timers come first.
FREE: Final = "deliveries"
# Inserted, and armed in the same transaction: their timers are as new as they are, and whoever waits
# for one of them (the same alarm, raised elsewhere) waits for a transaction that waits for nobody.
NEW: Final = "new deliveries"

_ROWS: Final = re.compile(r"\bFROM (\w+)\b(?:(?!\bFROM\b).)*?\bFOR (?:NO KEY )?(?:UPDATE|SHARE)\b", re.DOTALL)
_CHANGE: Final = re.compile(r"\b(?:UPDATE|DELETE FROM) (\w+)\b")
_LOCKING: Final = re.compile(r"\bFOR (?:NO KEY )?UPDATE\b|\bDO UPDATE SET\b")
_UPSERT: Final = re.compile(r"\bINSERT INTO (\w+)\b.*\bON CONFLICT\b", re.DOTALL)
_NAMES: Final = {*ORDER, FREE, NEW}


@cache
def locked_by(statement: str) -> tuple[str, ...]:
    """The names of ORDER that a statement locks, in the order in which it does."""
    found: list[str] = _ROWS.findall(statement)
    if upsert := _UPSERT.search(statement):
        name = upsert[1]
        found.append(f"new {name}" if name in {"incidents", "alerts", FREE} else name)
    found += _CHANGE.findall(_LOCKING.sub(" ", statement))
    return tuple(dict.fromkeys(name for name in found if name in _NAMES))


def unwatched(tx: Tx) -> None:
    """This transaction is the test's, not the pager's."""
    assert tx.sync_connection is not None
    tx.sync_connection.info["locks"] = None


class Locks:
    """What was locked first, second … in each transaction; `against` says which ones broke the order."""

    def __init__(self) -> None:
        self.against: list[str] = []
        self.seen = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        listeners = (("begin", self._begin), ("before_cursor_execute", self._execute))
        for name, listener in listeners:
            event.listen(sa.Engine, name, listener)
        try:
            yield
        finally:
            for name, listener in listeners:
                event.remove(sa.Engine, name, listener)

    def _begin(self, connection: sa.Connection) -> None:
        connection.info["locks"] = []

    def _execute(self, connection: sa.Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if connection.dialect.name != "postgresql":
            return
        taken: list[str] | None = connection.info.setdefault("locks", [])
        if taken is None:
            return
        for name in locked_by(statement):
            if name == "incidents" and name in taken and statement.startswith("SELECT"):
                self.against.append("incidents twice: the second time they may be earlier ones")
            own = f"new {name}" in taken and statement.startswith("UPDATE")
            if name in taken or own:  # locked already, or nobody else sees these rows yet
                continue
            self.seen += 1
            if wrong := _too_late(name, taken):
                self.against.append(f"{name} after {wrong}: {' '.join(statement.split())[:120]}")
            taken.append(name)


def _too_late(name: str, taken: list[str]) -> str | None:
    """What should have been locked after it."""
    if name in {FREE, NEW}:
        return None
    if name == "timers" and FREE in taken and "incidents" not in taken:
        return FREE
    if name in {"dedup_keys", "incidents", "alerts"} and not {FREE, NEW}.isdisjoint(taken):
        return FREE
    later = ORDER[ORDER.index(name) + 1 :]
    return next((one for one in taken if one in later), None)
