"""Two processes on one PostgreSQL take the same alerts: one incident, nothing lost, no deadlock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from itertools import chain

import pytest

from engine import db
from engine.db import Database
from engine.directory import Service
from engine.models import Receipt
from engine.schema import alerts, incidents, timers
from tests.fakes import START, FakeClock
from tests.scenario.receiving import Receiving, end, fire

TWINS = list[Receiving]


@pytest.fixture
async def twins(postgresql_url: str, clock: FakeClock) -> AsyncIterator[TWINS]:
    databases = [Database(postgresql_url) for _ in range(2)]
    first = await Receiving.start(databases[0], clock, Service(0, "checkout", None, None))
    yield [first, first.another(databases[1])]
    for database in databases:
        await database.close()


async def test_thirty_racing_alerts_of_a_group_are_one_incident(twins: TWINS) -> None:
    """Each alert is there once, on the only open incident, which counts them all."""
    receipts = await asyncio.gather(
        *(twins[n % 2].one(fire(f"k{n}", group_key="g", started_at=START)) for n in range(30))
    )
    assert sorted(receipt.status for receipt in receipts) == [*["joined"] * 29, "opened"]
    (incident,) = await twins[0].rows(incidents)
    assert (incident.number, incident.alert_count, incident.open_alerts) == (1, 30, 30)
    assert len(await twins[0].rows(alerts)) == 30
    assert len(await twins[0].rows(timers)) == 1


async def test_the_same_alert_thirty_times_over_two_processes_is_one(twins: TWINS) -> None:
    """Whoever is first opens it, everybody else counts."""
    receipts = await asyncio.gather(*(twins[n % 2].one(fire()) for n in range(30)))
    assert sorted(receipt.status for receipt in receipts) == ["opened", *["repeat"] * 29]
    assert [one.event_count for one in await twins[0].rows(alerts)] == [30]


async def test_batches_in_opposite_orders_do_not_deadlock(
    twins: TWINS, capture_unavailable: list[str]
) -> None:
    """Forty keys forwards here and backwards there, new, repeated and ended, again and again."""
    keys = [f"k{n:02}" for n in range(40)]
    for n in range(6):
        forth = [fire(key, started_at=START) if n % 3 else end(key) for key in keys]
        await asyncio.gather(twins[0].accept(*forth), twins[1].accept(*reversed(forth)))
    assert capture_unavailable == []
    open_alerts = [one for one in await twins[0].rows(alerts) if one.status == "firing"]
    assert len(open_alerts) in {0, 40}
    assert len({one.dedup_key for one in open_alerts}) == len(open_alerts)


async def test_repeats_here_and_ends_there_do_not_deadlock(
    twins: TWINS, capture_unavailable: list[str]
) -> None:
    """A batch that counts one alert and ends another meets its mirror image."""
    pairs = [("a", "b"), ("b", "a")]
    for _ in range(6):
        await twins[0].accept(fire("a"), fire("b"))
        await twins[1].accept(fire("a"), fire("b"))
        await asyncio.gather(
            *(one.accept(fire(stays), end(goes)) for one, (stays, goes) in zip(twins, pairs, strict=True))
        )
    assert capture_unavailable == []


async def test_any_storm_over_two_processes_leaves_the_books_balanced(
    twins: TWINS, clock: FakeClock, capture_unavailable: list[str]
) -> None:
    """Random bodies of three groups: one open incident each, its alerts counted right, none lost (I1, I2)."""
    chance = random.Random(7)

    async def send(one: Receiving) -> list[Receipt]:
        chosen = chance.sample(range(9), k=chance.randint(1, 4))
        says = [(fire if chance.random() < 0.6 else end, n) for n in chosen]
        return await one.accept(*(say(f"k{n}", group_key=f"g{n % 3}") for say, n in says))

    for _ in range(8):
        answers = await asyncio.gather(*(send(chance.choice(twins)) for _ in range(12)))
        assert all(receipt.status for receipt in chain(*answers))
        clock.move(seconds=chance.choice([1, 130]))
    assert capture_unavailable == []
    await check_books(twins[0])


async def check_books(receiving: Receiving) -> None:
    found = {one.id: one for one in await receiving.rows(incidents)}
    firing = [one for one in await receiving.rows(alerts) if one.status == "firing"]
    for incident in found.values():
        here = [one for one in firing if one.incident_id == incident.id]
        assert incident.open_alerts == len(here)
        assert (incident.status == "resolved") == (not here)
    open_groups = [one.group_key for one in found.values() if one.status != "resolved"]
    assert len(open_groups) == len(set(open_groups))
    assert sorted(one.number for one in found.values()) == list(range(1, len(found) + 1))
    assert {timer.subject_id for timer in await receiving.rows(timers)} == {
        one.id for one in found.values() if one.status == "triggered"
    }


@pytest.fixture
def capture_unavailable(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every unit that had to be run again, by the database's code: a deadlock is 40P01."""
    codes: list[str] = []
    again = db._again

    def noted(error: BaseException) -> bool:
        codes.append(db.sqlstate(error))
        return again(error)

    monkeypatch.setattr(db, "_again", noted)
    return codes
