"""The watch over the process: jumps of time, silent loops and a failing database are said, none is worked."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from engine import checks, pulse, watch
from engine.clock import Reading, monotonic
from engine.db import Database
from engine.errors import Unavailable
from engine.models import ORG
from engine.pulse import Pulse
from engine.store import hosts
from engine.watch import Watch
from tests.fakes import FakeClock
from tests.scenario.harness import Pager
from tests.scenario.sending import alarms, counted

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Machine:
    """Clocks in the test's hand; and what was said without the database."""

    def __init__(self) -> None:
        self.wall, self.monotonic, self.up = NOW, 100.0, 5_000.0
        self.said: list[tuple[str, str]] = []

    def pass_(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.monotonic += seconds
        self.up += seconds

    def read(self) -> Reading:
        return Reading(self.wall, self.monotonic, self.up)

    async def say(self, cause: str, text: str) -> bool:
        self.said.append((cause, text))
        return True


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def watching(pager: Pager, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Watch:
    app = pager.app
    # Why: the test's clock stands still in another year than PostgreSQL's.
    monkeypatch.setattr(checks, "MovableClock", FakeClock)
    return Watch(app.database, app.clock, app.nudge, Pulse(), machine.say, clocks=machine.read)


def kinds(watching: Watch) -> list[str]:
    return [jump.kind.value for jump in watching.look()]


async def test_a_clock_that_is_set_is_an_alarm(pager: Pager, watching: Watch, machine: Machine) -> None:
    """An hour forward, then an hour back: each is seen within a second, counted and said (F-24, F-25)."""
    before = counted("clock_jumps_total", kind="back")
    for hours, kind in ((1, "forward"), (-1, "back")):
        machine.pass_(1)
        machine.wall += timedelta(hours=hours)
        assert kinds(watching) == [kind]
        machine.pass_(1)
        assert kinds(watching) == []
        assert await watching.ask()
    texts = {text for text, _ in await alarms(pager)}
    assert {text.split(":")[0].split(".")[0] for text in texts} == {
        "The clock of this host moved forward by 3600 s",
        "The clock of this host moved back by 3600 s",
    }
    assert counted("clock_jumps_total", kind="back") == before + 1


async def test_a_suspend_and_a_stop_are_told_apart(watching: Watch, machine: Machine) -> None:
    """A host that slept, and a process that was stopped or starved: both are seen (F-27, F-32)."""
    machine.wall += timedelta(minutes=10)
    machine.up += 600
    machine.pass_(1)
    assert kinds(watching) == ["suspended"]
    machine.pass_(600)
    assert kinds(watching) == ["stalled"]


async def test_a_clock_that_is_disciplined_is_no_jump(watching: Watch, machine: Machine) -> None:
    """Jitter, slewing and the smear of a leap second are nobody's business (F-26)."""
    for n in range(100):
        machine.pass_(1)
        machine.wall += timedelta(milliseconds=300 if n % 2 else -500)
        assert kinds(watching) == []


async def test_a_loop_that_has_stopped_is_an_alarm(pager: Pager, watching: Watch) -> None:
    """Whoever runs Midwatch is told which loop has not ticked, once; the others tick on (F-40, B129)."""
    last = monotonic()
    watching.pulse.expect("fate", lambda: last)
    watching.pulse.expect("deliver", monotonic)
    assert await watching.alarm_silent() == []
    last -= 2 * pulse.SILENT.total_seconds()
    watching.pulse._loops["fate"].since = last
    for _ in range(2):
        assert await watching.alarm_silent() == ["fate"]
    assert counted("audit_findings", invariant="loop_silent") == 1
    texts = {text for text, _ in await alarms(pager)}
    assert texts == {"The loop fate has not ticked for too long: it stopped or fails."}
    await pager.app.worker.run_due()
    assert len(pager.silence_ops()) == 2


async def test_the_loops_are_not_blamed_for_a_stop_of_the_whole_process(
    watching: Watch, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After SIGSTOP for ten minutes nobody is silent; a loop that does not come back is (F-27)."""
    began = monotonic()
    watching.pulse.expect("fate", lambda: began)
    machine.pass_(600)
    monkeypatch.setattr(pulse, "monotonic", lambda: began + 601)
    assert kinds(watching) == ["stalled"]
    assert watching.pulse.silent() == []
    monkeypatch.setattr(pulse, "monotonic", lambda: began + 635)
    assert watching.pulse.silent() == ["fate"]


async def test_the_auditor_has_a_heartbeat_of_its_own(pager: Pager, monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit that has stopped is an alarm like any loop, and the watch itself is watched (B040)."""
    pager.app.sweeps.start()
    pager.app.sweeps.stop()
    pager.app.watch.pulse.expect(watch.NAME)
    began = monotonic()
    monkeypatch.setattr(pulse, "monotonic", lambda: began + 181)
    silent = set(await pager.app.watch.alarm_silent())
    assert {"audit", watch.NAME} <= silent
    assert any("The loop audit" in text for text, _ in await alarms(pager))


async def test_each_loop_exports_when_it_ticked(watching: Watch, clock: FakeClock) -> None:
    """The last tick is a metric, as a time by our clock (B129)."""
    watching.pulse.expect("exported", lambda: monotonic() - 20)
    watching.look()
    at = counted("loop_last_tick_seconds", loop="exported")
    assert at == pytest.approx(clock.now().timestamp() - 20, abs=1)


async def test_a_database_that_takes_nothing_is_said_without_it(
    pager: Pager, watching: Watch, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two commits in a row that fail are an alarm by a way of its own; one that works ends it (F-17)."""

    async def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pager.app.database, "write", full)
        assert not await watching.ask()
        assert machine.said == []
        assert not await watching.ask()
    assert [cause for cause, _ in machine.said] == ["database"]
    assert counted("database_up") == 0
    assert await watching.ask()
    assert counted("database_up") == 1
    assert len(machine.said) == 1


@pytest.mark.parametrize("works", [0, 1])
async def test_what_could_not_be_stored_is_said_later(
    pager: Pager, watching: Watch, machine: Machine, monkeypatch: pytest.MonkeyPatch, works: int
) -> None:
    """A jump while the database is away, or goes away just then, is an alarm when it is back."""
    machine.wall += timedelta(hours=1)
    machine.pass_(1)
    watching.look()
    write, left = pager.app.database.write, [None] * works

    async def going_away(*unit: Any, **rank: Any) -> Any:
        if not left:
            raise Unavailable
        left.pop()
        return await write(*unit, **rank)

    with monkeypatch.context() as patched, suppress(Unavailable):
        patched.setattr(pager.app.database, "write", going_away)
        assert not await watching.ask()
    assert await alarms(pager) == []
    assert await watching.ask()
    assert len(await alarms(pager)) == 2


async def test_it_runs_by_itself_and_survives_its_failures(
    pager: Pager, watching: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look that raises is logged, and the next one is made."""
    monkeypatch.setattr(watch, "SEEN_EVERY", timedelta(milliseconds=5))
    looks, thrice = [], asyncio.Event()

    async def broken(_: object) -> bool:
        looks.append(1)
        if len(looks) == 3:
            thrice.set()
        raise RuntimeError("a bug")

    monkeypatch.setattr(Watch, "ask", broken)
    watching.start()
    await asyncio.wait_for(thrice.wait(), 10)
    await watching.stop()
    assert watch.NAME in watching.pulse.ages()


async def test_clocks_that_differ_make_the_process_unready(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    """5 s apart is a metric, 30 s an alarm and no readiness: leases and due times are one clock's (F-23)."""
    database = Database(postgresql_url)
    async with database.snapshot() as tx:
        theirs = (await tx.execute(sa.select(sa.func.clock_timestamp()))).scalar_one()
    clock = FakeClock(theirs + timedelta(seconds=10))
    watching = Watch(database, clock, lambda: None, Pulse(), machine.say, clocks=machine.read)
    assert await watching.ask()
    assert 4 < counted("clock_skew_seconds") <= 10
    assert watching.unready() is None
    clock.move(seconds=80)
    assert await watching.ask(), "measured once a minute"
    assert watching.unready() is None
    monkeypatch.setattr(watch, "MEASURE_EVERY", timedelta())
    assert await watching.ask()
    assert "apart" in (watching.unready() or "")
    async with database.snapshot() as tx:
        rows = await tx.execute(sa.text("SELECT body FROM deliveries WHERE kind = 'ops'"))
        assert len(rows.all()) == 2
    await database.close()


async def test_a_host_leaves_word_on_a_file_and_takes_it_along(sqlite_url: str, machine: Machine) -> None:
    """While it works other hosts can see it; after an orderly end nobody waits for it."""
    database, clock = Database(sqlite_url), FakeClock()
    watching = Watch(database, clock, lambda: None, Pulse(), machine.say, clocks=machine.read)
    watching.start()
    await watching.ask()
    async with database.snapshot() as tx:
        assert await hosts.seen(tx, ORG) == {checks.this_host(): clock.now()}
    await watching.stop()
    async with database.snapshot() as tx:
        assert await hosts.seen(tx, ORG) == {}
    await database.close()
