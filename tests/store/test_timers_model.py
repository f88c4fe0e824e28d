"""The timer store against a dictionary: whatever is armed, claimed, lost and finished in any order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from engine import schema
from engine.db import Database, Tx
from engine.models import ORG, LaneName, Timer, TimerKind
from engine.store import timers
from engine.store.timers import Arming
from tests.fakes import START
from tests.store import queue

LEASE = timedelta(seconds=30)
SUBJECTS = st.integers(1, 4)
SECONDS = st.integers(-10, 60).map(lambda seconds: timedelta(seconds=seconds))
PICK = st.integers(0, 50)


@dataclass(frozen=True)
class Row:
    """What the model knows of a live timer."""

    due_at: datetime
    rev: int = 1
    attempt: int = 0
    lease_until: datetime | None = None


class TimerModel(RuleBasedStateMachine):
    """A dict of live timers, and the handles that workers believe to hold."""

    run: Callable[[Awaitable[Any]], Any]
    database: Database

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.model: dict[int, Row] = {}
        self.handles: list[Timer] = []
        self.newest = 0  # the highest id so far: a new timer has a new one
        self.write(lambda tx: tx.execute(sa.delete(schema.timers)))

    def write(self, unit: Callable[[Tx], Awaitable[Any]]) -> Any:
        return type(self).run(self.database.write(unit))

    def holder(self, timer: Timer) -> Row | None:
        """The row that this handle still holds; a row made anew is another one."""
        row = self.model.get(timer.subject_id)
        live = self.ids.get(timer.subject_id) == timer.id
        return row if row is not None and live and row.attempt == timer.attempt else None

    @rule(subject=SUBJECTS, delay=SECONDS)
    def arm(self, subject: int, delay: timedelta) -> None:
        due_at = self.now + delay
        self.write(lambda tx: timers.arm(tx, ORG, [Arming(TimerKind.DELIVER, subject, due_at)]))
        old = self.model.get(subject)
        assert old is not None or self.ids[subject] > self.newest
        self.newest = max(self.newest, self.ids[subject])
        self.model[subject] = Row(due_at) if old is None else replace(old, due_at=due_at, rev=old.rev + 1)

    @rule(subject=SUBJECTS)
    def disarm(self, subject: int) -> None:
        self.write(lambda tx: timers.disarm(tx, ORG, [TimerKind.DELIVER], [subject]))
        self.model.pop(subject, None)

    @rule(subject=SUBJECTS)
    def pull(self, subject: int) -> None:
        self.write(lambda tx: timers.pull(tx, ORG, TimerKind.DELIVER, [subject], self.now))
        row = self.model.get(subject)
        if row is not None and row.due_at > self.now and row.lease_until is None:
            self.model[subject] = replace(row, due_at=self.now, rev=row.rev + 1)

    @rule(delta=st.integers(1, 45))
    def advance(self, delta: int) -> None:
        self.now += timedelta(seconds=delta)

    @rule(limit=st.integers(1, 4))
    def claim(self, limit: int) -> None:
        free = [
            (row.due_at, self.ids[subject], subject)
            for subject, row in self.model.items()
            if row.due_at <= self.now and (row.lease_until is None or row.lease_until <= self.now)
        ]
        expected = [subject for _, _, subject in sorted(free)[:limit]]

        async def unit(tx: Tx) -> list[Timer]:
            due = await queue.due(tx, LaneName.DELIVER, self.now, limit)
            return await timers.claim(tx, due, "me", self.now + LEASE, self.now)

        held = self.write(unit)
        assert [timer.subject_id for timer in held] == expected
        for timer in held:
            row = self.model[timer.subject_id]
            self.model[timer.subject_id] = replace(row, attempt=row.attempt + 1, lease_until=self.now + LEASE)
        self.handles += held

    @rule(pick=PICK)
    def finish(self, pick: int) -> None:
        if not self.handles:
            return
        timer = self.handles[pick % len(self.handles)]
        row = self.holder(timer)
        assert self.write(lambda tx: timers.finish(tx, timer)) is (row is not None)
        if row is not None and row.rev == timer.rev:
            del self.model[timer.subject_id]
        elif row is not None:
            self.model[timer.subject_id] = replace(row, lease_until=None)

    @rule(pick=PICK, delay=SECONDS)
    def postpone(self, pick: int, delay: timedelta) -> None:
        if not self.handles:
            return
        timer, due_at = self.handles[pick % len(self.handles)], self.now + delay
        row = self.holder(timer)
        assert self.write(lambda tx: timers.postpone(tx, timer, due_at)) is (row is not None)
        if row is not None:
            new_due = due_at if row.rev == timer.rev else row.due_at
            self.model[timer.subject_id] = replace(row, due_at=new_due, lease_until=None)

    @rule()
    def crash(self) -> None:
        """The worker is gone, and its leases with it; nobody tells the store."""
        self.handles.clear()

    @property
    def ids(self) -> dict[int, int]:
        return {subject: timer.id for subject, timer in self.stored().items()}

    def stored(self) -> dict[int, Timer]:
        async def read() -> dict[int, Timer]:
            async with self.database.snapshot() as tx:
                rows = await tx.execute(sa.select(*timers.COLUMNS))
                return {timer.subject_id: timer for timer in (Timer(*row) for row in rows)}

        found: dict[int, Timer] = type(self).run(read())
        return found

    @invariant()
    def the_store_is_the_model(self) -> None:
        assert {
            subject: Row(timer.due_at, timer.rev, timer.attempt, self.leases()[timer.id])
            for subject, timer in self.stored().items()
        } == self.model

    def leases(self) -> dict[int, datetime | None]:
        async def read() -> dict[int, datetime | None]:
            async with self.database.snapshot() as tx:
                rows = await tx.execute(sa.select(schema.timers.c.id, schema.timers.c.lease_until))
                return {row.id: row.lease_until for row in rows}

        found: dict[int, datetime | None] = type(self).run(read())
        return found


def test_the_store_does_what_a_dictionary_does(any_database_url: str) -> None:
    """In any order of arming, claiming, losing, finishing and crashing each live timer is as expected."""
    with asyncio.Runner() as runner:
        database = Database(any_database_url, pool_size=1)

        class Machine(TimerModel):
            run = staticmethod(runner.run)

        Machine.database = database
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=25,
                stateful_step_count=25,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
        runner.run(database.close())
