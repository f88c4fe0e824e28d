"""A timer whose work ends the process, each time: it is given up, and the others go on (F-10)."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from engine import schema
from engine.errors import Unavailable
from engine.pager import escalate
from engine.pager.escalate import TRIES
from tests.crash.faults import Killed
from tests.fakes import FakeClock
from tests.scenario.harness import Pager, fire
from tests.scenario.sending import alarms

pytestmark = pytest.mark.crash


def ends_the_process(monkeypatch: pytest.MonkeyPatch, title: str) -> list[str]:
    """Whoever rules on this incident dies, unless it is given up. Returns what was ruled on."""
    ruled, tried = escalate._ruled, []

    def die(timer: Any, incident: Any, *more: Any) -> Any:
        if more[-1] != "failed":
            tried.append(incident.title)
            if incident.title == title:
                raise Killed(title)
        return ruled(timer, incident, *more)

    monkeypatch.setattr(escalate, "_ruled", die)
    return tried


async def lives(pager: Pager, until: str, at_most: int = 12) -> int:
    """Start a process every few seconds, as a supervisor does, until somebody was paged for this."""
    for life in range(1, at_most + 1):
        with contextlib.suppress(Killed):
            for lane in reversed(pager.app.worker.lanes):  # in a process they run side by side
                await lane.run_due()
        await pager.app.pipeline.drain()
        if any(page.incident and page.incident.title == until for page in pager.pages()):
            return life
        pager.clock.move(seconds=3)
        await pager.restart()
    raise AssertionError(f"nobody was paged for {until!r}")


async def attempts(pager: Pager) -> dict[int, int]:
    """Of the fate timers, by incident."""
    table = schema.timers
    async with pager.app.database.snapshot() as tx:
        rows = await tx.execute(sa.select(table).where(table.c.lane == "fate"))
        return {row.subject_id: row.attempt for row in rows}


@pytest.fixture
async def pager(any_database_url: str, clock: FakeClock) -> Any:
    made = await Pager(any_database_url, clock).start()
    yield made
    await made.close()


async def test_what_ends_every_process_is_given_up_and_the_others_go_on(
    pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The good one in its batch is paged a few restarts later, and for the bad one the fallback after
    its fifth try: loud, and not for ever."""
    ends_the_process(monkeypatch, "bad")
    await pager.receive(fire("bad"), fire("good"))
    assert await lives(pager, "good") <= 5
    pager.pages()
    pager._heard.clear()
    assert await lives(pager, "bad") <= TRIES
    assert ("carol", "sms") in {(page.person, page.method.value) for page in pager.pages()}
    assert any(f"a escalate timer failed {TRIES} times" in text for text, _ in await alarms(pager))


async def test_a_try_is_committed_before_the_work(pager: Pager, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next process reads how often the ones before it have begun."""
    ends_the_process(monkeypatch, "bad")
    await pager.receive(fire("bad"))
    for life in range(TRIES):
        pager.clock.move(seconds=3)
        await pager.restart()
        with pytest.raises(Killed):
            await pager.app.worker.run_due()
        assert list((await attempts(pager)).values()) == [life + 1]


async def test_a_database_that_is_away_counts_nothing_against_a_timer(
    pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process counts a timer once, however often it has to begin again."""
    await pager.receive(fire())
    pager.clock.move(seconds=3)
    await pager.restart()
    work, fails = escalate.Escalator._work, [Unavailable()] * (TRIES + 2)

    async def away(self: Any, *arguments: Any, **more: Any) -> Any:
        if fails:
            raise fails.pop()
        return await work(self, *arguments, **more)

    monkeypatch.setattr(escalate.Escalator, "_work", away)
    while fails:
        with pytest.raises(Unavailable):
            await pager.app.worker.run_due()
        assert list((await attempts(pager)).values()) == [1]
    await pager.app.worker.run_due()
    pager.expect_page("alice", "slack")


async def test_what_is_only_late_is_worked_together(pager: Pager, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an outage nothing is suspected: one transaction counts a batch, and one works it."""
    await pager.receive(*(fire(f"alert {n}") for n in range(20)))
    pager.clock.move_to(pager.clock.now() + timedelta(minutes=10))
    await pager.restart()
    units: list[int] = []
    unit = escalate.Escalator._unit

    async def counted(self: Any, tx: Any, batch: Any, *more: Any) -> Any:
        units.append(len(batch))
        return await unit(self, tx, batch, *more)

    monkeypatch.setattr(escalate.Escalator, "_unit", counted)
    await pager.app.worker.run_due()
    assert units[0] == 20
