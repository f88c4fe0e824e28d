"""Making, editing and deleting a schedule: versions, who may, what is told, and who came first."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from engine.config.parse import parse_config
from engine.db import Database
from engine.errors import BadInput, NotFound, Overtaken, Refused
from engine.models import ORG, Actor, DeliveryKind, Via
from engine.pager.setup import Setup
from engine.rota.drafts import KEPT_FOR, Drafts
from engine.rota.roster import Roster
from engine.rota.schedules import Schedules, Wanted
from engine.schedule import Schedule, parse_schedule
from engine.schema import deliveries, schedule_versions
from engine.vault import Vault
from tests.fakes import FakeClock

DEMO = (Path(__file__).parents[2] / "bot" / "demo.yaml").read_text(encoding="utf-8")
VAULT = Vault("a key for tests")
DAY = timedelta(days=1)


@pytest.fixture
async def setup(database: Database, clock: FakeClock) -> Setup:
    setup = Setup(database, clock, VAULT)
    await setup.apply(parse_config(DEMO))
    return setup


@pytest.fixture
def schedules(setup: Setup) -> Schedules:
    return setup.schedules


@pytest.fixture
def roster(database: Database, clock: FakeClock) -> Roster:
    return Roster(database, clock, VAULT)


async def someone(roster: Roster, name: str) -> Actor:
    people = (await roster.directory()).people.values()
    return Actor(name, Via.SLACK_COMMAND, next(person.id for person in people if person.name == name))


async def schedule_id(roster: Roster, name: str = "payments-primary") -> int:
    return next(one.id for one in (await roster.directory()).schedules.values() if one.name == name)


async def weekly(roster: Roster, *names: str) -> Schedule:
    users = [str((await someone(roster, name)).person_id) for name in names]
    layer = {"users": users, "start": "2026-01-05T09:00", "rotation": {"every": 1, "unit": "week"}}
    return parse_schedule({"timezone": "Europe/Berlin", "layers": [layer]})


async def on_call(roster: Roster, name: str, at: object = None) -> list[str]:
    rows = await roster.who(at)  # type: ignore[arg-type]  # an instant, or now
    return [person.name for row in rows if row.schedule == name for person in row.people]


async def told(database: Database) -> list[tuple[str, str]]:
    async with database.snapshot() as tx:
        rows = await tx.execute(
            sa.select(deliveries.c.address, deliveries.c.body)
            .where(deliveries.c.org_id == ORG, deliveries.c.kind == DeliveryKind.NOTICE.value)
            .order_by(deliveries.c.id)
        )
        return [(row.address, row.body["text"]) for row in rows]


async def test_a_schedule_is_made_and_in_force_at_once(schedules: Schedules, roster: Roster) -> None:
    """Whoever is a person may make one; it answers who is on call from that moment, and not before."""
    ben = await someone(roster, "ben")
    await schedules.create("search", Wanted(await weekly(roster, "ben"), "#search"), ben)
    assert await on_call(roster, "search") == ["ben"]
    named = next(one for one in (await roster.directory()).schedules.values() if one.name == "search")
    assert named.channel == "#search"


async def test_two_schedules_of_one_name_are_refused(schedules: Schedules, roster: Roster) -> None:
    """In any case of letters, and when both are made in the same moment."""
    ben = await someone(roster, "ben")
    wanted = Wanted(await weekly(roster, "ben"))
    with pytest.raises(BadInput, match="There is a schedule payments-primary already"):
        await schedules.create("Payments-Primary", wanted, ben)
    both = await asyncio.gather(
        *(schedules.create("search", wanted, ben) for _ in range(2)), return_exceptions=True
    )
    assert sorted(type(one).__name__ for one in both) == ["BadInput", "int"]


async def test_an_edit_holds_from_now_on_and_the_past_stays(
    schedules: Schedules, roster: Roster, clock: FakeClock, database: Database
) -> None:
    """A version is appended: yesterday's answer is yesterday's (grafana/oncall#4548)."""
    ana, known = await someone(roster, "ana"), await schedule_id(roster)
    before = clock.now()
    clock.move(days=1)
    current = await schedules.open(known, ana)
    changes = await schedules.edit(known, current.version_id, Wanted(await weekly(roster, "cho", "ben")), ana)
    assert await on_call(roster, "payments-primary") == ["cho"]
    assert await on_call(roster, "payments-primary", before) == ["ana"]
    assert {len(one.before) for one in changes} == {1}
    async with database.snapshot() as tx:
        rows = await tx.execute(
            sa.select(schedule_versions.c.created_by)
            .where(schedule_versions.c.schedule_id == known)
            .order_by(schedule_versions.c.id)
        )
        assert [row.created_by for row in rows] == ["", "ana"]


async def test_overrides_outlive_an_edit(schedules: Schedules, roster: Roster, clock: FakeClock) -> None:
    """Who was put on call for an hour stays so, and the preview knows it."""
    ana, known = await someone(roster, "ana"), await schedule_id(roster)
    cho = await someone(roster, "cho")
    now = clock.now()
    await roster.overrides.set(
        schedule_id=known, person_id=cho.person_id or 0, start_at=now, end_at=now + 60 * DAY, actor=ana
    )
    current = await schedules.open(known, ana)
    wanted = await weekly(roster, "ben")
    assert await schedules.preview(known, wanted) == []
    await schedules.edit(known, current.version_id, Wanted(wanted), ana)
    assert await on_call(roster, "payments-primary") == ["cho"]


async def test_only_admins_and_those_on_it_may_edit(schedules: Schedules, roster: Roster) -> None:
    """Cho is an admin and not on it, ben is on it; whoever is neither reads the rule."""
    known = await schedule_id(roster)
    for name in ("ana", "ben", "cho"):
        await schedules.open(known, await someone(roster, name))
    secondary = await schedule_id(roster, "payments-secondary")
    ana = await someone(roster, "ana")
    current = await schedules.current(secondary)
    rule = "Only admins and the people on payments-secondary may change it"
    with pytest.raises(Refused, match=rule):
        await schedules.open(secondary, ana)
    with pytest.raises(Refused, match=rule):
        await schedules.edit(secondary, current.version_id, Wanted(current.plain), ana)
    with pytest.raises(Refused, match=rule):
        await schedules.delete(secondary, ana)


async def test_of_two_edits_that_began_together_the_second_is_told(
    schedules: Schedules, roster: Roster, clock: FakeClock
) -> None:
    """Whoever saves later overwrites nothing: they hear who was first."""
    known = await schedule_id(roster)
    ana, ben = await someone(roster, "ana"), await someone(roster, "ben")
    began = (await schedules.open(known, ana)).version_id
    await schedules.edit(known, began, Wanted(await weekly(roster, "ben", "ana")), ben)
    with pytest.raises(Overtaken, match="payments-primary was changed by ben meanwhile"):
        await schedules.edit(known, began, Wanted(await weekly(roster, "ana")), ana)
    assert await on_call(roster, "payments-primary") == ["ben"]


async def test_a_file_that_was_applied_meanwhile_is_told_too(
    setup: Setup, schedules: Schedules, roster: Roster
) -> None:
    """midwatch.yaml is one more who edits."""
    known, ana = await schedule_id(roster), await someone(roster, "ana")
    began = (await schedules.open(known, ana)).version_id
    await setup.apply(parse_config(DEMO.replace("users: [ana, ben]", "users: [ben, ana]")))
    with pytest.raises(Overtaken, match=r"payments-primary was changed by midwatch\.yaml meanwhile"):
        await schedules.edit(known, began, Wanted(await weekly(roster, "ana")), ana)


async def test_of_two_edits_in_the_same_moment_one_is_saved(schedules: Schedules, roster: Roster) -> None:
    """The version check is inside the transaction."""
    known = await schedule_id(roster)
    ana, ben = await someone(roster, "ana"), await someone(roster, "ben")
    began = (await schedules.open(known, ana)).version_id
    ended = await asyncio.gather(
        schedules.edit(known, began, Wanted(await weekly(roster, "ana", "ben")), ana),
        schedules.edit(known, began, Wanted(await weekly(roster, "ben", "ana")), ben),
        return_exceptions=True,
    )
    assert sorted(type(one).__name__ for one in ended) == ["Overtaken", "list"]


async def test_an_edit_is_told_in_the_channel_with_what_it_changes(
    schedules: Schedules, roster: Roster, database: Database
) -> None:
    """Once, in the transaction that saves it: when, from whom, to whom."""
    known, ana = await schedule_id(roster), await someone(roster, "ana")
    wanted = Wanted(await weekly(roster, "ben", "ana"), "#payments")
    await schedules.edit(known, (await schedules.open(known, ana)).version_id, wanted, ana)
    ((channel, text),) = await told(database)
    assert channel == "#payments"
    assert text.startswith("📅 ana changed payments-primary (times in Europe/Berlin):")
    assert "ana → ben" in text
    assert "Mon 09 Mar 09:00" in text


async def test_a_schedule_that_a_policy_pages_is_not_deleted(schedules: Schedules, roster: Roster) -> None:
    """The refusal names the policy; a page must find its schedule."""
    with pytest.raises(Refused, match="payments-primary cannot be deleted: the policy payments pages it"):
        await schedules.delete(await schedule_id(roster), await someone(roster, "ana"))


async def test_a_deleted_schedule_is_gone_and_its_past_is_not(
    schedules: Schedules, roster: Roster, clock: FakeClock
) -> None:
    """It answers nobody any more; an edit of it says who deleted it; its name can be used again."""
    ben = await someone(roster, "ben")
    made = await schedules.create("search", Wanted(await weekly(roster, "ben")), ben)
    current = await schedules.open(made, ben)
    clock.move(days=1)
    assert await schedules.delete(made, ben) == "search"
    assert "search" not in [row.schedule for row in await roster.who()]
    for late in (schedules.open(made, ben), schedules.delete(made, ben)):
        with pytest.raises(NotFound, match="search was deleted by ben"):
            await late
    with pytest.raises(NotFound, match="search was deleted by ben"):
        await schedules.edit(made, current.version_id, Wanted(current.plain), ben)
    assert await schedules.create("search", Wanted(await weekly(roster, "ana")), ben) == made
    assert await on_call(roster, "search") == ["ana"]


async def test_a_schedule_that_never_was_is_not_found(schedules: Schedules, roster: Roster) -> None:
    """An id from a forged form leads nowhere."""
    with pytest.raises(NotFound):
        await schedules.open(999, await someone(roster, "cho"))


async def test_nobody_who_left_is_put_on_call(setup: Setup, roster: Roster) -> None:
    """A person deactivated since the form was opened is named."""
    ana = await someone(roster, "ana")
    wanted = Wanted(await weekly(roster, "ben"))
    await setup.deactivate((await someone(roster, "ben")).person_id or 0)
    with pytest.raises(BadInput, match="ben was deactivated"):
        await setup.schedules.create("search", wanted, ana)
    ghost = replace(await weekly(roster, "ana"), fallback="999")
    with pytest.raises(NotFound):
        await setup.schedules.create("search", Wanted(ghost), ana)


async def test_a_draft_is_its_writers_alone_and_grows_old(
    database: Database, setup: Setup, roster: Roster, clock: FakeClock
) -> None:
    """Kept with every change, read by nobody else, gone after two days."""
    drafts = Drafts(database, clock)
    ana, ben = [(await someone(roster, name)).person_id or 0 for name in ("ana", "ben")]
    begun = await drafts.begin(ana, "schedule", {"name": "one"})
    kept = await drafts.keep(ana, begun, {"name": "two"})
    assert (kept.rev, (await drafts.read(ana, begun.id)).body) == (2, {"name": "two"})
    for stranger in (drafts.read(ben, begun.id), drafts.keep(ben, kept, {})):
        with pytest.raises(NotFound, match="too old"):
            await stranger
    with pytest.raises(Overtaken, match="only the first counts"):
        await drafts.keep(ana, begun, {"name": "three"})
    clock.move(days=KEPT_FOR.days + 1)
    await drafts.begin(ben, "schedule", {})
    with pytest.raises(NotFound, match="too old"):
        await drafts.read(ana, begun.id)


async def test_an_edit_by_a_clock_that_is_behind_is_in_force_all_the_same(
    schedules: Schedules, roster: Roster, clock: FakeClock
) -> None:
    """Two workers never have one clock: whoever saves last has said who is on call."""
    cho = await someone(roster, "cho")
    one = await schedules.create("search", Wanted(await weekly(roster, "ben")), cho)
    clock.move(minutes=1)
    first = await schedules.current(one)
    await schedules.edit(one, first.version_id, Wanted(await weekly(roster, "ben", "cho")), cho)
    second = await schedules.current(one)
    clock.move(seconds=-3)
    await schedules.edit(one, second.version_id, Wanted(await weekly(roster, "cho")), cho)
    clock.move(minutes=5)
    assert await on_call(roster, "search") == ["cho"]
    assert (await schedules.current(one)).version_id > second.version_id
