"""Keys, tokens and `/oncall me`: how senders, scripts and people get in."""

from __future__ import annotations

import asyncio

import pytest

from engine.contact import steps
from engine.db import Database
from engine.directory import Service
from engine.errors import BadInput, NotFound, Refused
from engine.models import ORG, Method, Urgency
from engine.pager.setup import Setup
from engine.rota.roster import Roster
from engine.store import directory as store
from engine.store import services
from engine.vault import Vault, hash_key
from tests.fakes import FakeClock

VAULT = Vault("a key for tests")


@pytest.fixture
def setup(database: Database, clock: FakeClock) -> Setup:
    return Setup(database, clock, VAULT, admins=["U0CHO"])


@pytest.fixture
async def checkout(database: Database) -> int:
    return await database.write(lambda tx: services.save_service(tx, ORG, Service(0, "checkout", None, None)))


async def test_a_key_is_shown_once_and_opens_its_service(
    setup: Setup, database: Database, checkout: int
) -> None:
    """The key handed out is found by its hash; the list shows a hint and not the key."""
    key = await setup.create_key("checkout")
    async with database.snapshot() as tx:
        found = await store.service_by_key_hash(tx, hash_key(key))
    assert found is not None
    assert (found.service_id, found.revoked) == (checkout, False)
    (listed,) = await setup.list_keys()
    assert key.startswith(listed.hint.rstrip("…"))
    assert len(listed.hint) < 12


async def test_an_existing_key_is_taken_over_again_and_again(setup: Setup, checkout: int) -> None:
    """`--value` for the same service twice is one key; revoked, it is not taken back."""
    assert [await setup.create_key("checkout", "demo") for _ in range(3)] == ["demo"] * 3
    (listed,) = await setup.list_keys()
    await setup.revoke_key(listed.id)
    with pytest.raises(NotFound):
        await setup.revoke_key(listed.id)
    with pytest.raises(BadInput, match="revoked"):
        await setup.create_key("checkout", "demo")


async def test_a_key_of_another_service_is_refused(setup: Setup, database: Database, checkout: int) -> None:
    """One key opens one service."""
    await setup.create_key("checkout", "shared-key")
    await database.write(lambda tx: services.save_service(tx, ORG, Service(0, "search", None, None)))
    with pytest.raises(BadInput, match="another service"):
        await setup.create_key("search", "shared-key")


@pytest.mark.parametrize("value", ["", "two words", "naïve", "a/b", "x" * 201, "a\n"])
async def test_a_key_that_fits_no_header_is_refused(setup: Setup, checkout: int, value: str) -> None:
    """A key must fit in a header and in a path."""
    with pytest.raises(BadInput, match="letters, digits"):
        await setup.create_key("checkout", value)


async def test_an_unknown_service_is_answered_with_those_there_are(setup: Setup, checkout: int) -> None:
    """The sentence names what could have been meant."""
    with pytest.raises(NotFound, match="There are: checkout"):
        await setup.create_key("chekout")


async def test_a_token_acts_for_a_person_until_it_is_revoked(setup: Setup, database: Database) -> None:
    """A token knows its person; one for nobody is a robot's."""
    ana = await setup.enrol("U0ANA", "ana", "Europe/Berlin")
    token = await setup.create_token("laptop", "ana")
    await setup.create_token("robot", value="demo")
    await setup.create_token("robot", value="demo")
    assert [(t.name, t.person) for t in await setup.list_tokens()] == [("laptop", "ana"), ("robot", None)]
    await setup.revoke_token((await setup.list_tokens())[0].id)
    async with database.snapshot() as tx:
        found = await store.token_by_hash(tx, hash_key(token))
    assert found is not None
    assert (found.person_id, found.revoked) == (ana.id, True)
    with pytest.raises(BadInput, match="somebody else"):
        await setup.create_token("robot", "ana", value="demo")
    with pytest.raises(NotFound):
        await setup.create_token("x", "nobody")


async def test_oncall_me_makes_a_person_who_can_be_paged(setup: Setup) -> None:
    """A Slack user becomes a person with a verified method, paged by it whatever the urgency."""
    ana = await setup.enrol("U0ANA", "ana", "Europe/Berlin")
    (method,) = ana.methods
    assert (method.kind, method.address, method.usable) == (Method.SLACK, "U0ANA", True)
    assert [[step.method for step in steps(ana, one)] for one in (Urgency.HIGH, Urgency.LOW)] == [
        [method]
    ] * 2
    assert (ana.active, ana.admin, ana.timezone) == (True, False, "Europe/Berlin")


async def test_oncall_me_at_once_from_two_places_makes_one_person(setup: Setup) -> None:
    """The same user twice is one person; two users of one name are told apart."""
    twins = await asyncio.gather(*[setup.enrol("U0ANA", "ana", "UTC") for _ in range(4)])
    assert len({person.id for person in twins}) == 1
    other = await setup.enrol("U0ANB", "ana", "UTC")
    assert other.name == "ana-2"


async def test_odd_names_and_zones_do_not_stop_anybody(setup: Setup) -> None:
    """Slack's words are not ours: a zone we do not know is UTC, a name of nothing is somebody."""
    person = await setup.enrol("U0ANA", "@\u202e ", "Mars/Olympus")
    assert (person.name, person.timezone) == ("somebody", "UTC")


async def test_an_admin_by_setting_is_one_from_the_start(setup: Setup) -> None:
    """Who is named in MIDWATCH_ADMINS becomes an admin with `/oncall me`."""
    assert (await setup.enrol("U0CHO", "cho", "Asia/Tokyo")).admin


async def test_an_admin_named_later_is_marked_at_the_next_start(
    setup: Setup, database: Database, clock: FakeClock
) -> None:
    """Somebody who is a person already becomes an admin when the setting names them."""
    ana = await setup.enrol("U0ANA", "ana", "UTC")
    roster = Roster(database, clock, VAULT)
    assert (await roster.directory()).admins == ()
    assert await Setup(database, clock, VAULT, admins=["U0ANA"]).mark_admins() == 1
    assert (await roster.directory()).admins == (ana.id,)


async def test_who_was_deactivated_does_not_take_that_back_alone(setup: Setup) -> None:
    """`/oncall me` of somebody an admin took out is refused, and says who can help."""
    ana = await setup.enrol("U0ANA", "ana", "UTC")
    assert [await setup.deactivate(ana.id) for _ in range(2)] == [True, False]
    with pytest.raises(Refused, match="admin"):
        await setup.enrol("U0ANA", "ana", "UTC")
