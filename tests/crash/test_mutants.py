"""A test of the sweep: with a mistake planted in the pager, the same stories are violated."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from engine.db import Database, Tx
from engine.models import Method, Rejected, Timer, TimerKind
from engine.notify import begin, record
from engine.notify.verdict import Verdict
from engine.pager import escalate
from engine.store import timers
from engine.store.timers import Arming
from tests.crash.story import tell
from tests.crash.world import Watched
from tests.fakes import FakeClock
from tests.scenario.harness import Pager, fire
from tests.scenario.sending import LADDER, alarms, gate

pytestmark = pytest.mark.crash


async def first_violation(database: Watched, boundary: str) -> str | None:
    """Kill at each boundary of this kind until something is violated; without a kill nothing may be."""
    whole = await tell(database)
    assert whole.violations == [], "the mistake shows without a crash: it needs no sweep"
    for kill_at, what in enumerate(whole.boundaries.log, 1):
        if what.startswith(boundary):
            world = await tell(database, kill_at)
            if world.violations:
                return world.violations[0]
    return None


async def test_arming_after_the_commit_is_caught(
    watched_sqlite: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer that is armed in a transaction of its own, after its cause, is lost in between."""
    arm, transact = timers.arm, Database._transact
    waiting: list[tuple[int, list[Arming]]] = []

    async def arm_later(tx: Tx, org_id: int, armings: Iterable[Arming]) -> None:
        waiting.append((org_id, list(armings)))

    async def commit_then_arm(self: Database, unit: Any) -> Any:
        waiting.clear()
        result = await transact(self, unit)
        todo = list(waiting)
        if todo:
            await self._transact_plainly(todo)  # type: ignore[attr-defined]  # the mutant hangs it on itself
        return result

    monkeypatch.setattr(timers, "arm", arm_later)
    monkeypatch.setattr(Database, "_transact", commit_then_arm)

    async def plainly(self: Database, todo: list[tuple[int, list[Arming]]]) -> None:
        async def unit(tx: Tx) -> None:
            for org_id, armings in todo:
                await arm(tx, org_id, armings)

        await transact(self, unit)

    monkeypatch.setattr(Database, "_transact_plainly", plainly, raising=False)
    assert await first_violation(watched_sqlite, "before INSERT INTO timers") is not None


async def test_finishing_before_the_effect_is_caught(
    watched_sqlite: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer that is finished when its send begins is nobody's when the process dies."""
    claim = timers.claim

    async def claim_and_finish(tx: Tx, *arguments: Any) -> list[Timer]:
        claimed = await claim(tx, *arguments)
        await timers.finish_all(tx, [timer.id for timer in claimed])
        return claimed

    async def arm_anew(tx: Tx, timer: Timer, verdict: Verdict) -> None:
        if verdict.again_at is not None:
            again = Arming(TimerKind.DELIVER, timer.subject_id, verdict.again_at)
            await timers.arm(tx, timer.org_id, [again])

    monkeypatch.setattr(begin.timers, "claim", claim_and_finish)
    monkeypatch.setattr(record, "_fence", arm_anew)
    assert await first_violation(watched_sqlite, "before the send") is not None


async def paged_by_an_old_timer(pager: Pager, number: int = 1) -> bool:
    """The ladder is at its end; somebody acks and takes it back. Is the fallback paged before its time?"""
    await pager.alert(f"alert {number}")
    await pager.advance(minutes=16)
    await pager.ack(number)
    await pager.answer("unacknowledge", number)
    pager.pages()
    pager._heard.clear()
    await pager.advance(minutes=5)
    early = {page.person for page in pager.pages()}
    pager._heard.clear()
    return "carol" in early


async def test_a_missing_epoch_check_is_caught(
    sqlite_url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer of another epoch that is left behind does nothing, because its epoch is looked at (I7)."""

    async def disarm_nothing(*_: Any) -> None: ...

    monkeypatch.setattr(timers, "disarm", disarm_nothing)
    pager = await Pager(sqlite_url, clock).start()
    assert not await paged_by_an_old_timer(pager), "the epoch alone keeps it still"
    await pager.resolve()
    ruled = escalate._ruled

    def ruled_blindly(timer: Timer, incident: Any, *more: Any) -> Any:
        return ruled(replace(timer, epoch=incident.fate.epoch), incident, *more)

    monkeypatch.setattr(escalate, "_ruled", ruled_blindly)
    assert await paged_by_an_old_timer(pager, 2)
    await pager.close()


async def test_an_unfenced_record_is_caught(
    sqlite_url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the fence, the late failure of a stalled worker speaks for a page that another one sent."""
    first = await Pager(sqlite_url, clock, LADDER).start()
    assert await alarms_after_a_stall(first, clock) == []
    await first.resolve(by="ann")

    async def no_fence(*_: Any) -> None: ...

    monkeypatch.setattr(record, "_fence", no_fence)
    assert await alarms_after_a_stall(first, clock, 2) != []
    await first.close()


async def alarms_after_a_stall(pager: Pager, clock: FakeClock, number: int = 1) -> list[Any]:
    """A worker stalls in its send past its lease; another one sends; then the first one comes back."""
    held = gate(Method.SMS)
    pager.transports[Method.SMS] = held
    await pager.restart()
    held.fail_next(Rejected("this result comes too late"))
    await pager.receive(fire(f"alert {number}"))
    stalled = asyncio.create_task(pager.app.worker.run_due())
    await held.entered.wait()
    other = Pager(pager.url, clock, LADDER)
    clock.move(seconds=31)
    await other.app.worker.run_due()
    held.opened.set()
    await stalled
    await other.close()
    return await alarms(pager)
