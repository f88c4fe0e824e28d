"""The look ahead of each morning: told once, told again when it comes back, and never in the way."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from datetime import UTC, datetime, timedelta

import pytest

from engine import coverage
from engine.coverage import Finding, Membership
from engine.directory import Directory
from engine.models import ORG, Timer, TimerKind
from engine.rota.coverage import Coverage
from engine.rota.roster import Roster
from engine.schema import timers as timer_rows
from engine.store import findings, timers
from engine.vault import Vault
from tests.fakes import START
from tests.scenario.harness import CONFIG, Pager

OFFICE = CONFIG.replace(
    """  - name: primary
    timezone: UTC
    layers:
      - {name: week, users: [alice], start: "2026-01-05T09:00", rotation: {every: 1, unit: week}}
""",
    """  - name: primary
    timezone: America/New_York
    channel: "#payments"
    layers:
      - name: week
        users: [alice]
        start: "2026-01-05T09:00"
        rotation: {every: 1, unit: week}
        restrictions: [{days: [mon, tue, wed, thu, fri, sat, sun], from: "08:00", to: "20:00"}]
""",
)
COVERED = OFFICE.replace('from: "08:00", to: "20:00"', 'from: "00:00", to: "00:00"')


async def go(pager: Pager) -> int:
    """One round of the sweep that keeps timers abreast, without the reminders of shifts."""
    armed = await pager.app.sweeps.abreast.go()
    ids = list((await pager.app.roster.directory()).schedules)
    await pager.app.database.write(lambda tx: timers.disarm(tx, ORG, [TimerKind.SHIFT], ids))
    return armed


async def due(pager: Pager, kind: TimerKind = TimerKind.COVERAGE) -> list[datetime]:
    async with pager.app.database.snapshot() as tx:
        rows = await tx.execute(timer_rows.select().where(timer_rows.c.kind == kind.value))
        return [row.due_at for row in rows]


async def keys(pager: Pager) -> list[str]:
    async with pager.app.database.snapshot() as tx:
        return [found.key for found in await findings.read_findings(tx, ORG)]


async def test_a_new_schedule_is_looked_at_soon_and_then_each_morning(pager: Pager) -> None:
    """At 09:00 of its own zone, over the change of the clocks too."""
    await pager.configure(OFFICE)
    await go(pager)
    assert await due(pager) == [START + timedelta(seconds=30)]
    await pager.advance(minutes=1)
    assert await due(pager) == [datetime(2026, 3, 2, 14, 0, tzinfo=UTC)]
    pager.expect_message("channel", "#payments")
    await pager.advance(days=7)
    assert await due(pager) == [datetime(2026, 3, 9, 13, 0, tzinfo=UTC)]


async def test_a_finding_is_told_once_and_again_when_it_was_gone(pager: Pager) -> None:
    """In the schedule's channel, in words; each morning finds it again and says nothing."""
    await pager.configure(OFFICE)
    await go(pager)
    await pager.advance(minutes=1)
    told = pager.expect_message("channel", "#payments")
    assert "primary, the next 14 days (America/New_York)" in told.text
    assert "Nobody is on call Sun 01 Mar 20:00 to Mon 08:00, " in told.text
    await pager.advance(days=3)
    pager.expect_silence()
    assert await keys(pager) == ["gap:20:00-08:00"]
    await pager.configure(COVERED)
    await go(pager)
    await pager.advance(minutes=1)
    pager.expect_silence()
    assert await keys(pager) == []
    await pager.configure(OFFICE)
    await go(pager)
    await pager.advance(minutes=1)
    assert "Nobody is on call" in pager.expect_message("channel", "#payments").text


async def test_an_edit_is_looked_at_when_it_has_settled_and_not_before_each_other(pager: Pager) -> None:
    """Thirty seconds after the first of several; one look finds what they came to."""
    await pager.configure(OFFICE)
    await go(pager)
    await pager.advance(minutes=1)
    pager.expect_message("channel", "#payments")
    for config in (COVERED, OFFICE, COVERED):
        await pager.configure(config)
        await go(pager)
    assert await due(pager) == [pager.clock.now() + timedelta(seconds=30)]
    await pager.advance(minutes=1)
    assert await keys(pager) == []


