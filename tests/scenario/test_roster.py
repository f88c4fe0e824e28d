"""Who is on call, and what an override does to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from engine.config.parse import parse_config
from engine.db import Database
from engine.errors import BadInput, NotFound
from engine.models import Actor, Via
from engine.pager.setup import Setup
from engine.rota.on_call import OnCallNow
from engine.rota.roster import Roster
from engine.vault import Vault
from tests.fakes import FakeClock

DEMO = (Path(__file__).parents[2] / "bot" / "demo.yaml").read_text(encoding="utf-8")
VAULT = Vault("a key for tests")
HOUR = timedelta(hours=1)
MONDAY = datetime(2026, 3, 9, 8, 0, tzinfo=UTC)  # 09:00 in Berlin: the next hand-over after the clock's start


@pytest.fixture
async def setup(database: Database, clock: FakeClock) -> Setup:
    setup = Setup(database, clock, VAULT)
    await setup.apply(parse_config(DEMO))
    return setup


@pytest.fixture
def roster(database: Database, clock: FakeClock, setup: Setup) -> Roster:
    return Roster(database, clock, VAULT, fallback_urls=["ntfy://example/ops"])


async def ids(roster: Roster) -> dict[str, int]:
    return {person.name: person.id for person in (await roster.directory()).people.values()}


async def actor(roster: Roster, name: str) -> Actor:
    return Actor(name, Via.SLACK_COMMAND, (await ids(roster))[name])


async def primary(roster: Roster, at: datetime | None = None) -> OnCallNow:
    (found,) = [each for each in await roster.who(at) if each.schedule == "payments-primary"]
    return found


def names(on_call: OnCallNow) -> tuple[list[str], list[str]]:
    return [p.name for p in on_call.people], [p.name for p in on_call.next_people]


async def test_everybody_sees_who_is_on_call_until_when_and_who_is_next(roster: Roster) -> None:
    """Each schedule, by name, with the turn's bounds and the person after it."""
    now = await primary(roster)
    assert names(now) == (["ana"], ["ben"])
    assert (now.since, now.until, now.next_at) == (MONDAY - 7 * 24 * HOUR, MONDAY, MONDAY)
    assert "weekly" in now.reason
    assert "ana" in now.reason
    assert [each.schedule for each in await roster.who()] == ["payments-primary", "payments-secondary"]


async def test_an_override_takes_over_at_once_and_ends(roster: Roster, clock: FakeClock) -> None:
    """`/override @ben 2h` replaces whoever is on call first, for two hours."""
    who = await ids(roster)
    done = await roster.overrides.set(
        schedule_id=(await primary(roster)).schedule_id,
        person_id=who["ben"],
        start_at=clock.now(),
        end_at=clock.now() + 2 * HOUR,
        actor=await actor(roster, "cho"),
    )
    assert (done.schedule, [p.name for p in done.replaced]) == ("payments-primary", ["ana"])
    now = await primary(roster)
    assert names(now) == (["ben"], ["ana"])
    assert (now.since, now.until) == (clock.now(), clock.now() + 2 * HOUR)
    clock.move(hours=2)
    assert names(await primary(roster))[0] == ["ana"]


async def test_a_cancelled_override_is_as_if_it_had_not_been(roster: Roster, clock: FakeClock) -> None:
    """Cancelled, it is listed no more and the turn is back; twice is told."""
    who = await ids(roster)
    cho = await actor(roster, "cho")
    done = await roster.overrides.set(
        schedule_id=(await primary(roster)).schedule_id,
        person_id=who["ben"],
        start_at=clock.now(),
        end_at=clock.now() + HOUR,
        actor=cho,
    )
    assert [each.id for each in await roster.overrides.listed()] == [done.override.id]
    assert await roster.overrides.listed(done.override.schedule_id + 1) == []
    assert await roster.overrides.cancel(done.override.id, cho) == done.override
    assert names(await primary(roster))[0] == ["ana"]
    assert await roster.overrides.listed() == []
    with pytest.raises(NotFound):
        await roster.overrides.cancel(done.override.id, cho)


@pytest.mark.parametrize(
    ("start", "end", "sentence"), [(1, 1, "ends after"), (2, 1, "ends after"), (-2, -1, "over already")]
)
async def test_an_override_of_no_time_is_refused(
    roster: Roster, clock: FakeClock, start: int, end: int, sentence: str
) -> None:
    """An override ends after it begins, and not in the past; nothing is stored otherwise."""
    with pytest.raises(BadInput, match=sentence):
        await roster.overrides.set(
            schedule_id=(await primary(roster)).schedule_id,
            person_id=(await ids(roster))["ben"],
            start_at=clock.now() + start * HOUR,
            end_at=clock.now() + end * HOUR,
            actor=await actor(roster, "cho"),
        )
    assert await roster.overrides.listed() == []


