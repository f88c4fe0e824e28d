"""Incident rows: one open for each group, sealed, counted and locked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from engine.db import Database, Tx
from engine.directory import Service, Target, TargetKind
from engine.escalation import Fate, open_fate
from engine.escalation.fate import Kept
from engine.models import ORG, Actor, IncidentStatus, TimerKind, Urgency, Via
from engine.schema import incidents as table
from engine.store import counts, incidents, journal, services
from engine.store.counts import Count
from engine.store.incidents import Incident, NewIncident
from engine.store.journal import TimelineRow
from tests.fakes import START

LATER = START + timedelta(minutes=1)


@pytest.fixture
async def service(database: Database) -> int:
    return await database.write(lambda tx: services.save_service(tx, ORG, Service(0, "checkout", None, None)))


async def opened(database: Database, service: int, *groups: str) -> list[Incident]:
    fate = open_fate(Urgency.HIGH, 3, 0)
    new = [NewIncident(service, group, "down", fate, "error", "err", START, 0) for group in groups]

    async def unit(tx: Tx) -> list[Incident]:
        found = await incidents.insert(tx, ORG, new)
        return await incidents.lock(tx, list(found.values()))

    return await database.write(unit)


async def row(database: Database, incident: int) -> Any:
    async with database.snapshot() as tx:
        return (await tx.execute(sa.select(table).where(table.c.id == incident))).one()


async def test_every_part_of_a_fate_comes_back_as_it_was_saved(database: Database, service: int) -> None:
    """What `decide` has decided is what the next transaction reads."""
    (incident,) = await opened(database, service, "g")
    ana = Actor("ana", Via.SMS)
    fate = Fate(
        IncidentStatus.RESOLVED, Urgency.LOW, 3, 7, 2, 1, -1, START, True, 3,
        Target(TargetKind.SCHEDULE, 5), 0, START, ana, LATER, LATER, LATER, Actor("prom", Via.SOURCE),
        Kept(IncidentStatus.TRIGGERED, TimerKind.ESCALATE, timedelta(minutes=3)), None,
    )  # fmt: skip  # in the order of the fields
    await database.write(lambda tx: incidents.save_fates(tx, [(incident, fate)]))
    async with database.snapshot() as tx:
        (read,) = await incidents.read(tx, [incident.id])
    assert read.fate == fate


async def test_a_sealed_incident_frees_its_group_and_stays_open(database: Database, service: int) -> None:
    """After sealing, the next alert of the group opens another incident beside it."""
    (old,) = await opened(database, service, "g")
    await database.write(lambda tx: incidents.seal(tx, [old]))
    (new,) = await opened(database, service, "g")
    async with database.snapshot() as tx:
        assert await incidents.open_by_group(tx, ORG, [service], ["g"]) == {(service, "g"): new.id}
    assert (await row(database, old.id)).status == "triggered"


async def test_a_batch_counts_on_each_incident_what_is_its_own(database: Database, service: int) -> None:
    """Counts, the last join, the severity and what is hidden change only where something was said."""
    one, two, three = await opened(database, service, "a", "b", "c")
    added = [
        Count(one.id, joined=2, last_joined_at=LATER),
        Count(two.id, worse=True, severity=None, raw_severity="page"),
        Count(three.id, truncated=40),
    ]
    await database.write(lambda tx: counts.count(tx, added))
    rows = [await row(database, each.id) for each in (one, two, three)]
    assert [each.alert_count for each in rows] == [2, 0, 0]
    assert [each.last_joined_at for each in rows] == [LATER, START, START]
    assert [(each.severity, each.raw_severity) for each in rows] == [
        ("error", "err"), (None, "page"), ("error", "err"),
    ]  # fmt: skip  # as a table
    assert [each.truncated for each in rows] == [0, 0, 40]


async def test_numbers_are_dense_over_parallel_transactions(database: Database, service: int) -> None:
    """Twenty transactions at once are numbered 1 to 20 without a gap (B029)."""
    made = await opened(database, service, *(f"g{n}" for n in range(20)))
    given = await asyncio.gather(
        *(database.write(lambda tx, one=one: counts.number(tx, ORG, [one.id])) for one in made)
    )
    assert sorted(number for one in given for number in one.values()) == list(range(1, 21))


@pytest.fixture
async def postgresql(postgresql_url: str) -> AsyncIterator[Database]:
    """Only there does anybody lock beside another: SQLite has one writer."""
    database = Database(postgresql_url)
    yield database
    await database.close()


@pytest.fixture
async def made(postgresql: Database) -> list[Incident]:
    new = Service(0, "checkout", None, None)
    service = await postgresql.write(lambda tx: services.save_service(tx, ORG, new))
    return await opened(postgresql, service, "a", "b")


async def test_a_row_that_names_a_locked_incident_does_not_wait_for_it(
    postgresql: Database, made: list[Incident]
) -> None:
    """An event that mentions an incident is written while another transaction holds the incident."""
    incident, _ = made
    locked, written = asyncio.Event(), asyncio.Event()

    async def hold(tx: Tx) -> None:
        await incidents.lock(tx, [incident.id])
        locked.set()
        await written.wait()

    holding = asyncio.create_task(postgresql.write(hold))
    await locked.wait()
    entry = TimelineRow(incident.id, "note", Actor("ana", Via.API), "hm", 1)
    async with asyncio.timeout(2):
        await postgresql.write(lambda tx: journal.append_timeline(tx, ORG, [entry], START))
    written.set()
    await holding


async def test_locked_incidents_can_be_skipped(postgresql: Database, made: list[Incident]) -> None:
    """Whoever may come back later takes only what nobody holds."""
    one, two = made
    locked, looked = asyncio.Event(), asyncio.Event()

    async def hold(tx: Tx) -> None:
        await incidents.lock(tx, [one.id])
        locked.set()
        await looked.wait()

    holding = asyncio.create_task(postgresql.write(hold))
    await locked.wait()
    found = await postgresql.write(lambda tx: incidents.lock(tx, [one.id, two.id], skip_locked=True))
    assert [each.id for each in found] == [two.id]
    looked.set()
    await holding
