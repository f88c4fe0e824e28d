"""midwatch.yaml into the directory and out again, on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from engine.config.form import Config
from engine.config.parse import parse_config
from engine.config.plan import Plan
from engine.contacts.contacts import Contacts
from engine.db import Database
from engine.directory import BY_CODE, BY_CONFIG, BY_PERSON, ContactMethod, Directory, Person
from engine.errors import BadConfig
from engine.models import ORG, Actor, Method, Urgency, Via
from engine.nudge import Nudge
from engine.pager.setup import Setup
from engine.schedule import people_at
from engine.schema import schedule_versions
from engine.store import contacts as rows
from engine.store import directory as store
from engine.store import policies
from engine.vault import Vault
from tests.fakes import FakeClock

DEMO = (Path(__file__).parents[2] / "bot" / "demo.yaml").read_text(encoding="utf-8")
VAULT = Vault("a key for tests")


@pytest.fixture
def setup(database: Database, clock: FakeClock) -> Setup:
    return Setup(database, clock, VAULT)


@pytest.fixture
def read(database: Database, clock: FakeClock) -> Reader:
    return Reader(database, clock)


class Reader:
    def __init__(self, database: Database, clock: FakeClock) -> None:
        self._database, self._clock = database, clock

    async def __call__(self) -> Directory:
        async with self._database.snapshot() as tx:
            return await store.read(tx, ORG, self._clock.now(), VAULT)

    async def person(self, name: str) -> Person:
        (found,) = [person for person in (await self()).people.values() if person.name == name]
        return found


async def apply(setup: Setup, text: str) -> Plan:
    return await setup.apply(parse_config(text, await setup.known()))


def edited(config: Config, name: str, **changes: object) -> Config:
    person = replace(config.people[name], **changes)  # type: ignore[arg-type]  # any field of a person
    return replace(config, people={**config.people, name: person})


async def test_the_demo_stands_as_written(setup: Setup, read: Reader, clock: FakeClock) -> None:
    """People, schedules, policy, service and fallback are there, numbers verified, names as ids."""
    plan = await apply(setup, DEMO)
    assert [str(change).split("\n")[0] for change in plan.changes] == [
        "+ person ana",
        "+ person ben",
        "+ person cho",
        "+ schedule payments-primary",
        "+ schedule payments-secondary",
        "+ policy payments",
        "+ service checkout",
        "+ fallback",
    ]
    directory = await read()
    ana, cho = await read.person("ana"), await read.person("cho")
    assert [(m.kind, m.usable) for m in ana.methods] == [
        (Method.SLACK, True),
        (Method.SMS, True),
        (Method.VOICE, True),
    ]
    assert [rule.delay for rule in ana.rules[Urgency.HIGH]] == [timedelta(minutes=m) for m in (0, 1, 3)]
    (policy,) = directory.policies.values()
    primary = next(s for s in directory.schedules.values() if s.name == "payments-primary")
    assert [target.ref for level in policy.levels for target in level.targets][::2] == [primary.id, cho.id]
    assert people_at(primary.schedule, clock.now()) == (str(ana.id),)
    (service,) = directory.services.values()
    assert (service.policy_id, service.channel) == (policy.id, "#payments")
    assert [target.ref for target in directory.fallback] == [cho.id]
    assert directory.admins == (cho.id,)


async def test_applying_again_changes_nothing(setup: Setup, read: Reader, clock: FakeClock) -> None:
    """The second time there is nothing to change: no version, no revision."""
    await apply(setup, DEMO)
    before = await read()
    clock.move(hours=1)
    plan = await apply(setup, DEMO)
    assert str(plan) == "nothing to change"
    after = await read()
    assert (after.rev, after.policies) == (before.rev, before.policies)


async def test_export_writes_the_same_file_back(setup: Setup) -> None:
    """What is exported equals what was applied, and applying it changes nothing."""
    await apply(setup, DEMO)
    exported = await setup.export()
    assert parse_config(exported) == parse_config(DEMO)
    assert (await apply(setup, exported)).changes == ()
    assert await setup.export() == exported


async def test_a_dry_run_changes_nothing(setup: Setup, read: Reader) -> None:
    """`plan` says what `apply` would do and leaves everything as it is."""
    plan = await setup.plan(parse_config(DEMO))
    assert len(plan.changes) == 8
    assert (await read()).people == {}


async def test_an_edited_policy_is_a_new_version(
    setup: Setup, read: Reader, database: Database, clock: FakeClock
) -> None:
    """What was in force yesterday stays what it was; the schedules are not touched."""
    await apply(setup, DEMO)
    before = await read()
    opened_at = clock.now()
    clock.move(days=1)
    plan = await apply(setup, DEMO.replace("timeout: 5m", "timeout: 6m"))
    (change,) = plan.changes
    assert (change.sign, change.noun, change.name) == ("~", "policy", "payments")
    (old,), (new,) = before.policies.values(), (await read()).policies.values()
    assert (old.id, new.levels[0].timeout) == (new.id, timedelta(minutes=6))
    async with database.snapshot() as tx:
        assert await policies.policy_version(tx, ORG, new.id, opened_at) == old
        assert await policies.policy_version(tx, ORG, new.id, clock.now()) == new


async def test_an_edited_schedule_leaves_the_past_alone(
    setup: Setup, read: Reader, database: Database, clock: FakeClock
) -> None:
    """Who was on call yesterday stays true after the turns have been exchanged."""
    await apply(setup, DEMO)
    yesterday = clock.now()
    clock.move(days=1)
    await apply(setup, DEMO.replace("users: [ana, ben]", "users: [ben, ana]"))
    ana, ben = (await read.person("ana")).id, (await read.person("ben")).id
    for at, on_call in ((yesterday, ana), (clock.now(), ben)):
        async with database.snapshot() as tx:
            found = (await store.read(tx, ORG, at, VAULT)).schedules
        primary = next(s for s in found.values() if s.name == "payments-primary")
        assert people_at(primary.schedule, at) == (str(on_call),)


async def test_where_a_schedule_is_shown_is_no_version_of_it(
    setup: Setup, read: Reader, database: Database
) -> None:
    """Channel, user group and topic are stored, exported and taken out; nobody's shift changed by them."""

    async def shown() -> tuple[str | None, str | None, bool]:
        (primary,) = [s for s in (await read()).schedules.values() if s.name == "payments-primary"]
        return primary.channel, primary.user_group, primary.topic

    async def versions() -> int:
        async with database.snapshot() as tx:
            return int(await tx.scalar(sa.select(sa.func.count()).select_from(schedule_versions)) or 0)

    await apply(setup, DEMO)
    before = await versions()
    config = parse_config(DEMO)
    form = config.schedules["payments-primary"]
    told = replace(form, channel="#payments", user_group="@payments-oncall", topic=True)
    plan = await setup.apply(replace(config, schedules={**config.schedules, form.name: told}))
    assert {'channel: none -> "#payments"', "topic: none -> true"} <= {
        detail.replace("'", '"') for change in plan.changes for detail in change.details
    }
    assert await shown() == ("#payments", "@payments-oncall", True)
    assert parse_config(await setup.export()).schedules[form.name] == told
    await apply(setup, DEMO)
    assert (await shown(), await versions()) == ((None, None, False), before)


