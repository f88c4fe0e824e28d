"""Whoever replied STOP is texted no more: by whom that is undone, and by whom it is not."""

from __future__ import annotations

import pytest

from engine.config.parse import parse_config
from engine.db import Database
from engine.directory import STOPPED
from engine.models import ORG, Method
from engine.pager.consent import Consent
from engine.pager.setup import Setup
from engine.store import people
from engine.vault import Vault
from tests.fakes import FakeClock

VAULT = Vault("a key for tests")
OLD, NEW = "+12025550111", "+12025550122"
FILE = "people: [{name: ana, slack: U0ANA, contact: {sms: '%s'}}]"


@pytest.fixture
def setup(database: Database, clock: FakeClock) -> Setup:
    return Setup(database, clock, VAULT)


@pytest.fixture
def consent(database: Database, clock: FakeClock) -> Consent:
    return Consent(database, clock, VAULT)


async def texts(database: Database) -> dict[str, str | None]:
    """By number: why it is off."""
    async with database.snapshot() as tx:
        (ana,) = (await people.read_people(tx, ORG, VAULT)).values()
    return {one.address: one.disabled_reason for one in ana.methods if one.kind is Method.SMS}


async def test_the_same_file_does_not_undo_it(setup: Setup, consent: Consent, database: Database) -> None:
    """Nor is there anything to apply: the file is as it was."""
    await setup.apply(parse_config(FILE % OLD))
    assert await consent.stop(VAULT.fingerprint(OLD))
    assert not await consent.stop(VAULT.fingerprint(OLD))
    exported = parse_config(await setup.export())
    assert (await setup.plan(exported)).changes == ()
    await setup.apply(exported)
    assert await texts(database) == {OLD: STOPPED}
    assert await consent.start(VAULT.fingerprint(OLD))
    assert await texts(database) == {OLD: None}


async def test_a_number_that_left_the_file_is_gone_for_good(
    setup: Setup, consent: Consent, database: Database
) -> None:
    """Its next owner may text START: that turns nothing on, and the export names the new number only."""
    await setup.apply(parse_config(FILE % OLD))
    await consent.stop(VAULT.fingerprint(OLD))
    await setup.apply(parse_config(FILE % NEW))
    assert not await consent.start(VAULT.fingerprint(OLD))
    assert (await texts(database))[OLD] not in {None, STOPPED}
    exported = await setup.export()
    assert NEW in exported
    assert OLD not in exported
