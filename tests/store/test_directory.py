"""The directory in SQL, on both databases: what is written is what is read."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from engine.db import Database, Tx
from engine.directory import (
    ContactRule,
    Level,
    OnExhaustion,
    Override,
    Policy,
    Service,
    Target,
    TargetKind,
)
from engine.errors import NotFound
from engine.models import ORG, Method, Urgency
from engine.schedule import people_at
from engine.schema import contact_methods
from engine.store import contacts, directory, keys, people, policies, schedules, services
from engine.store.contacts import UNREADABLE
from engine.store.people import PersonRow
from engine.vault import Vault
from tests.fakes import FakeClock

VAULT = Vault("a key for tests")
TIMES = 12  # PostgreSQL changes to a generic plan at the sixth execution on a connection

ANA = PersonRow("ana", "U0ANA", "Europe/Berlin", admin=False)
BEN = PersonRow("ben", None, "America/New_York", admin=True)


def weekly(*users: int) -> dict[str, Any]:
    layer = {
        "name": "primary",
        "users": [str(user) for user in users],
        "start": "2026-01-05T09:00",
        "rotation": {"every": 1, "unit": "week"},
    }
    return {"timezone": "Europe/Berlin", "layers": [layer], "overrides": [], "fallback": None}


def ladder(policy_id: int, *people_ids: int) -> Policy:
    return Policy(
        id=policy_id,
        version_id=0,
        name="payments",
        levels=tuple(Level((Target(TargetKind.PERSON, p),), timedelta(minutes=5)) for p in people_ids),
        repeat=1,
        on_exhaustion=OnExhaustion.REPEAT,
        ack_timeout=timedelta(minutes=30),
    )


async def add_person(tx: Tx, row: PersonRow, now: datetime, phone: str | None = None) -> int:
    person_id = await people.insert_person(tx, ORG, row, now)
    if phone:
        await save_sms(tx, person_id, phone, now)
    return person_id


async def save_sms(tx: Tx, person_id: int, phone: str, now: datetime) -> int:
    return await contacts.save_method(
        tx, ORG, person_id, Method.SMS, phone, vault=VAULT, verified_by="config", now=now
    )


async def test_an_empty_directory_is_read_as_empty(database: Database, clock: FakeClock) -> None:
    """Before anything is written there are no people, no services, and the revision is 0."""
    async with database.snapshot() as tx:
        found = await directory.read(tx, ORG, clock.now(), VAULT)
    assert (found.rev, found.people, found.services, found.policies, found.schedules) == (0, {}, {}, {}, {})
    assert found.fallback == ()


async def test_the_revision_moves_with_every_bump(database: Database) -> None:
    """Each change is another revision, however often it is done on one connection."""

    async def unit(tx: Tx) -> list[int]:
        seen = []
        for _ in range(TIMES):
            await directory.bump(tx, ORG)
            seen.append(await directory.revision(tx, ORG))
        return seen

    assert await database.write(unit) == list(range(1, TIMES + 1))


async def test_people_come_back_with_methods_and_rules_in_order(database: Database, clock: FakeClock) -> None:
    """Addresses are read in clear, are not stored in clear, and rules keep their order."""

    async def unit(tx: Tx) -> tuple[int, int]:
        ana = await add_person(tx, ANA, clock.now())
        method = await save_sms(tx, ana, "+12025550143", clock.now())
        rules = {Urgency.HIGH: [ContactRule(method, timedelta(minutes=m)) for m in (0, 1, 3)]}
        await contacts.replace_rules(tx, ORG, ana, rules, "config")
        return ana, method

    ana_id, method_id = await database.write(unit)
    async with database.snapshot() as tx:
        found = (await directory.read(tx, ORG, clock.now(), VAULT)).people[ana_id]
        stored = (await tx.execute(sa.select(contact_methods.c.address))).scalar_one()
    assert (found.name, found.slack_user_id, found.timezone) == ("ana", "U0ANA", "Europe/Berlin")
    assert (found.methods[0].id, found.methods[0].address, found.methods[0].usable) == (
        method_id,
        "+12025550143",
        True,
    )
    assert [rule.delay for rule in found.rules[Urgency.HIGH]] == [timedelta(minutes=m) for m in (0, 1, 3)]
    assert "2025550143" not in stored


async def test_a_method_written_twelve_times_is_one_method(database: Database, clock: FakeClock) -> None:
    """The same address is one row, and writing it again enables it."""

    async def unit(tx: Tx) -> set[int]:
        ana = await add_person(tx, ANA, clock.now())
        found = set()
        for _ in range(TIMES):
            found.add(await save_sms(tx, ana, "+12025550143", clock.now()))
            await contacts.disable_method(tx, ORG, next(iter(found)), "not in the file")
        await save_sms(tx, ana, "+12025550143", clock.now())
        return found

    assert len(await database.write(unit)) == 1
    async with database.snapshot() as tx:
        everybody = await people.read_people(tx, ORG, VAULT)
    assert [method.usable for person in everybody.values() for method in person.methods] == [True]


async def test_an_address_of_another_key_is_disabled_and_stops_nobody_else(
    database: Database, clock: FakeClock
) -> None:
    """A lost secret key silences the addresses it hid, and the directory can still be read."""

    async def unit(tx: Tx) -> None:
        await add_person(tx, ANA, clock.now(), "+12025550143")

    await database.write(unit)
    async with database.snapshot() as tx:
        everybody = await people.read_people(tx, ORG, Vault("another key"))
    (method,) = next(iter(everybody.values())).methods
    assert (method.usable, method.address, method.disabled_reason) == (False, "", UNREADABLE)


async def test_people_are_found_by_slack_and_by_address(database: Database, clock: FakeClock) -> None:
    """A shared phone has both its people; a disabled method and somebody deactivated are not found."""

    async def unit(tx: Tx) -> tuple[int, int, int]:
        ana = await add_person(tx, ANA, clock.now(), "+12025550143")
        ben = await add_person(tx, BEN, clock.now(), "+12025550143")
        cho = await add_person(tx, replace(BEN, name="cho"), clock.now(), "+12025550143")
        assert await people.deactivate_person(tx, ORG, cho, clock.now())
        assert not await people.deactivate_person(tx, ORG, cho, clock.now())
        return ana, ben, cho

    ana, ben, _cho = await database.write(unit)
    fingerprint = VAULT.fingerprint("+12025550143")
    async with database.snapshot() as tx:
        assert await directory.person_by_slack(tx, ORG, "U0ANA") == ana
        assert await directory.person_by_slack(tx, ORG, "U0NOBODY") is None
        assert await directory.persons_by_address(tx, ORG, fingerprint) == [ana, ben]
        assert await directory.persons_by_address(tx, ORG, VAULT.fingerprint("+1")) == []
        assert await directory.persons_by_address(tx, 2, fingerprint) == []


async def test_an_incident_finds_the_policy_it_opened_under(database: Database, clock: FakeClock) -> None:
    """A new version does not touch the past; before the first one, the oldest counts."""
    before = clock.now() - timedelta(days=1)
    later = clock.now() + timedelta(hours=1)

    async def unit(tx: Tx) -> tuple[int, int, int]:
        policy_id = await policies.name_policy(tx, ORG, "payments")
        first = await policies.append_policy(tx, ORG, ladder(policy_id, 1, 2), clock.now())
        second = await policies.append_policy(tx, ORG, ladder(policy_id, 3), later)
        return policy_id, first, second

    policy_id, first, second = await database.write(unit)
    async with database.snapshot() as tx:
        at = [(await directory.policy_version(tx, ORG, policy_id, t)) for t in (before, clock.now(), later)]
        assert [policy.version_id for policy in at] == [first, first, second]
        assert await directory.policy_by_version(tx, ORG, first) == replace(
            ladder(policy_id, 1, 2), version_id=first
        )
        assert await directory.policy_by_version(tx, ORG, second + 1) is None
        newest = (await directory.read(tx, ORG, later, VAULT)).policies
        assert {p.id: p.version_id for p in newest.values()} == {policy_id: second}
        with pytest.raises(NotFound):
            await directory.policy_version(tx, ORG, policy_id + 1, later)


async def test_a_schedule_is_read_as_it_was_in_force(database: Database, clock: FakeClock) -> None:
    """The version in force at the instant asked, also when a newer one exists by now."""
    week = timedelta(days=7)

    async def unit(tx: Tx) -> tuple[int, int, int]:
        ana = await add_person(tx, ANA, clock.now())
        ben = await add_person(tx, BEN, clock.now())
        schedule_id = await schedules.name_schedule(tx, ORG, "primary")
        await schedules.append_schedule(tx, ORG, schedule_id, weekly(ana), clock.now())
        await schedules.append_schedule(tx, ORG, schedule_id, weekly(ben, ana), clock.now() + week)
        return ana, ben, schedule_id

    ana, ben, schedule_id = await database.write(unit)
    async with database.snapshot() as tx:
        assert await schedules.read_schedules(tx, ORG, clock.now() - week) == {}
        now = (await schedules.read_schedules(tx, ORG, clock.now()))[schedule_id]
        then = (await schedules.read_schedules(tx, ORG, clock.now() + week))[schedule_id]
    assert (now.name, now.people, then.people) == ("primary", (ana,), (ben, ana))
    assert people_at(now.schedule, clock.now()) == (str(ana),)


async def test_overrides_take_part_until_a_day_after_their_end(database: Database, clock: FakeClock) -> None:
    """Cancelled ones and long ended ones are left out; the others stand in the order of creation."""
    now, hour = clock.now(), timedelta(hours=1)

    async def unit(tx: Tx) -> tuple[int, list[int]]:
        ana = await add_person(tx, ANA, now)
        ben = await add_person(tx, BEN, now)
        schedule_id = await schedules.name_schedule(tx, ORG, "primary")
        await schedules.append_schedule(tx, ORG, schedule_id, weekly(ana), now)
        starts = (now - 3 * 24 * hour, now - 2 * hour, now, now + hour)
        ids = [
            await schedules.insert_override(
                tx, ORG, Override(0, schedule_id, "replace_all", ben, None, start, start + hour, "ana"), now
            )
            for start in starts
        ]
        assert await schedules.cancel_override(tx, ORG, ids[3], now)
        assert await schedules.cancel_override(tx, ORG, ids[3], now) is None
        assert await schedules.cancel_override(tx, ORG, ids[0], now) is None
        return schedule_id, ids

    schedule_id, ids = await database.write(unit)
    async with database.snapshot() as tx:
        found = (await schedules.read_schedules(tx, ORG, now))[schedule_id]
        listed = await schedules.read_overrides(tx, ORG, after=now, schedule_id=schedule_id)
    assert [override.start for override in found.schedule.overrides] == [now - 2 * hour, now]
    assert [override.id for override in listed] == [ids[2]]


async def test_a_schedule_that_cannot_be_read_does_not_hide_the_others(
    database: Database, clock: FakeClock
) -> None:
    """Rubbish in one definition costs that schedule only; its level will fall back."""

    async def unit(tx: Tx) -> int:
        broken = await schedules.name_schedule(tx, ORG, "broken")
        await schedules.append_schedule(tx, ORG, broken, {"timezone": "Nowhere"}, clock.now())
        good = await schedules.name_schedule(tx, ORG, "good")
        await schedules.append_schedule(tx, ORG, good, weekly(1), clock.now())
        return good

    good = await database.write(unit)
    async with database.snapshot() as tx:
        assert list(await schedules.read_schedules(tx, ORG, clock.now())) == [good]


async def test_names_are_unique_however_often_they_are_written(database: Database, clock: FakeClock) -> None:
    """Naming a policy, a schedule or a service twelve times on one connection makes one of each."""

    async def unit(tx: Tx) -> set[tuple[int, int, int]]:
        found = set()
        for minutes in range(1, TIMES + 1):
            policy_id = await policies.name_policy(tx, ORG, "payments")
            schedule_id = await schedules.name_schedule(tx, ORG, "primary")
            service = Service(
                0,
                "checkout",
                policy_id,
                "#payments",
                ("cluster",),
                timedelta(minutes=minutes),
                timedelta(minutes=2),
                {"warning": Urgency.LOW},
            )
            found.add((policy_id, schedule_id, await services.save_service(tx, ORG, service)))
        return found

    ((policy_id, _, service_id),) = await database.write(unit)
    async with database.snapshot() as tx:
        found = await services.read_services(tx, ORG)
    assert found == {
        service_id: Service(
            service_id,
            "checkout",
            policy_id,
            "#payments",
            ("cluster",),
            timedelta(minutes=TIMES),
            timedelta(minutes=2),
            {"warning": Urgency.LOW},
        )
    }


async def test_no_grouping_and_an_empty_grouping_are_told_apart(database: Database) -> None:
    """`group_by` unset is the source's own grouping; an empty list is each key alone."""

    async def unit(tx: Tx) -> None:
        await services.save_service(tx, ORG, Service(0, "own", None, None))
        await services.save_service(tx, ORG, Service(0, "alone", None, None, group_by=()))

    await database.write(unit)
    async with database.snapshot() as tx:
        found = {
            service.name: service.group_by for service in (await services.read_services(tx, ORG)).values()
        }
    assert found == {"own": None, "alone": ()}


