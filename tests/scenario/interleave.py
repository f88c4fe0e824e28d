"""Two processes on one database, with the order of their transactions forced.

`first` is stopped at a point of its transaction; `second` runs until it ends or waits for a lock of
the first; then the first goes on. On PostgreSQL the second really waits for rows, on SQLite for the
turn to write. Never sleeps: what it waits for is a condition with a deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

import sqlalchemy as sa

from engine import db
from engine.db import Database, Tx, Writer

T = TypeVar("T")
Operation = Callable[[], Awaitable[Any]]

PATIENCE = 20  # seconds, on a machine that is busy

WAITING = sa.text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


class Point(StrEnum):
    """Where the first one stops."""

    BEGIN = "begin"  # it has read what it reads beforehand, and holds nothing yet
    COMMIT = "commit"  # it has done everything, and holds all its locks


@dataclass
class Gate:
    """Stops the next transaction of this rank (None: of any)."""

    point: Point
    rank: Writer | None = None
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    async def stop(self) -> None:
        self.reached.set()
        await self.opened.wait()


class Gated(Database):
    """A database whose transactions can be stopped, and that says when it is about to write."""

    def __init__(self, url: str) -> None:
        super().__init__(url, pool_size=4)
        self.gate: Gate | None = None
        self.writing = asyncio.Event()

    async def _write_once(self, unit: Callable[[Tx], Awaitable[T]], rank: Writer) -> T:
        gate = self.gate
        if gate is None or gate.rank not in {None, rank}:
            return await super()._write_once(unit, rank)
        self.gate = None  # of this transaction only: a second try is stopped no more
        if gate.point is Point.BEGIN:
            await gate.stop()
            return await super()._write_once(unit, rank)

        async def stopped(tx: Tx) -> T:
            result = await unit(tx)
            await gate.stop()
            return result

        return await super()._write_once(stopped, rank)

    async def _transact(self, unit: Callable[[Tx], Awaitable[T]]) -> T:
        self.writing.set()
        return await super()._transact(unit)


@dataclass(frozen=True)
class Ended:
    """What both came to: a value or an error each, and whether the second had to wait."""

    first: Any
    second: Any
    waited: bool

    @property
    def errors(self) -> list[BaseException]:
        return [one for one in (self.first, self.second) if isinstance(one, BaseException)]


async def interleave(
    databases: tuple[Gated, Gated],
    first: Operation,
    second: Operation,
    point: Point = Point.COMMIT,
    rank: Writer | None = None,
) -> Ended:
    """Run the first up to the point, the second as far as it gets, then both to their end."""
    gate = databases[0].gate = Gate(point, rank)
    databases[1].writing.clear()
    doing = asyncio.ensure_future(_begun(first))
    async with asyncio.timeout(PATIENCE):
        await _either(doing, gate.reached)
        other = asyncio.ensure_future(_begun(second))
        waited = gate.reached.is_set() and not await _as_far_as_it_gets(databases, other, point)
        gate.opened.set()
        await asyncio.wait({doing, other})
    databases[0].gate = None
    first_end, second_end = (one.exception() or one.result() for one in (doing, other))
    return Ended(first_end, second_end, waited)


async def _begun(operation: Operation) -> Any:
    return await operation()


async def _either(task: asyncio.Future[Any], event: asyncio.Event) -> None:
    reached = asyncio.ensure_future(event.wait())
    await asyncio.wait({task, reached}, return_when=asyncio.FIRST_COMPLETED)
    reached.cancel()


async def _as_far_as_it_gets(databases: tuple[Gated, Gated], task: asyncio.Future[Any], point: Point) -> bool:
    """Whether it came to its end; else it waits for what the first one holds."""
    if point is Point.BEGIN:  # nothing is held
        await asyncio.wait({task})
        return True
    if databases[1].is_sqlite:
        await _either(task, databases[1].writing)
        return task.done()
    while not task.done():
        async with databases[0].snapshot() as tx:  # anew: a transaction sees one state of the sessions
            if await tx.scalar(WAITING):
                return False
    return True


class Deadlocks:
    """Counts units that had to be run again. A deadlock is not left to chance: there must be none."""

    def __init__(self, monkeypatch: Any) -> None:
        self.codes: list[str] = []
        again = db._again

        def noted(error: BaseException) -> bool:
            self.codes.append(db.sqlstate(error) or type(error).__name__)
            return again(error)

        monkeypatch.setattr(db, "_again", noted)
