"""Every upsert, twelve times on one connection: PostgreSQL's plans change at the sixth.

And the predicates of the partial indexes, as they are deployed, which no migration check compares.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import sqlalchemy as sa

from engine.db import Database, Tx
from engine.directory import Service
from engine.escalation import open_fate
from engine.models import ORG, DeliveryKind, Method, NewDelivery, TimerKind, Urgency
from engine.schema import ASKING, CARRIED, DEAD_LETTER, LIVE, OPEN, REFERRED, UNFINISHED, counters
from engine.store import (
    alerts,
    cards,
    counts,
    dedup_keys,
    deliveries,
    directory,
    incidents,
    journal,
    services,
    timers,
)
from engine.store.alerts import NewAlert
from engine.store.incidents import NewIncident
from engine.store.timers import Arming
from tests.fakes import START

TWELVE = range(12)


@pytest.fixture
async def one_connection(any_database_url: str) -> AsyncIterator[Database]:
    database = Database(any_database_url, pool_size=1)
    yield database
    await database.close()


@pytest.fixture
async def service(one_connection: Database) -> int:
    return await one_connection.write(
        lambda tx: services.save_service(tx, ORG, Service(0, "checkout", None, "#payments"))
    )


def new_incident(service: int, group: str) -> NewIncident:
    fate = open_fate(Urgency.HIGH, 4, 1)
    return NewIncident(service, group, "db-1 is down", fate, "critical", "critical", START, 1)


def new_alert(service: int, incident: int, key: str) -> NewAlert:
    return NewAlert(service, incident, key, "g", "critical", "critical", "high", "down", {}, [], 1, None)


async def twelve(database: Database, unit: Callable[[Tx], Awaitable[object]]) -> list[object]:
    """One transaction each, on the pool's only connection."""
    return [await database.write(unit) for _ in TWELVE]


async def test_an_open_incident_is_inserted_once_however_often_it_is_tried(
    one_connection: Database, service: int
) -> None:
    """Eleven conflicts with the partial index insert nothing and are no errors (B038, F-21)."""
    new = [new_incident(service, "g"), new_incident(service, "h")]
    found = await twelve(one_connection, lambda tx: incidents.insert(tx, ORG, new))
    assert [len(rows) for rows in found if isinstance(rows, dict)] == [2, *[0] * 11]


async def test_an_open_alert_is_inserted_once_however_often_it_is_tried(
    one_connection: Database, service: int
) -> None:
    """The same for alerts, two rows at a time."""
    opened = await one_connection.write(lambda tx: incidents.insert(tx, ORG, [new_incident(service, "g")]))
    new = [new_alert(service, opened[(service, "g")], key) for key in ("a", "b")]
    found = await twelve(one_connection, lambda tx: alerts.insert(tx, ORG, new, START))
    assert [len(rows) for rows in found if isinstance(rows, dict)] == [2, *[0] * 11]


async def test_keys_counters_and_inbound_ids_are_upserted_for_ever(
    one_connection: Database, service: int
) -> None:
    """A key stays one row, a counter counts on, an inbound id is new once."""
    keys = [(service, "b"), (service, "a")]
    locked = await twelve(one_connection, lambda tx: dedup_keys.lock(tx, ORG, keys))
    assert all(isinstance(rows, dict) and sorted(rows) == sorted(keys) for rows in locked)
    first = await twelve(one_connection, lambda tx: journal.first_time(tx, ORG, "slack", "Ev1", START))
    assert first == [True, *[False] * 11]
    await twelve(one_connection, lambda tx: directory.bump(tx, ORG))
    async with one_connection.snapshot() as tx:
        assert await tx.scalar(sa.select(counters.c.value).where(counters.c.name == "directory")) >= 12


async def test_every_incident_gets_the_next_number(one_connection: Database, service: int) -> None:
    """Twelve times two new incidents are numbered 1 to 24, in order of their ids."""

    async def open_two(tx: Tx) -> list[int]:
        taken = await tx.scalar(sa.select(sa.func.count()).select_from(sa.text("incidents")))
        new = [new_incident(service, f"g{taken}"), new_incident(service, f"h{taken}")]
        opened = await incidents.insert(tx, ORG, new)
        numbers = await counts.number(tx, ORG, list(opened.values()))
        return [numbers[one] for one in sorted(opened.values())]

    given = await twelve(one_connection, open_two)
    assert [number for two in given if isinstance(two, list) for number in two] == list(range(1, 25))


async def test_timers_cards_and_deliveries_are_upserted_for_ever(
    one_connection: Database, service: int
) -> None:
    """One live timer that moves, one card, one delivery for each idempotency key."""
    opened = await one_connection.write(lambda tx: incidents.insert(tx, ORG, [new_incident(service, "g")]))
    incident = opened[(service, "g")]
    await twelve(
        one_connection, lambda tx: timers.arm(tx, ORG, [Arming(TimerKind.ESCALATE, incident, START, 1)])
    )
    place = [(incident, "#payments")]
    cards_made = await twelve(one_connection, lambda tx: cards.ensure_all(tx, ORG, place, START))
    assert all(made == cards_made[0] for made in cards_made)
    page = NewDelivery(incident, DeliveryKind.PAGE, Method.CHANNEL, "page:1", START, address="#payments")
    queued = await twelve(one_connection, lambda tx: deliveries.queue(tx, ORG, [page], START))
    assert [len(rows) for rows in queued if isinstance(rows, list)] == [1, *[0] * 11]
    async with one_connection.snapshot() as tx:
        (armed,) = await timers.of_subjects(tx, ORG, [TimerKind.ESCALATE], [incident])
    assert (armed.rev, armed.due_at) == (12, START)


async def test_the_deployed_predicates_are_the_constants(one_connection: Database) -> None:
    """Each partial index has the very predicate that the upserts name; a changed one would go unseen."""
    deployed = await _predicates(one_connection)
    assert deployed == {
        "uq_incidents_open": str(OPEN),
        "uq_alerts_open": str(OPEN),
        "ix_alerts_source_group": str(OPEN),
        "ix_deliveries_unfinished": str(UNFINISHED),
        "ix_deliveries_ref": str(REFERRED),
        "ix_deliveries_line": str(UNFINISHED),
        "ix_deliveries_carried": str(CARRIED),
        "ix_deliveries_dead": str(DEAD_LETTER),
        "ix_cover_requests_open": str(ASKING),
        "uq_verifications_live": str(LIVE),
    }


async def _predicates(database: Database) -> dict[str, str]:
    if database.is_sqlite:
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql LIKE '%WHERE%'"
    else:
        query = "SELECT indexname, indexdef FROM pg_indexes WHERE indexdef LIKE '%WHERE%'"
    async with database.snapshot() as tx:
        rows = await tx.execute(sa.text(query))
        return {name: _plain(sql.split("WHERE", 1)[1]) for name, sql in rows}


def _plain(predicate: str) -> str:
    """PostgreSQL's spelling of the same: brackets, casts and arrays."""
    text = predicate.replace("::text[]", "").replace("::text", "").strip()
    if "= ANY" in text:
        values = text[text.index("[") + 1 : text.index("]")]
        return f"{text.split('=')[0].strip(' (')} IN ({values})"
    return " AND ".join(_bare(part) for part in _bare(text).split(" AND "))


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text