async def test_the_fallback_list_keeps_its_order(database: Database) -> None:
    """Replaced as a whole, in order, with ids as numbers and channels as names."""
    targets = [
        Target(TargetKind.PERSON, 3),
        Target(TargetKind.CHANNEL, "#ops"),
        Target(TargetKind.SCHEDULE, 1),
    ]

    async def unit(tx: Tx) -> None:
        await services.replace_fallback(tx, ORG, [Target(TargetKind.PERSON, 9)])
        await services.replace_fallback(tx, ORG, targets)

    await database.write(unit)
    async with database.snapshot() as tx:
        assert await services.read_fallback(tx, ORG) == tuple(targets)


async def test_a_key_opens_its_service_until_it_is_revoked(database: Database, clock: FakeClock) -> None:
    """A key is found by its hash, cannot be taken twice, and revoking it is seen."""

    async def unit(tx: Tx) -> tuple[int, int]:
        service_id = await services.save_service(tx, ORG, Service(0, "checkout", None, None))
        key_ids = [await keys.insert_key(tx, ORG, service_id, "h", "mw…", clock.now()) for _ in range(TIMES)]
        assert key_ids[1:] == [None] * (TIMES - 1)
        assert key_ids[0] is not None
        return service_id, key_ids[0]

    service_id, key_id = await database.write(unit)
    async with database.snapshot() as tx:
        found = await directory.service_by_key_hash(tx, "h")
        assert found == directory.KeyRow(ORG, service_id, key_id, revoked=False)
        assert await directory.service_by_key_hash(tx, "other") is None

    async def revoke(tx: Tx) -> bool:
        return await keys.revoke_key(tx, ORG, key_id, clock.now())

    assert [await database.write(revoke), await database.write(revoke)] == [True, False]
    async with database.snapshot() as tx:
        revoked = await directory.service_by_key_hash(tx, "h")
        assert revoked == directory.KeyRow(ORG, service_id, key_id, revoked=True)
        assert [(k.name, k.hint, k.revoked_at) for k in await keys.read_keys(tx, ORG)] == [
            ("checkout", "mw…", clock.now())
        ]


