"""The work of schedules' timers: once each, again when it fails, and never in the way of the others."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from engine import worker
from engine.db import Tx
from engine.models import ORG, LaneName, Timer, TimerKind
from engine.nudge import Nudge
from engine.pulse import SILENT
from engine.rota import chores as chores_module
from engine.rota.chores import Chores, Errands
from engine.store import timers
from engine.store.due import beginnings, near
from engine.store.timers import Arming
from tests.scenario.harness import Pager

OWNER = "w1"


async def arm(pager: Pager, kind: TimerKind, *subjects: int) -> list[Timer]:
    now = pager.clock.now()
    armings = [Arming(kind, subject, now) for subject in subjects]
    await pager.app.database.write(lambda tx: timers.arm(tx, ORG, armings))
    return await due(pager)


async def due(pager: Pager, after: timedelta = timedelta()) -> list[Timer]:
    at = pager.clock.now() + after
    async with pager.app.database.look() as tx:
        found, _ = await near(tx, beginnings([LaneName.ROTA, LaneName.OUTSIDE]), at, at, 100)
    return list(found)


def chores(pager: Pager, work: Any) -> Chores:
    database = pager.app.database
    return Chores(database, pager.clock, Nudge(database), {TimerKind.SHIFT: work})


async def test_a_chore_is_done_once_though_two_workers_read_it(pager: Pager) -> None:
    """Finished and worked in one transaction: the second worker finds nothing left to take."""
    done: list[int] = []

    async def work(tx: Tx, timer: Timer, now: datetime) -> None:
        done.append(timer.subject_id)

    found = await arm(pager, TimerKind.SHIFT, 1, 2)
    assert await chores(pager, work).handle(found) == 2
    assert await chores(pager, work).handle(found) == 0
    assert (done, await due(pager)) == ([1, 2], [])


async def test_a_chore_arms_its_next_timer_with_its_end(pager: Pager) -> None:
    """Finished and armed in one commit: there is no instant at which neither is there."""

    async def work(tx: Tx, timer: Timer, now: datetime) -> None:
        await timers.arm(tx, ORG, [Arming(TimerKind.SHIFT, timer.subject_id, now + timedelta(hours=1))])

    await chores(pager, work).handle(await arm(pager, TimerKind.SHIFT, 1))
    assert await due(pager) == []
    assert [timer.subject_id for timer in await due(pager, timedelta(hours=1))] == [1]


async def test_one_that_fails_is_tried_later_and_the_others_are_done(pager: Pager) -> None:
    """What it wrote is gone, it waits a minute and longer with each failure."""

    async def work(tx: Tx, timer: Timer, now: datetime) -> None:
        if timer.subject_id == 1:
            raise ValueError("broken")

    await chores(pager, work).handle(await arm(pager, TimerKind.SHIFT, 1, 2))
    assert await due(pager) == []
    (left,) = await due(pager, timedelta(minutes=1))
    assert (left.subject_id, left.attempt) == (1, 1)


async def claim(pager: Pager, found: list[Timer]) -> list[Timer]:
    now = pager.clock.now()
    return await pager.app.database.write(
        lambda tx: timers.claim(tx, found, OWNER, now + timedelta(seconds=30), now)
    )


@pytest.mark.parametrize("after", [None, timedelta(hours=2)])
async def test_an_errand_ends_or_says_when_again(pager: Pager, after: timedelta | None) -> None:
    """What it answers is when its timer is due again; None ends it."""

    async def work(timer: Timer, now: datetime) -> datetime | None:
        return None if after is None else now + after

    claimed = await claim(pager, await arm(pager, TimerKind.CALENDAR, 1))
    await Errands(pager.app.database, pager.clock, {TimerKind.CALENDAR: work}).handle(claimed)
    assert await due(pager, timedelta(hours=1)) == []
    assert len(await due(pager, timedelta(hours=2))) == (0 if after is None else 1)


async def test_an_errand_that_waits_keeps_no_other_waiting(pager: Pager) -> None:
    """The first waits for what only the last one does: in a row they would wait for ever."""
    last_ran = asyncio.Event()

    async def work(timer: Timer, now: datetime) -> datetime | None:
        if timer.subject_id == 3:
            last_ran.set()
        async with asyncio.timeout(10):
            await last_ran.wait()
        return None

    claimed = await claim(pager, await arm(pager, TimerKind.CALENDAR, 1, 2, 3))
    await Errands(pager.app.database, pager.clock, {TimerKind.CALENDAR: work}).handle(claimed)
    assert await due(pager, timedelta(hours=2)) == []


async def test_an_errand_that_fails_is_run_again(pager: Pager) -> None:
    """A few minutes later, with the attempt counted."""

    async def work(timer: Timer, now: datetime) -> datetime | None:
        raise OSError("no route")

    claimed = await claim(pager, await arm(pager, TimerKind.CALENDAR, 1))
    await Errands(pager.app.database, pager.clock, {TimerKind.CALENDAR: work}).handle(claimed)
    assert [timer.attempt for timer in await due(pager, timedelta(minutes=5))] == [1]


async def test_a_kind_that_nobody_here_knows_is_left_alone(pager: Pager) -> None:
    """A newer version works it: during a rolling upgrade nothing is finished unworked."""

    async def work(tx: Tx, timer: Timer, now: datetime) -> None: ...

    found = await arm(pager, TimerKind.COVERAGE, 1)
    assert await chores(pager, work).handle(found) == 0
    assert len(await due(pager)) == 1


async def test_an_errand_that_does_not_end_is_ended_before_its_lease(
    pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many people Slack is asked about: the lane goes on ticking, and it is tried again later."""
    assert chores_module.ERRAND < worker.LEASE
    assert chores_module.ERRAND < SILENT
    monkeypatch.setattr(chores_module, "ERRAND", timedelta(milliseconds=1))

    async def work(timer: Timer, now: datetime) -> datetime | None:
        await asyncio.Event().wait()
        return None

    claimed = await claim(pager, await arm(pager, TimerKind.CALENDAR, 1))
    await Errands(pager.app.database, pager.clock, {TimerKind.CALENDAR: work}).handle(claimed)
    assert [timer.attempt for timer in await due(pager, timedelta(minutes=5))] == [1]
