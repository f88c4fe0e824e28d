"""Everything that asks who is on call asks one resolver, and sees an edit at once."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from engine.config.parse import parse_config
from engine.db import Database
from engine.directory import NamedSchedule
from engine.models import Actor, Via
from engine.pager.setup import Setup
from engine.rota.roster import Roster
from engine.schedule import people_at, shifts
from engine.vault import Vault
from tests.fakes import FakeClock
from tests.scenario.harness import Pager

DEMO = (Path(__file__).parents[2] / "bot" / "demo.yaml").read_text(encoding="utf-8")
VAULT = Vault("a key for tests")
HOUR = timedelta(hours=1)
CHO = Actor("cho", Via.CLI)


@pytest.fixture
async def setup(database: Database, clock: FakeClock) -> Setup:
    setup = Setup(database, clock, VAULT)
    await setup.apply(parse_config(DEMO))
    return setup


def another_process(database: Database, clock: FakeClock) -> Roster:
    return Roster(database, clock, VAULT)


async def primary(roster: Roster) -> NamedSchedule:
    found = (await roster.directory()).schedules.values()
    return next(named for named in found if named.name == "payments-primary")


async def override(roster: Roster, name: str, start: datetime, end: datetime) -> int:
    people = (await roster.directory()).people.values()
    person_id = next(person.id for person in people if person.name == name)
    schedule_id = (await primary(roster)).id
    done = await roster.overrides.set(
        schedule_id=schedule_id, person_id=person_id, start_at=start, end_at=end, actor=CHO
    )
    return done.override.id


async def test_what_was_worked_out_outlives_another_reading(
    database: Database, clock: FakeClock, setup: Setup
) -> None:
    """The directory is read again after a minute and after an edit of something else: the schedule that
    is as it was is the very same value, with all that is known about it."""
    roster = another_process(database, clock)
    before = (await primary(roster)).schedule
    people_at(before, clock.now())
    clock.move(minutes=2)
    assert (await primary(roster)).schedule is before
    await setup.apply(parse_config(DEMO.replace("timeout: 5m", "timeout: 6m")))
    assert (await primary(roster)).schedule is before
    assert before.worked_out


async def test_an_edit_and_an_override_are_seen_in_every_process(
    database: Database, clock: FakeClock, setup: Setup
) -> None:
    """Whoever had worked the old schedule out answers by the new one, in this process and in another."""
    here, there = another_process(database, clock), another_process(database, clock)
    now, year = clock.now(), timedelta(days=365)

    async def on_call() -> list[list[str]]:
        answers = []
        for roster in (here, there):
            directory = await roster.directory()
            schedule = (await primary(roster)).schedule
            people = people_at(schedule, now)
            assert shifts(schedule, now, now + year)[0].people == people
            answers.append([directory.people[int(user)].name for user in people])
        return answers

    assert await on_call() == [["ana"], ["ana"]]
    placed = await override(here, "cho", now, now + HOUR)
    assert await on_call() == [["cho"], ["cho"]]
    await there.overrides.cancel(placed, CHO)
    assert await on_call() == [["ana"], ["ana"]]
    await setup.apply(parse_config(DEMO.replace("users: [ana, ben]", "users: [ben, ana]")))
    assert await on_call() == [["ben"], ["ben"]]


async def test_an_override_is_the_same_for_whoever_asks(any_database_url: str, clock: FakeClock) -> None:
    """Saved now, it is in the answer of `who`, in that of a restarted process, and pages whom it names
    (B071, grafana/oncall#1296; B078, OneUptime/oneuptime#2086, #3411)."""
    pager = await Pager(any_database_url, clock).start()
    people = {p.name: p.id for p in (await pager.app.roster.directory()).people.values()}
    now = clock.now()
    primary = (await pager.app.roster.who())[0].schedule_id
    await pager.app.roster.overrides.set(
        schedule_id=primary, person_id=people["bob"], start_at=now, end_at=now + HOUR, actor=CHO
    )
    said = (await pager.app.roster.who())[0]
    assert ([p.name for p in said.people], said.until) == (["bob"], now + HOUR)
    await pager.restart()
    assert (await pager.app.roster.who())[0].people == said.people
    await pager.alert("db-1 is down")
    pager.expect_page("bob", via="slack")
    await pager.close()