async def test_without_a_channel_whoever_runs_midwatch_is_told(pager: Pager) -> None:
    """In the ops channel, and as no alarm."""
    await pager.configure(OFFICE.replace('    channel: "#payments"\n', ""))
    await go(pager)
    await pager.advance(minutes=1)
    assert "Nobody is on call" in pager.expect_message("channel", "#ops").text


async def test_somebody_who_was_deactivated_is_found_at_once(pager: Pager) -> None:
    """Not only the next morning: a change of people is an edit of every schedule."""
    await pager.configure(COVERED)
    await go(pager)
    await pager.advance(minutes=1)
    pager.expect_silence()
    alice = await pager.person("alice")
    assert alice.person_id is not None
    await pager.app.setup.deactivate(alice.person_id)
    await go(pager)
    await pager.advance(minutes=1)
    assert "alice was deactivated and is on call" in pager.expect_message("channel", "#payments").text


async def test_after_a_start_a_schedule_without_a_timer_gets_one_and_the_others_keep_theirs(
    pager: Pager,
) -> None:
    """However the timer was lost; a restart by itself looks at nothing anew."""
    await pager.configure(COVERED)
    await go(pager)
    await pager.advance(minutes=1)
    before = await due(pager)
    await pager.restart()
    await go(pager)
    assert await due(pager) == before
    (schedule_id,) = (await pager.app.roster.directory()).schedules
    await pager.app.database.write(lambda tx: timers.disarm(tx, ORG, [TimerKind.COVERAGE], [schedule_id]))
    await pager.restart()
    await go(pager)
    assert await due(pager) == [pager.clock.now() + timedelta(seconds=30)]


async def test_a_schedule_that_is_gone_is_looked_at_no_more(pager: Pager) -> None:
    """Its timer ends, and its findings are read no more."""
    timer = Timer(1, ORG, TimerKind.COVERAGE.value, 4711, START, 0, 0, 1, 0)
    roster = Roster(pager.app.database, pager.clock, Vault("a secret for tests only"))
    look = Coverage(pager.app.database, pager.app.nudge, roster).look
    assert await look(timer, START) is None


async def test_what_slack_does_not_say_today_is_not_told_again_tomorrow(pager: Pager) -> None:
    """Found while Slack answered, unknown while it does not, and the same when it answers again."""
    await pager.configure(COVERED)
    answers = [
        Membership(left={1}),
        Membership(unknown={1}),
        Membership(left={1}),
        Membership(),
        Membership(left={1}),
    ]
    asked: list[list[int]] = []

    async def ask(_directory: Directory, people: object) -> Membership:
        asked.append(list(people))  # type: ignore[call-overload]  # a sequence of ids
        return answers[len(asked) - 1]

    look = Coverage(pager.app.database, pager.app.nudge, pager.app.roster, ask).look
    (schedule_id,) = (await pager.app.roster.directory()).schedules
    told = []
    for _ in answers:
        await look(Timer(1, ORG, TimerKind.COVERAGE.value, schedule_id, START, 0, 0, 1, 0), pager.clock.now())
        await pager.advance(minutes=1)
        told.append(len(pager.pages()))
        pager._heard.clear()
    assert asked[0] == [1]
    assert told == [1, 0, 0, 0, 1]


async def test_threads_are_left_for_what_a_page_needs(pager: Pager, monkeypatch: pytest.MonkeyPatch) -> None:
    """At nine all schedules of a zone are looked at, and names of hosts are looked up in the same threads."""
    await pager.configure(OFFICE)
    at_once: list[int] = []
    running: set[int] = set()

    def looks(*_given: object, **_more: object) -> list[Finding]:
        running.add(threading.get_ident())
        with contextlib.suppress(threading.BrokenBarrierError):
            third.wait()
        at_once.append(len(running))
        running.discard(threading.get_ident())
        return []

    third = threading.Barrier(3, timeout=0.2)
    monkeypatch.setattr(coverage, "look_ahead", looks)
    look = Coverage(pager.app.database, pager.app.nudge, pager.app.roster).look
    one = next(iter((await pager.app.roster.directory()).schedules))
    timer = Timer(1, ORG, TimerKind.COVERAGE.value, one, START, 0, 0, 1, 0)
    await asyncio.gather(*(look(timer, START) for _ in range(6)))
    assert max(at_once) <= 2