async def test_only_people_who_are_here_can_take_over(roster: Roster, setup: Setup, clock: FakeClock) -> None:
    """Somebody unknown, somebody deactivated and an unknown schedule are refused by a sentence."""
    who, cho = await ids(roster), await actor(roster, "cho")
    await setup.deactivate(who["ben"])
    named = (await primary(roster)).schedule_id
    span = {"start_at": clock.now(), "end_at": clock.now() + HOUR, "actor": cho}
    with pytest.raises(BadInput, match="ben was deactivated"):
        await roster.overrides.set(schedule_id=named, person_id=who["ben"], **span)
    with pytest.raises(NotFound, match="person"):
        await roster.overrides.set(schedule_id=named, person_id=999, **span)
    with pytest.raises(NotFound, match="schedule"):
        await roster.overrides.set(schedule_id=999, person_id=who["cho"], **span)
    with pytest.raises(BadInput, match="cover"):
        await roster.overrides.set(schedule_id=named, person_id=who["cho"], kind="cover", **span)


async def test_where_there_are_several_schedules_it_asks(roster: Roster, clock: FakeClock) -> None:
    """Nobody is put on call by a guess: without a schedule the question names them all, whoever asks."""
    who = await ids(roster)
    span = {"start_at": clock.now(), "end_at": clock.now() + HOUR, "person_id": who["cho"]}
    for name in ("cho", "ana"):
        with pytest.raises(BadInput, match="Say which schedule: payments-primary, payments-secondary"):
            await roster.overrides.set(schedule_id=None, actor=await actor(roster, name), **span)
    assert await roster.overrides.listed() == []


async def test_an_override_lasts_a_year_at_most(roster: Roster, clock: FakeClock) -> None:
    """However it comes in: a slip in the year would put somebody on call for good."""
    span = {"start_at": clock.now(), "end_at": clock.now() + 367 * 24 * HOUR}
    named = (await primary(roster)).schedule_id
    with pytest.raises(BadInput, match="a year at most"):
        await roster.overrides.set(
            schedule_id=named, person_id=(await ids(roster))["ben"], actor=await actor(roster, "cho"), **span
        )
    assert await roster.overrides.listed() == []


async def test_add_and_cover_replace_whom_they_say(roster: Roster, clock: FakeClock) -> None:
    """`add` joins and replaces nobody; `cover` takes one person's place."""
    who, cho = await ids(roster), await actor(roster, "cho")
    named = (await primary(roster)).schedule_id
    span = {"start_at": clock.now(), "end_at": clock.now() + HOUR, "actor": cho, "schedule_id": named}
    added = await roster.overrides.set(person_id=who["cho"], kind="add", **span)
    assert added.replaced == ()
    assert names(await primary(roster))[0] == ["ana", "cho"]
    covered = await roster.overrides.set(person_id=who["ben"], kind="cover", covers_id=who["ana"], **span)
    assert [person.name for person in covered.replaced] == ["ana"]
    assert names(await primary(roster))[0] == ["ben", "cho"]


async def test_the_past_is_asked_with_the_schedule_of_then(
    roster: Roster, setup: Setup, clock: FakeClock
) -> None:
    """`who --at` last week does not know the edit of today; before the first version there is nothing."""
    then = clock.now()
    clock.move(days=1)
    await setup.apply(parse_config(DEMO.replace("users: [ana, ben]", "users: [cho]")))
    assert names(await primary(roster))[0] == ["cho"]
    assert names(await primary(roster, then))[0] == ["ana"]
    assert await roster.who(then - HOUR) == []


async def test_the_directory_is_read_again_only_when_it_moved(
    roster: Roster, setup: Setup, database: Database, clock: FakeClock
) -> None:
    """While nothing changes it costs one statement; a change or a minute later it is read anew."""
    first = await roster.directory()
    assert list(first.fallback_urls) == ["ntfy://example/ops"]
    statements: list[str] = []

    def count(_c: sa.Connection, _cu: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    event.listen(database._looker.sync_engine, "before_cursor_execute", count)  # nothing public counts reads
    assert await roster.directory() is first
    assert len([s for s in statements if s.lstrip().upper().startswith("SELECT")]) == 1
    await setup.enrol("U0DAN", "dan", "UTC")
    second = await roster.directory()
    assert second.rev > first.rev
    clock.move(minutes=1)
    assert await roster.directory() is not second
