"""A test of the sweep: with a mistake planted in the pager, the same stories break an invariant.

Each mistake is one that somebody could make. Where it shows only after a fault, the story without one
must break nothing, or the sweep would not be needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from engine import schema
from engine.db import Database, Tx, any_of, given, given_list
from engine.intake.receive import Receiver
from engine.models import ORG, Outcome, Page, Timer, TimerKind
from engine.notify import begin, death, pipeline, record, transport
from engine.notify.record import Recorded
from engine.notify.route import Route, route
from engine.pager import escalate
from engine.store import deliveries, journal, leases, timers
from engine.store.timers import Arming
from tests.crash.faults import Fault, Kind
from tests.crash.stage import Stage
from tests.crash.story import Story, dead_end, early_ack, night, taken_back

pytestmark = pytest.mark.crash

Unit = Callable[[Tx], Awaitable[None]]


async def broken_by(stage: Stage, kind: Kind, boundary: str, story: Story = night) -> set[str]:
    """What the fault breaks at the first such boundary at which it breaks something."""
    whole = await stage.tell(Fault(kind), story)
    assert whole.broken == [], "the mistake shows without a fault: it needs no sweep"
    for nth, what in enumerate(whole.log, 1):
        if what.startswith(boundary):
            run = await stage.tell(Fault(kind, nth), story)
            if run.names:
                return run.names
    return set()


def tries_again(judged: Sequence[Recorded]) -> list[Arming]:
    """Timers made anew for what is to be tried again."""
    return [
        Arming(TimerKind.DELIVER, one.ended.delivery.id, one.verdict.again_at)
        for one in judged
        if one.verdict.again_at is not None
    ]


class Afterwards:
    """Work that a mutant does in a transaction of its own, after the commit of its cause."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting: list[Unit] = []
        self.transact = Database._transact
        later = self

        async def commit_then_work(self: Database, unit: Any) -> Any:
            later.waiting.clear()
            result = await later.transact(self, unit)
            todo = list(later.waiting)
            if todo:
                await later.plainly(self, todo)
            return result

        monkeypatch.setattr(Database, "_transact", commit_then_work)

    async def plainly(self, database: Database, todo: Sequence[Unit]) -> None:
        async def unit(tx: Tx) -> None:
            for one in todo:
                await one(tx)

        await self.transact(database, unit)


