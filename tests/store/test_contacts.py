"""Contact methods and codes as rows: upserted for ever on one connection, and never by two at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import sqlalchemy as sa

from engine.contacts.codes import SEALED
from engine.contacts.contacts import Contacts
from engine.db import Database
from engine.directory import BY_CONFIG, REMOVED, ContactRule, Person
from engine.errors import BadInput, MidwatchError, TooMany
from engine.models import ORG, Actor, DeliveryKind, Method, Urgency, Via
from engine.nudge import Nudge
from engine.schema import LIVE, contact_methods, contact_rules, deliveries, verifications
from engine.store import contacts, people
from engine.store import verifications as codes
from engine.store.people import PersonRow
from engine.store.verifications import NewCode
from engine.vault import Vault
from tests.fakes import START, FakeClock

VAULT = Vault("a key for tests")
NUMBER, ANOTHER = "+12025550177", "+12025550178"
CLI = Actor("root", Via.CLI)
MINUTE = timedelta(minutes=1)


@pytest.fixture
async def one_connection(any_database_url: str) -> AsyncIterator[Database]:
    database = Database(any_database_url, pool_size=1)
    yield database
    await database.close()


async def somebody(database: Database, name: str = "ana") -> int:
    row = PersonRow(name, None, "UTC", admin=False)
    return await database.write(lambda tx: people.insert_person(tx, ORG, row, START))


async def read(database: Database, person_id: int) -> Person:
    async with database.snapshot() as tx:
        return (await people.read_people(tx, ORG, VAULT))[person_id]


async def counted(database: Database, table: sa.Table) -> int:
    async with database.snapshot() as tx:
        return int(await tx.scalar(sa.select(sa.func.count()).select_from(table)) or 0)


def made(database: Database, clock: FakeClock) -> Contacts:
    return Contacts(database, clock, VAULT, Nudge(database))


async def test_methods_are_upserted_twelve_times_on_one_connection(one_connection: Database) -> None:
    """Added by a person, given by a file, readdressed, verified and removed: the same row, whichever plan."""
    ana = await somebody(one_connection)
    for n in range(12):
        one = await one_connection.write(
            lambda tx: contacts.add_method(tx, ORG, ana, Method.SMS, NUMBER, vault=VAULT, now=START)
        )
        (method,) = (await read(one_connection, ana)).methods
        assert (method.id, method.usable, method.in_file) == (one, False, False)
        again = await one_connection.write(
            lambda tx: contacts.save_method(
                tx,
                ORG,
                ana,
                Method.SMS,
                NUMBER,
                vault=VAULT,
                verified_by=BY_CONFIG,
                now=START,
                in_file=True,
            )
        )
        (method,) = (await read(one_connection, ana)).methods
        assert (again, method.usable, method.in_file) == (one, True, True)
        await one_connection.write(
            lambda tx, one=one: contacts.readdress(tx, ORG, one, ANOTHER, VAULT)  # type: ignore[misc]  # mypy cannot see the default
        )
        (method,) = (await read(one_connection, ana)).methods
        assert (method.address, method.usable, method.in_file) == (ANOTHER, False, False)
        rules = {Urgency.HIGH: [ContactRule(one, n * MINUTE)]}
        await one_connection.write(
            lambda tx, rules=rules: contacts.replace_rules(tx, ORG, ana, rules, "person")  # type: ignore[misc]  # likewise
        )
        assert (await read(one_connection, ana)).rules[Urgency.HIGH] == (ContactRule(one, n * MINUTE),)
        await one_connection.write(
            lambda tx, one=one: contacts.remove_method(tx, ORG, one, VAULT)  # type: ignore[misc]  # likewise
        )
        assert (await read(one_connection, ana)).methods == ()
    assert await counted(one_connection, contact_rules) == 0


async def test_what_is_removed_keeps_neither_address_nor_hash(one_connection: Database) -> None:
    """A reply from that number is nobody's, and whoever adds it next gets a row of their own."""
    ana = await somebody(one_connection)
    one = await one_connection.write(
        lambda tx: contacts.add_method(tx, ORG, ana, Method.SMS, NUMBER, vault=VAULT, now=START)
    )
    await one_connection.write(lambda tx: contacts.mark_verified(tx, ORG, [one], "code", START))
    await one_connection.write(lambda tx: contacts.remove_method(tx, ORG, one, VAULT))
    async with one_connection.snapshot() as tx:
        assert await people.persons_by_address(tx, ORG, VAULT.fingerprint(NUMBER)) == []
        row = (await tx.execute(sa.select(contact_methods))).one()
    assert (VAULT.decrypt(row.address), row.address_hash) == ("", f"{REMOVED}:{one}")
    two = await one_connection.write(
        lambda tx: contacts.add_method(tx, ORG, ana, Method.SMS, NUMBER, vault=VAULT, now=START)
    )
    assert two != one