async def test_a_contact_taken_out_is_disabled_and_comes_back(setup: Setup, read: Reader) -> None:
    """A number that left the file is not paged any more; written down again it is, as the same method."""
    await apply(setup, DEMO)
    config = parse_config(DEMO)
    sms_only = {Method.SMS: config.people["ana"].contact[Method.SMS]}
    rules = {Urgency.HIGH: config.people["ana"].rules[Urgency.HIGH][:2], Urgency.LOW: ()}
    plan = await setup.apply(edited(config, "ana", contact=sms_only, rules=rules))
    (change,) = plan.changes
    assert "voice: removed" in change.details
    assert "2025550143" not in str(plan)
    ana = await read.person("ana")
    assert [(m.kind, m.usable) for m in ana.methods][2] == (Method.VOICE, False)
    assert len(ana.rules[Urgency.HIGH]) == 2
    await setup.apply(config)
    again = await read.person("ana")
    assert [(m.id, m.usable) for m in again.methods] == [(m.id, True) for m in ana.methods]


async def test_a_new_number_takes_the_place_of_the_old(setup: Setup, read: Reader) -> None:
    """One number per method is in use; the rules go to the new one."""
    await apply(setup, DEMO)
    plan = await apply(setup, DEMO.replace('sms: "+12025550143"', 'sms: "+12025550199"'))
    assert "sms: changed" in plan.changes[0].details
    ana = await read.person("ana")
    usable = {method.id: method.address for method in ana.methods if method.usable}
    assert usable[ana.rules[Urgency.HIGH][1].method_id] == "+12025550199"
    assert "+12025550143" not in {m.address for m in ana.methods if m.usable and m.kind is Method.SMS}