async def test_arming_after_the_commit_is_caught(
    sqlite_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer that is armed in a transaction of its own, after its cause, is lost in between (I3)."""
    arm, afterwards = timers.arm, Afterwards(monkeypatch)

    async def arm_later(_: Tx, org_id: int, armings: Iterable[Arming]) -> None:
        kept = list(armings)
        afterwards.waiting.append(lambda tx: arm(tx, org_id, kept))

    monkeypatch.setattr(timers, "arm", arm_later)
    assert "I3" in await broken_by(sqlite_stage, Kind.KILL_BEFORE, "statement INSERT INTO timers")


async def test_finishing_before_the_effect_is_caught(
    sqlite_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer that is finished when its send begins is nobody's when the process dies (I4)."""
    claim = timers.claim

    async def claim_and_finish(tx: Tx, *arguments: Any) -> list[Timer]:
        claimed = await claim(tx, *arguments)
        await timers.finish_all(tx, [timer.id for timer in claimed])
        return claimed

    async def arm_anew(tx: Tx, judged: Sequence[Recorded]) -> list[Recorded]:
        await timers.arm(tx, ORG, tries_again(judged))
        return [*judged]

    monkeypatch.setattr(timers, "claim", claim_and_finish)
    monkeypatch.setattr(record, "_fenced", arm_anew)
    assert "I4" in await broken_by(sqlite_stage, Kind.KILL_BEFORE, "send")


async def test_a_record_and_its_next_timer_in_two_transactions_are_caught(
    sqlite_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the result of a try and the timer of the next one, the process dies (I3, F-06)."""
    afterwards = Afterwards(monkeypatch)

    async def finish_and_arm_later(tx: Tx, judged: Sequence[Recorded]) -> list[Recorded]:
        await leases.end(tx, [leases.End(one.ended.begun.timer) for one in judged])
        afterwards.waiting.append(lambda tx: timers.arm(tx, ORG, tries_again(judged)))
        return [*judged]

    monkeypatch.setattr(record, "_fenced", finish_and_arm_later)
    assert "I3" in await broken_by(sqlite_stage, Kind.KILL_BEFORE, "statement BEGIN")


async def test_a_2xx_before_the_commit_is_caught(
    sqlite_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source hears that it was stored and never comes back, and then the process dies (I1, F-01)."""
    accept, storing = Receiver.accept, set()

    async def say_so_at_once(self: Receiver, *arguments: Any) -> list[Any]:
        task = asyncio.ensure_future(accept(self, *arguments))
        storing.add(task)
        return [None]

    monkeypatch.setattr(Receiver, "accept", say_so_at_once)
    whole = await sqlite_stage.tell(Fault(Kind.KILL_BEFORE))
    first_commit = next(n for n, what in enumerate(whole.log, 1) if what.startswith("commit"))
    assert "I1" not in whole.names
    assert "I1" in (await sqlite_stage.tell(Fault(Kind.KILL_BEFORE, first_commit))).names
    for task in storing:
        task.cancel()
    await asyncio.gather(*storing, return_exceptions=True)


async def test_a_send_inside_the_transaction_is_caught(
    sqlite_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies before the commit: the message is out, and no row knows of it (I6)."""
    sent: dict[tuple[int, int], Outcome] = {}
    attempt, plain = pipeline.Pipeline._attempt, begin.begin
    flying: list[pipeline.Pipeline] = []
    start = pipeline.Pipeline._start

    async def start_and_remember(self: pipeline.Pipeline, *arguments: Any, **more: Any) -> Any:
        flying[:] = [self]
        return await start(self, *arguments, **more)

    async def begin_and_send(tx: Tx, *arguments: Any, **more: Any) -> begin.Beginning:
        beginning = await plain(tx, *arguments, **more)
        known = await flying[0]._directory_now()
        for one in beginning.begun:
            where = route(one.delivery, known, None, None)
            assert isinstance(where, Route)
            page = pipeline._page(one, where)
            sent[page.id, page.attempt] = await attempt(flying[0], page)
        return beginning

    async def sent_already(_: pipeline.Pipeline, page: Page) -> Outcome:
        return sent.pop((page.id, page.attempt))

    monkeypatch.setattr(pipeline.Pipeline, "_start", start_and_remember)
    monkeypatch.setattr(pipeline.Pipeline, "_attempt", sent_already)
    monkeypatch.setattr(pipeline, "begin", begin_and_send)
    monkeypatch.setattr(transport, "_refuse_in_transaction", lambda: None)
    assert "I6" in await broken_by(sqlite_stage, Kind.KILL_BEFORE, "commit")


async def test_an_unfenced_record_is_caught(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the fence, the late result of a worker that hung ends an attempt a second time (I8)."""

    async def no_fence(tx: Tx, judged: Sequence[Recorded]) -> list[Recorded]:
        await leases.end(tx, [leases.End(one.ended.begun.timer) for one in judged])
        await timers.arm(tx, ORG, tries_again(judged))
        return [*judged]

    monkeypatch.setattr(record, "_fenced", no_fence)
    assert "I8" in await broken_by(stage, Kind.HANG, "taken")


async def test_a_claim_that_does_not_restate_its_predicate_is_caught(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Matched by id alone, one timer is worked by two workers at once (I8, F-33)."""
    table = schema.timers
    by_id = (
        sa.update(table)
        .where(any_of(table.c.id, given_list("ids", table.c.id)))
        .values(
            lease_until=given("new_lease", table.c.lease_until),
            lease_owner=given("new_owner", table.c.lease_owner),
            attempt=table.c.attempt + 1,
        )
        .returning(*timers.COLUMNS)
    )
    monkeypatch.setattr(timers, "_CLAIM", by_id)
    assert "I8" in await broken_by(stage, Kind.RIVAL, "read SELECT deliveries.id")


# --- mistakes that show without a fault ----------------------------------------------------------------


async def test_a_missing_epoch_check_is_caught(sqlite_stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer of another epoch that is left behind does nothing, because its epoch is looked at (I7)."""

    async def disarm_nothing(*_: Any) -> None: ...

    monkeypatch.setattr(timers, "disarm", disarm_nothing)
    run = await sqlite_stage.tell(story=taken_back)
    assert "I7" not in run.names, "the epoch alone keeps it still"
    ruled = escalate.ruled

    def ruled_blindly(timer: Timer, incident: Any, *more: Any) -> Any:
        return ruled(replace(timer, epoch=incident.fate.epoch), incident, *more)

    monkeypatch.setattr(escalate, "ruled", ruled_blindly)
    run = await sqlite_stage.tell(story=taken_back)
    assert "I7" in run.names


async def test_an_ack_that_cancels_nothing_is_caught(
    sqlite_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was to follow the first message still waits for its turn after the ack (I5)."""

    async def cancel_nothing(*_: Any) -> list[int]:
        return []

    monkeypatch.setattr(deliveries, "cancel", cancel_nothing)
    run = await sqlite_stage.tell(story=early_ack)
    assert run.names == {"I5"}


async def test_a_page_after_the_ack_is_caught(sqlite_stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """And if nobody asks whether it is still wanted, it is sent (I5)."""

    async def cancel_nothing(*_: Any) -> list[int]:
        return []

    monkeypatch.setattr(deliveries, "cancel", cancel_nothing)
    monkeypatch.setattr(begin, "still_wanted", lambda *_: None)
    run = await sqlite_stage.tell(story=early_ack)
    assert any("was begun" in words for words in run.broken)
    assert run.names == {"I5"}


async def test_a_ladder_that_stops_at_a_dead_level_is_caught(
    sqlite_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody of a level can be reached, and the next one waits for its time (I10)."""

    async def stay(*_: Any) -> None: ...

    monkeypatch.setattr(death, "go_on", stay)
    run = await sqlite_stage.tell(story=dead_end)
    assert "I10" in run.names


async def test_a_silent_death_is_caught(sqlite_stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message is given up, and nobody is told (I10)."""

    async def silent(*_: Any) -> None: ...

    monkeypatch.setattr(death, "raise_alarm", silent)
    run = await sqlite_stage.tell(story=dead_end)
    assert run.names == {"I10"}


async def test_a_change_without_its_line_is_caught(
    sqlite_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fate of an incident changes, and its timeline does not say so (I12)."""
    append = journal.append_timeline

    async def forget_the_ack(tx: Tx, org_id: int, rows: Sequence[Any], now: Any) -> None:
        await append(tx, org_id, [row for row in rows if row.kind != "acknowledged"], now)

    monkeypatch.setattr(journal, "append_timeline", forget_the_ack)
    run = await sqlite_stage.tell()
    assert "I12" in run.names