async def test_codes_are_written_ended_and_counted_twelve_times_on_one_connection(
    one_connection: Database,
) -> None:
    """One live code of a method at a time; each that was sent counts for its person, its number and all."""
    ana, ben = await somebody(one_connection), await somebody(one_connection, "ben")
    one = await one_connection.write(
        lambda tx: contacts.add_method(tx, ORG, ana, Method.SMS, NUMBER, vault=VAULT, now=START)
    )
    for n in range(12):
        at = START + n * MINUTE
        new = NewCode(ana, one, "hash", f"code {n}", at + 15 * MINUTE)
        await one_connection.write(lambda tx, at=at: codes.end(tx, ORG, [one], at))  # type: ignore[misc]  # mypy cannot see the default
        code = await one_connection.write(lambda tx, new=new, at=at: codes.insert(tx, ORG, new, at))  # type: ignore[misc]  # likewise
        await one_connection.write(lambda tx, code=code: codes.count_try(tx, ORG, [code]))  # type: ignore[misc]  # likewise
    async with one_connection.snapshot() as tx:
        hour, day = START + MINUTE, START - MINUTE
        assert await codes.asked(tx, ORG, ana, "hash", hour, day) == (10, 12, 10)
        assert await codes.asked(tx, ORG, ben, "hash", hour, day) == (0, 12, 10)
        assert await codes.asked(tx, ORG, ben, "another", START + MINUTE * 60, day) == (0, 0, 0)
        live = await tx.execute(sa.select(verifications.c.code_hash, verifications.c.tries).where(LIVE))
        assert live.all() == [("code 11", 1)]
    assert await one_connection.write(lambda tx: codes.forget(tx, ORG, START + 5 * MINUTE)) == 6


async def test_who_asks_for_codes_at_once_never_gets_more_than_the_limit(
    any_database_url: str, clock: FakeClock
) -> None:
    """Four processes, each with connections of its own: three codes an hour, whoever was first."""
    each = [Database(any_database_url) for _ in range(4)]
    ana = await somebody(each[0])
    numbers = [f"+120255501{n:02}" for n in range(12)]

    async def add(place: int, number: str) -> bool:
        try:
            await made(each[place % 4], clock).add(ana, Method.SMS, number, CLI)
        except TooMany:
            return False
        return True

    done = await asyncio.gather(*(add(place, number) for place, number in enumerate(numbers)))
    assert sum(done) == 3
    assert await counted(each[0], verifications) == 3
    assert len((await read(each[0], ana)).methods) == 3
    for one in each:
        await one.close()


async def test_who_guesses_at_once_has_five_tries_all_the_same(
    any_database_url: str, clock: FakeClock
) -> None:
    """Every try counts, though twenty come in the same moment (S-15)."""
    each = [Database(any_database_url) for _ in range(4)]
    ana = await somebody(each[0])
    await made(each[0], clock).add(ana, Method.SMS, NUMBER, CLI)

    async def guess(place: int) -> str:
        try:
            await made(each[place % 4], clock).verify(ana, f"{place:06d}", CLI)
        except BadInput as error:
            return "tries" if "left" in str(error) else "locked"
        return "verified"

    said = await asyncio.gather(*map(guess, range(20)))
    assert said.count("tries") == 4, "and the fifth locks it"
    async with each[0].snapshot() as tx:
        assert await tx.scalar(sa.select(verifications.c.tries)) == 5
    for one in each:
        await one.close()


async def test_a_number_changed_while_its_code_is_typed_is_one_or_the_other(
    any_database_url: str, clock: FakeClock
) -> None:
    """Never another address that is verified by the code of the one before."""
    database, beside = Database(any_database_url), Database(any_database_url)
    for round_ in range(6):
        ana = await somebody(database, f"ana{round_}")
        numbers = [f"+1202555{round_:02}{n:02}" for n in range(2)]
        mine = made(database, clock)
        method = await mine.add(ana, Method.SMS, numbers[0], CLI)
        async with database.snapshot() as tx:
            brings = sa.select(deliveries.c.body).where(deliveries.c.kind == DeliveryKind.VERIFICATION.value)
            newest = await tx.scalar(brings.order_by(deliveries.c.id.desc()).limit(1))
        assert newest is not None
        code = VAULT.decrypt(newest[SEALED])
        await asyncio.gather(
            mine.verify(ana, code, CLI),
            made(beside, clock).change(method.id, numbers[1], CLI),
            return_exceptions=True,
        )
        (now,) = (await read(database, ana)).methods
        assert (now.address, now.verified) == (numbers[1], False)
    await database.close()
    await beside.close()


async def test_a_refusal_is_an_error_of_ours(any_database_url: str, clock: FakeClock) -> None:
    """Nothing that two at once can do to a row surfaces as an error of the database."""
    each = [Database(any_database_url) for _ in range(4)]
    ana = await somebody(each[0])
    method = await made(each[0], clock).add(ana, Method.SMS, NUMBER, CLI)

    async def deed(place: int) -> None:
        mine = made(each[place % 4], clock)
        deeds = (
            lambda: mine.add(ana, Method.SMS, NUMBER, CLI),
            lambda: mine.send_code(method.id, CLI),
            lambda: mine.change(method.id, ANOTHER, CLI),
            lambda: mine.set_rules(ana, Urgency.HIGH, [(method.id, place * MINUTE)], CLI),
            lambda: mine.remove(method.id, CLI),
            lambda: mine.reset_rules(ana, CLI),
        )
        await deeds[place % len(deeds)]()

    done = await asyncio.gather(*map(deed, range(24)), return_exceptions=True)
    wrong = [one for one in done if one is not None and not isinstance(one, MidwatchError)]
    assert wrong == []
    for one in each:
        await one.close()