async def test_what_the_file_does_not_name_is_left_and_said(setup: Setup, read: Reader) -> None:
    """A file about one person deletes nothing; it may use names that are there already."""
    await apply(setup, DEMO)
    plan = await apply(setup, "services: [{name: search, policy: payments}]\nfallback: [{person: ben}]")
    assert [change.noun for change in plan.changes] == ["service", "fallback"]
    assert "not in the file, left as it is: person ana" in str(plan)
    directory = await read()
    assert len(directory.people) == 3
    assert {service.name for service in directory.services.values()} == {"checkout", "search"}


async def test_an_emptied_fallback_is_a_line_of_its_own(setup: Setup, read: Reader) -> None:
    """Emptying the fallback list is shown as taking something away."""
    await apply(setup, DEMO)
    (change,) = (await apply(setup, "fallback: []")).changes
    assert str(change).startswith("- fallback\n    empty: nobody is paged")
    assert (await read()).fallback == ()


async def test_who_enrolled_in_slack_is_found_by_the_slack_id(setup: Setup, read: Reader) -> None:
    """The file gives a person of `/oncall me` their name; it does not make them twice."""
    enrolled = await setup.enrol("U0ANA", "ana.berg", "Europe/Berlin")
    plan = await apply(setup, DEMO)
    assert str(plan.changes[0]).startswith("~ person ana (was ana.berg)")
    assert (await read.person("ana")).id == enrolled.id
    assert "ana.berg" not in str(plan.left)


async def test_a_slack_id_of_somebody_else_is_a_mistake(setup: Setup) -> None:
    """Two people cannot share a Slack user, and the sentence says whose it is."""
    await apply(setup, DEMO)
    with pytest.raises(BadConfig, match=r"people\[1\].slack: U0BEN is ben's"):
        await apply(setup, "people: [{name: ana, slack: U0BEN}]")


async def test_two_people_may_exchange_their_slack_ids(setup: Setup, read: Reader) -> None:
    """A mix-up is repaired by one apply."""
    await apply(setup, DEMO)
    mixed = DEMO.replace("U0ANA", "U0XXX").replace("U0BEN", "U0ANA").replace("U0XXX", "U0BEN")
    await apply(setup, mixed)
    assert [(await read.person(name)).slack_user_id for name in ("ana", "ben")] == ["U0BEN", "U0ANA"]
    assert (await apply(setup, mixed)).changes == ()


async def test_somebody_deactivated_comes_back_with_the_file(setup: Setup, read: Reader) -> None:
    """Writing a person down again makes them active again, the same person as before."""
    await apply(setup, DEMO)
    ben = await read.person("ben")
    assert await setup.deactivate(ben.id)
    assert not (await read.person("ben")).active
    assert str((await apply(setup, DEMO)).changes[0]) == "+ person ben"
    assert await read.person("ben") == ben


async def test_an_admin_by_setting_stays_one(database: Database, clock: FakeClock, read: Reader) -> None:
    """MIDWATCH_ADMINS wins over a file that does not say admin, without a change each time."""
    setup = Setup(database, clock, VAULT, admins=["U0BEN"])
    await apply(setup, DEMO)
    assert (await read.person("ben")).admin
    assert (await apply(setup, DEMO)).changes == ()
    assert await setup.mark_admins() == 0


# --- what is the file's, and what is the person's ------------------------------------------------------

OWN, CLI = "+12025550177", Actor("root", Via.CLI)


@pytest.fixture
def contacts(database: Database, clock: FakeClock) -> Contacts:
    return Contacts(database, clock, VAULT, Nudge(database))


