"""Alert rows: counted only while they are open, whoever closed them meanwhile."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from engine import db
from engine.db import Database, Tx
from engine.directory import Service
from engine.escalation import open_fate
from engine.models import ORG, Alert, AlertStatus, Urgency
from engine.store import alerts, dedup_keys, incidents, services
from engine.store.alerts import NewAlert, Refresh
from engine.store.dedup_keys import DedupKey
from engine.store.incidents import NewIncident
from tests.fakes import START

LATER = START + timedelta(minutes=1)


@pytest.fixture
async def service(database: Database) -> int:
    return await database.write(lambda tx: services.save_service(tx, ORG, Service(0, "checkout", None, None)))


@pytest.fixture
async def ids(database: Database, service: int) -> dict[str, int]:
    """Alerts a to e, open on one incident."""

    async def unit(tx: Tx) -> dict[str, int]:
        fate = open_fate(Urgency.HIGH, 4, 5)
        opened = await incidents.insert(
            tx, ORG, [NewIncident(service, "g", "down", fate, "critical", "critical", START, 5)]
        )
        new = [
            NewAlert(service, opened[(service, "g")], k, "raw", "error", "error", "high", k, {}, [], 1, START)
            for k in "abcde"
        ]
        return {key: one for (_, key), one in (await alerts.insert(tx, ORG, new, START)).items()}

    return await database.write(unit)


async def stored(database: Database, service: int, keys: str = "abcde") -> dict[str, Alert]:
    async with database.snapshot() as tx:
        found = await alerts.open_by_key(tx, ORG, [(service, key) for key in keys])
    return {key: alert for (_, key), alert in found.items()}


async def test_each_alert_is_counted_as_often_as_it_was_seen(
    database: Database, service: int, ids: dict[str, int]
) -> None:
    """One call counts alerts by different numbers, moves `last_seen_at` and says what it met."""
    times = {ids["a"]: 1, ids["b"]: 3, ids["c"]: 1, 999_999: 1}
    assert await database.write(lambda tx: alerts.repeat(tx, ORG, times, LATER)) == {
        ids["a"],
        ids["b"],
        ids["c"],
    }
    found = await stored(database, service)
    assert {key: alert.event_count for key, alert in found.items()} == {
        "a": 2,
        "b": 4,
        "c": 2,
        "d": 1,
        "e": 1,
    }
    assert {key for key, alert in found.items() if alert.last_seen_at == LATER} == {"a", "b", "c"}


async def test_a_resolved_alert_is_neither_counted_nor_reworded(
    database: Database, service: int, ids: dict[str, int]
) -> None:
    """What was closed meanwhile is not met: its event must look for a new alert."""
    await database.write(lambda tx: alerts.resolve(tx, ORG, [ids["a"]], "source", LATER))

    async def unit(tx: Tx) -> set[int]:
        matched = await alerts.repeat(tx, ORG, {ids["a"]: 1, ids["b"]: 1}, LATER)
        await alerts.reword(tx, ORG, {ids["a"]: "new", ids["b"]: "new"})
        return matched

    assert await database.write(unit) == {ids["b"]}
    found = await stored(database, service)
    assert "a" not in found
    assert found["b"].summary == "new"


async def test_only_open_alerts_are_locked_and_read(database: Database, ids: dict[str, int]) -> None:
    """`lock_open` answers with what is still open, by id."""
    await database.write(lambda tx: alerts.resolve(tx, ORG, [ids["a"]], "human", LATER))
    locked = await database.write(lambda tx: alerts.lock_open(tx, ORG, sorted(ids.values())))
    assert set(locked) == {ids[key] for key in "bcde"}
    assert await database.write(lambda tx: alerts.lock_open(tx, ORG, [])) == {}


async def test_closing_an_incident_says_which_alerts_it_closed(
    database: Database, service: int, ids: dict[str, int]
) -> None:
    """Each open alert is closed once, and answered once."""
    (incident,) = {alert.incident_id for alert in (await stored(database, service)).values()}
    await database.write(lambda tx: alerts.resolve(tx, ORG, [ids["a"]], "source", START))
    closed = await database.write(lambda tx: alerts.close_all(tx, ORG, [incident], "human", LATER))
    assert sorted(alert.dedup_key for alert in closed) == list("bcde")
    assert {alert.status for alert in closed} == {AlertStatus.RESOLVED}
    assert await database.write(lambda tx: alerts.close_all(tx, ORG, [incident], "human", LATER)) == []


async def test_a_refreshed_alert_fires_again_with_new_words(
    database: Database, service: int, ids: dict[str, int]
) -> None:
    """A re-fire takes up the same row: its counts go on, its end is forgotten."""
    await database.write(lambda tx: alerts.resolve(tx, ORG, [ids["a"]], "source", LATER))
    again = Refresh(ids["a"], 2, 1, "critical", "page", "high", "down again", LATER)
    await database.write(lambda tx: alerts.refresh(tx, ORG, [again], LATER))
    found = (await stored(database, service))["a"]
    assert (found.id, found.event_count, found.flap_count, found.summary) == (ids["a"], 3, 1, "down again")
    assert (found.raw_severity, found.started_at, found.resolved_at) == ("page", LATER, None)


async def test_the_alerts_of_a_source_group_are_those_still_open(
    database: Database, service: int, ids: dict[str, int]
) -> None:
    """A group resolve goes by the raw key, and never touches another service."""
    await database.write(lambda tx: alerts.resolve(tx, ORG, [ids["a"]], "source", LATER))
    async with database.snapshot() as tx:
        found = await alerts.of_source_groups(tx, ORG, service, ["raw"])
        assert await alerts.of_source_groups(tx, ORG, service + 1, ["raw"]) == []
    assert sorted(found) == [("raw", key, START) for key in "bcde"]


async def test_a_key_remembers_its_last_end(database: Database, service: int) -> None:
    """What is remembered of a key comes back when it is locked the next time; others stay blank."""
    keys = [(service, "b"), (service, "a")]
    assert await database.write(lambda tx: dedup_keys.lock(tx, ORG, keys)) == {
        key: DedupKey(*key) for key in keys
    }
    ended = DedupKey(service, "a", START, LATER, LATER, "page", None, "source")
    await database.write(lambda tx: dedup_keys.remember(tx, ORG, [ended]))
    found = await database.write(lambda tx: dedup_keys.lock(tx, ORG, keys))
    assert found == {(service, "a"): ended, (service, "b"): DedupKey(service, "b")}


async def test_counting_in_opposite_orders_never_deadlocks(
    database: Database, service: int, ids: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches that name the same alerts in opposite orders take their locks in one order."""
    monkeypatch.setattr(db, "UNIT_TRIES", 1)  # a deadlock would fail the test rather than be tried again
    forth = {ids[key]: 1 + n % 2 for n, key in enumerate("abcd")}
    back = dict(reversed(forth.items()))
    await asyncio.gather(
        *(database.write(lambda tx, t=t: alerts.repeat(tx, ORG, t, LATER)) for t in (forth, back) * 10)
    )
    found = await stored(database, service)
    assert [found[key].event_count for key in "abcd"] == [21, 41, 21, 41]
