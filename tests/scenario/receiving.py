"""A Receiver on a real database and nothing behind it: what is stored, and by how many statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

from engine.db import Database
from engine.directory import Directory, Policy, Service
from engine.intake.receive import Receiver
from engine.models import ORG, Action, Body, Event, GroupResolve, Receipt, Severity
from engine.nudge import Nudge
from engine.store import services
from tests.fakes import FakeClock


class Receiving:
    """One process that takes events; several may share a database."""

    def __init__(self, database: Database, clock: FakeClock, known: Mapping[int, Service]) -> None:
        self.database = database
        self.clock = clock
        self.services = dict(known)
        self.policies: dict[int, Policy] = {}
        self.receiver = Receiver(database, clock, self._directory, Nudge(database))

    @classmethod
    async def start(cls, database: Database, clock: FakeClock, *known: Service) -> Receiving:
        made = {}
        for service in known or (Service(0, "checkout", None, None),):
            number = await database.write(lambda tx, one=service: services.save_service(tx, ORG, one))
            made[number] = Service(
                number,
                service.name,
                None,
                service.channel,
                service.group_by,
                service.group_window,
                service.flap_window,
                service.urgency,
            )
        return cls(database, clock, made)

    def another(self, database: Database) -> Receiving:
        """A second process on the same data."""
        return Receiving(database, self.clock, self.services)

    async def _directory(self) -> Directory:
        return Directory(ORG, 1, {}, self.services, self.policies, {})

    async def accept(self, *events: Event, service: str = "checkout", **body: Any) -> list[Receipt]:
        number = next(one.id for one in self.services.values() if one.name == service)
        return await self.receiver.accept(ORG, number, Body("test", events, **body))

    async def one(self, event_: Event, **more: Any) -> Receipt:
        (receipt,) = await self.accept(event_, **more)
        return receipt

    # --- what is stored ----------------------------------------------------------------------------------

    async def rows(self, table: sa.Table) -> list[Any]:
        async with self.database.snapshot() as tx:
            return list(await tx.execute(sa.select(table).order_by(*table.primary_key.columns)))

    @contextmanager
    def statements(self) -> Iterator[list[str]]:
        """What is executed meanwhile, by its first words; one for each round trip to the database."""
        seen: list[str] = []

        def note(_c: Any, _cu: Any, statement: str, *_more: Any) -> None:
            seen.append(statement)

        engine = self.database.writer_engine.sync_engine
        event.listen(engine, "before_cursor_execute", note)
        try:
            yield seen
        finally:
            event.remove(engine, "before_cursor_execute", note)


def fire(key: str = "db-1", summary: str = "", **more: Any) -> Event:
    more.setdefault("severity", Severity.CRITICAL)
    more.setdefault("raw_severity", more["severity"].value if more["severity"] else "")
    return Event(Action.TRIGGER, key, summary or f"{key} is down", **more)


def end(key: str = "db-1", **more: Any) -> Event:
    return Event(Action.RESOLVE, key, "", **more)


def taken(key: str = "db-1", **more: Any) -> Event:
    """The source says that somebody there has taken it."""
    return Event(Action.ACKNOWLEDGE, key, "", **more)


def over(group_key: str, before: datetime | None = None) -> dict[str, Any]:
    return {"group_resolves": (GroupResolve(group_key, before),)}