async def of_ana(read: Reader, number: str) -> ContactMethod | None:
    return next((one for one in (await read.person("ana")).methods if one.address == number), None)


async def test_a_number_that_a_person_added_stays_and_is_not_exported(
    setup: Setup, read: Reader, contacts: Contacts, database: Database, clock: FakeClock
) -> None:
    """The file does not name it, so it neither changes nor removes it; nor does it read like a difference."""
    await apply(setup, DEMO)
    exported = await setup.export()
    added = await contacts.add((await read.person("ana")).id, Method.SMS, OWN, CLI)
    await database.write(lambda tx: rows.mark_verified(tx, ORG, [added.id], BY_CODE, clock.now()))
    assert await setup.export() == exported
    assert (await apply(setup, DEMO)).changes == ()
    await apply(setup, DEMO.replace('sms: "+12025550143"', 'sms: "+12025550199"'))
    kept = await of_ana(read, OWN)
    assert kept is not None
    assert (kept.usable, kept.in_file, kept.verified_by) == (True, False, BY_CODE)


async def test_a_number_that_the_file_names_too_stays_when_it_does_no_more(
    setup: Setup, read: Reader, contacts: Contacts, database: Database, clock: FakeClock
) -> None:
    """Whoever proved it by a code keeps it; one that only the file vouched for is off."""
    await apply(setup, DEMO)
    added = await contacts.add((await read.person("ana")).id, Method.SMS, OWN, CLI)
    await database.write(lambda tx: rows.mark_verified(tx, ORG, [added.id], BY_CODE, clock.now()))
    await apply(setup, DEMO.replace('sms: "+12025550143"', f'sms: "{OWN}"'))
    named, former = await of_ana(read, OWN), await of_ana(read, "+12025550143")
    assert named is not None
    assert former is not None
    assert (named.id, named.in_file, named.verified_by) == (added.id, True, BY_CODE)
    await apply(setup, DEMO)
    again = await of_ana(read, OWN)
    assert again is not None
    assert (again.usable, again.in_file) == (True, False)
    assert OWN not in await setup.export()


async def test_rules_of_a_persons_own_stay_while_the_file_gives_none(
    setup: Setup, read: Reader, contacts: Contacts
) -> None:
    """A file with rules takes them over, and says so in its plan; taken out, the usual order is back."""
    without = parse_config(DEMO)
    without = edited(without, "ana", rules=None)
    await setup.apply(without)
    ana = await read.person("ana")
    assert (ana.rules, ana.rules_by) == ({}, "")
    (voice,) = [one.id for one in ana.methods if one.kind is Method.VOICE]
    await contacts.set_rules(ana.id, Urgency.HIGH, [(voice, timedelta(0))], CLI)
    assert (await setup.apply(without)).changes == ()
    own = await read.person("ana")
    assert (own.rules_by, len(own.rules[Urgency.HIGH])) == (BY_PERSON, 1)
    assert parse_config(await setup.export()) == without
    plan = await apply(setup, DEMO)
    assert any(detail.startswith("rules: none -> ") for detail in plan.changes[0].details)
    given = await read.person("ana")
    assert (given.rules_by, len(given.rules[Urgency.HIGH])) == (BY_CONFIG, 3)
    await setup.apply(without)
    back = await read.person("ana")
    assert (back.rules, back.rules_by) == ({}, "")


async def test_a_number_of_the_file_that_its_person_removed_comes_back_with_it(
    setup: Setup, read: Reader, contacts: Contacts
) -> None:
    """As a new one, since the address of the other is forgotten; the plan says what it does."""
    await apply(setup, DEMO)
    before = await of_ana(read, "+12025550143")
    assert before is not None
    said = await contacts.remove(before.id, CLI)
    assert said[-1] == "midwatch.yaml names it still: the next `midwatch apply` brings it back."
    assert await of_ana(read, "+12025550143") is not None, "the call to the same number is another method"
    plan = await apply(setup, DEMO)
    assert "sms: added" in plan.changes[0].details
    assert (await apply(setup, DEMO)).changes == ()
    assert len((await read.person("ana")).rules[Urgency.HIGH]) == 3