async def test_a_token_of_somebody_who_left_is_revoked(database: Database, clock: FakeClock) -> None:
    """A token acts for its person while they are here; one for nobody acts until it is revoked."""

    async def unit(tx: Tx) -> int:
        ana = await add_person(tx, ANA, clock.now())
        for _ in range(TIMES):
            await keys.insert_token(tx, ORG, "deploys", "h1", "mw…", ana, clock.now())
        await keys.insert_token(tx, ORG, "robot", "h2", "mw…", None, clock.now())
        return ana

    ana = await database.write(unit)

    async def leave(tx: Tx) -> None:
        await people.deactivate_person(tx, ORG, ana, clock.now())

    seen = []
    for step in (None, leave):
        if step is not None:
            await database.write(step)
        async with database.snapshot() as tx:
            found = [await directory.token_by_hash(tx, each) for each in ("h1", "h2")]
        seen.append([(token.person_id, token.revoked) for token in found if token])
    assert seen == [[(ana, False), (None, False)], [(ana, True), (None, False)]]


async def test_only_those_named_become_admins(database: Database, clock: FakeClock) -> None:
    """MIDWATCH_ADMINS marks people by their Slack ids and nobody when it is empty."""

    async def unit(tx: Tx) -> list[int]:
        await add_person(tx, ANA, clock.now())
        await add_person(tx, replace(ANA, name="cho", slack_user_id="U0CHO"), clock.now())
        marks = ([], ["U0CHO", "U0NOBODY"], ["U0CHO"])
        return [await people.mark_admins(tx, ORG, ids) for ids in marks]

    assert await database.write(unit) == [0, 1, 0]
