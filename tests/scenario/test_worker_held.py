"""The loop as it runs in a process, while somebody holds a row or a backlog waits: no other incident
waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
import sqlalchemy as sa

from engine import schema
from engine.clock import SystemClock, monotonic
from engine.db import Database
from engine.models import LaneName, Method, Outcome, Page
from engine.pager.escalate import Escalator
from engine.pager.worked import Worked
from tests.fakes import FakeClock, FakeTransport
from tests.scenario.harness import Pager, fire
from tests.scenario.locks import unwatched

PATIENCE: Final = 10  # seconds that a test waits at most
SOON: Final = 2.5  # seconds from POST to page: one person is told once a second, after a first haste
HELD: Final = 4.0  # seconds: longer than a lock is waited for


class RealClock(FakeClock):
    """Time passes by itself."""

    def now(self) -> datetime:
        return SystemClock().now()


@dataclass
class Bell(FakeTransport):
    """Says when somebody was paged for an incident."""

    rung: dict[str, asyncio.Event] = field(default_factory=dict)

    def of(self, title: str) -> asyncio.Event:
        return self.rung.setdefault(title, asyncio.Event())

    async def send(self, page: Page) -> Outcome:
        outcome = await super().send(page)
        if page.incident is not None:
            self.of(page.incident.title).set()
        return outcome


@asynccontextmanager
async def running(
    url: str, *titles: str, due: timedelta = timedelta(), attempt: int = 0
) -> AsyncIterator[Pager]:
    """A pager whose loops run, and that finds these incidents, overdue since `due`, when it starts."""
    pager = await Pager(url, RealClock()).start()
    await pager.receive(*(fire(title) for title in titles))
    fate = sa.update(schema.timers).where(schema.timers.c.lane == "fate")
    overdue = fate.values(due_at=pager.clock.now() - due, attempt=attempt)
    await pager.app.database.write(lambda tx: tx.execute(overdue))
    bell = Bell(frozenset({Method.SLACK, Method.CHANNEL}), "slack")
    pager.transports[Method.SLACK] = pager.transports[Method.CHANNEL] = bell
    await pager.restart()
    yield pager
    await pager.app.worker.stop()
    await pager.close()


def bell_of(pager: Pager) -> Bell:
    bell = pager.transports[Method.SLACK]
    assert isinstance(bell, Bell)
    return bell


async def page_for(pager: Pager, title: str) -> float:
    """Seconds from the POST to the page."""
    began = monotonic()
    await pager.receive(fire(title))
    async with asyncio.timeout(PATIENCE):
        await bell_of(pager).of(title).wait()
    return monotonic() - began


@asynccontextmanager
async def held(url: str, title: str) -> AsyncIterator[None]:
    """Somebody else has this incident in a transaction."""
    database = Database(url)
    row = sa.select(schema.incidents.c.id).where(schema.incidents.c.title == title).with_for_update()
    async with database.writer_engine.begin() as tx:
        unwatched(tx)
        await tx.execute(row)
        yield
    await database.close()


@pytest.mark.slow
@pytest.mark.parametrize("old", [False, True], ids=["due now", "due before the start"])
async def test_a_row_that_is_held_keeps_no_other_incident_waiting(postgresql_url: str, *, old: bool) -> None:
    """It is waited for over and over, and whatever is posted meanwhile is paged within a second or so;
    the lane ticks. Once it is let go it is paged too."""
    due = timedelta(minutes=1) if old else timedelta()
    async with running(postgresql_url, "held", due=due) as pager:
        (lane,) = (one for one in pager.app.worker.lanes if one.name is LaneName.FATE)
        async with held(postgresql_url, "held"):
            await pager.app.worker.start()
            until = monotonic() + HELD
            waits: list[float] = []
            silences: list[float] = []
            while monotonic() < until:  # each POST is a nudge, and so is each page
                waits.append(await page_for(pager, f"other {len(waits)}"))
                silences.append(monotonic() - lane.ticked_at)
            assert not bell_of(pager).of("held").is_set()
        assert max(waits) < SOON, waits
        assert max(silences) < SOON, silences
        async with asyncio.timeout(PATIENCE):
            await bell_of(pager).of("held").wait()


@pytest.mark.slow
async def test_what_is_posted_passes_a_backlog_of_suspects(
    any_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty were begun by a process that never ended: a new incident is escalated before half
    of them are, and in the end all are."""
    titles = [f"suspect {n}" for n in range(60)]
    worked: list[int | None] = []
    all_worked = asyncio.Event()
    work = Escalator._work

    async def watched(self: Escalator, *arguments: Any) -> Worked:
        done = await work(self, *arguments)
        worked.extend(timer.subject_id for timer in done.finished)
        if len(worked) > len(titles):
            all_worked.set()
        return done

    monkeypatch.setattr(Escalator, "_work", watched)
    async with running(any_database_url, *titles, due=timedelta(minutes=1), attempt=1) as pager:
        await pager.app.worker.start()
        (receipt,) = await pager.receive(fire("new"))
        async with asyncio.timeout(6 * PATIENCE):
            await all_worked.wait()
        assert worked.index(receipt.incident_id) < len(titles) / 2
        assert len({*worked}) == len(worked) == len(titles) + 1
