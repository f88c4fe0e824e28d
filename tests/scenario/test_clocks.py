"""What people notice when the clock of a host jumps, stops or doubts: pages come once, in order, in time."""

from __future__ import annotations

import asyncio
import random
import zoneinfo
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from engine import schema
from engine.clock import SystemClock
from engine.models import DeliveryStatus, Method
from tests.fakes import START, FakeClock
from tests.scenario.harness import CONFIG, Pager, fire
from tests.scenario.sending import LADDER, counted, gate, only, tries
from tests.unit.test_clock import Machine

PATIENCE = 10


def told(pager: Pager) -> list[tuple[str | None, str]]:
    """Who was told by what, in order; consumed. Alarms and channels left out."""
    heard = [(page.person, page.method.value) for page in pager.pages() if page.person]
    pager._collect().clear()
    return heard


async def begun(pager: Pager) -> list[str]:
    """The methods of all attempts for people, in the order in which they were begun."""
    deliveries, attempts = schema.deliveries, schema.attempts
    async with pager.app.database.snapshot() as tx:
        rows = await tx.execute(
            sa.select(deliveries.c.method)
            .join(attempts, attempts.c.delivery_id == deliveries.c.id)
            .where(deliveries.c.person_id.is_not(None))
            .order_by(attempts.c.id)
        )
        return list(rows.scalars())


async def test_an_hour_forward_fires_everything_once_in_due_order(pager: Pager) -> None:
    """Late, and marked so by the lateness; what follows counts from now (F-24)."""
    late = counted("timer_lateness_seconds_bucket", kind="escalate", le="60.0")
    total = counted("timer_lateness_seconds_count", kind="escalate")
    await pager.alert()
    pager.expect_page("alice", "slack")
    await pager.outage(hours=1)
    assert await begun(pager) == ["slack", "sms", "voice", "slack"], "in the order in which they were due"
    assert Counter(told(pager)) == Counter([("alice", "sms"), ("alice", "voice"), ("bob", "slack")])
    assert counted("timer_lateness_seconds_count", kind="escalate") == total + 2
    assert counted("timer_lateness_seconds_bucket", kind="escalate", le="60.0") == late + 1
    await pager.advance(seconds=59)
    assert told(pager) == []
    await pager.advance(seconds=1)
    assert told(pager) == [("bob", "sms")]
    await pager.ack()


@pytest.mark.parametrize("jump", [timedelta(hours=1), timedelta(minutes=10)])
async def test_a_lease_that_looks_expired_is_fenced(
    any_database_url: str, clock: FakeClock, jump: timedelta
) -> None:
    """The clock jumps, or the process stands still, in the middle of a send: it is sent once more at most,
    one attempt is recorded as accepted, and the older result changes nothing (F-24, F-27, I8)."""
    pager = await Pager(any_database_url, clock, LADDER).start()
    held = pager.transports[Method.SMS] = gate(Method.SMS)
    await pager.restart()
    await pager.receive(fire())
    stalled = asyncio.create_task(pager.app.worker.run_due())
    await asyncio.wait_for(held.entered.wait(), PATIENCE)
    other = Pager(pager.url, clock, LADDER)
    clock.move_to(clock.now() + jump)
    await other.app.worker.run_due()
    again = [page for page in other.pages() if page.method is Method.SMS and page.person == "ann"]
    assert [page.attempt for page in again] == [2]
    lost = counted("leases_lost_total")
    held.opened.set()
    await asyncio.wait_for(stalled, PATIENCE)
    assert counted("leases_lost_total") == lost + 1
    sms = again[0].id
    assert [outcome for _, outcome, _ in await tries(pager, sms)] == ["unknown", "sent"]
    for one in (pager, other):
        await one.close()


@pytest.mark.parametrize("back", [timedelta(hours=1), timedelta(minutes=10)])
async def test_set_back_nothing_waits_and_nothing_is_early(
    any_database_url: str, monkeypatch: pytest.MonkeyPatch, back: timedelta
) -> None:
    """The wall clock goes back: each page comes when it would have come, to the second (F-25, B058, B059)."""
    machine = Machine()
    machine.install(monkeypatch)
    pager = await Pager(any_database_url, SystemClock()).start()  # type: ignore[arg-type]  # not moved by hand
    await pager.alert()
    assert told(pager) == [("alice", "slack")]
    machine.wall -= back
    for seconds, expected in ((59, []), (1, [("alice", "sms")]), (119, []), (1, [("alice", "voice")])):
        machine.pass_(seconds)
        await pager.app.worker.run_due()
        assert told(pager) == expected, f"after {seconds} s more"
    machine.wall += back  # and forward again: it has caught up
    machine.pass_(119)
    await pager.app.worker.run_due()
    assert told(pager) == []
    machine.pass_(1)
    await pager.app.worker.run_due()
    assert told(pager) == [("bob", "slack")]
    await pager.ack()
    await pager.close()


async def test_a_clock_that_jitters_fires_once(pager: Pager) -> None:
    """Back and forth by a second around every deadline: what fired is gone, whatever time it is (F-26)."""
    chance = random.Random(26)
    await pager.alert()
    heard = told(pager)
    while (due := await pager.app.next_due()) is not None and due < START + timedelta(minutes=14):
        for _ in range(6):
            pager.clock.move_to(due + timedelta(seconds=chance.uniform(-1, 1)))
            await pager.app.worker.run_due()
        pager.clock.move_to(due + timedelta(seconds=1))
        await pager.app.worker.run_due()
        heard += told(pager)
    assert Counter(heard) == Counter(
        [("alice", "slack"), ("alice", "sms"), ("alice", "voice"), ("bob", "slack"), ("bob", "sms")]
    )
    await pager.ack()


BERLIN = CONFIG.replace(
    """    timezone: UTC
    layers:
      - {name: week, users: [alice], start: "2026-01-05T09:00", rotation: {every: 1, unit: week}}
""",
    """    timezone: Europe/Berlin
    layers:
      - {name: night, users: [alice, bob], start: "2026-03-01T02:30", rotation: {every: 1, unit: day}}
""",
)


async def on_call_at(pager: Pager, at: datetime, problem: str) -> str:
    """Whom an alert at this instant pages."""
    pager.clock.move_to(at)
    await pager.alert(problem)
    ((person, _),) = told(pager)
    for incident in await pager.open_incidents():
        await pager.resolve(incident.number)
    pager._collect().clear()
    return str(person)


@pytest.mark.parametrize(
    "handoff",
    [
        datetime(2026, 3, 29, 1, 30, tzinfo=UTC),  # 02:30 does not exist: by the offset before, as 03:30
        datetime(2026, 10, 25, 0, 30, tzinfo=UTC),  # 02:30 comes twice: the first of them
    ],
)
async def test_a_handoff_in_the_night_the_clocks_change(
    any_database_url: str, clock: FakeClock, handoff: datetime
) -> None:
    """One handoff, at one instant: the old person until then, the new one from then on (F-28, F-29)."""
    pager = await Pager(any_database_url, clock, BERLIN).start()
    second, hour = timedelta(seconds=1), timedelta(hours=1)
    before = await on_call_at(pager, handoff - second, "a")
    after = await on_call_at(pager, handoff, "b")
    assert {before, after} == {"alice", "bob"}
    assert await on_call_at(pager, handoff + hour - second, "c") == after
    assert await on_call_at(pager, handoff + hour, "d") == after
    assert await on_call_at(pager, handoff + 20 * hour, "e") == after
    await pager.close()


@pytest.fixture
def new_rules(tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Gives Berlin the rules of another zone, as an update of the zone data and a start would."""

    def update(rules: str) -> None:
        berlin = tmp_path / "Europe" / "Berlin"
        berlin.parent.mkdir(exist_ok=True)
        berlin.write_bytes(resources.files("tzdata.zoneinfo").joinpath(*rules.split("/")).read_bytes())
        zoneinfo.reset_tzpath([tmp_path])
        zoneinfo.ZoneInfo.clear_cache()

    yield update
    zoneinfo.reset_tzpath()
    zoneinfo.ZoneInfo.clear_cache()


async def test_new_zone_data_counts_from_the_next_start(
    any_database_url: str, clock: FakeClock, new_rules: Callable[[str], None]
) -> None:
    """Summer time is given up: whoever is asked or paged after the next start goes by that, for the past
    as well, since no shift is stored and no schedule is touched (F-30)."""
    new_rules("Europe/Berlin")
    pager = await Pager(any_database_url, clock, BERLIN).start()
    in_summer, in_winter = (datetime(2026, 7, 1, hour, 30, tzinfo=UTC) for hour in (0, 1))  # both 02:30
    day, hour, second = timedelta(days=1), timedelta(hours=1), timedelta(seconds=1)

    async def handoffs() -> list[datetime | None]:
        asked = [in_summer - second, in_winter, in_winter + day + hour]
        return [(await pager.app.roster.who(at))[0].since for at in asked]

    async def stored() -> list[Any]:
        async with pager.app.database.snapshot() as tx:
            return [tuple(row) for row in await tx.execute(sa.select(schema.schedule_versions))]

    clock.move_to(in_summer + 10 * day)
    assert await handoffs() == [in_summer - day, in_summer, in_summer + day]
    before = await stored()
    paged = await on_call_at(pager, in_summer + 11 * day, "a")

    new_rules("Africa/Algiers")  # Berlin's winter, all the year
    await pager.restart()
    assert await handoffs() == [in_winter - day, in_winter, in_winter + day]
    assert await stored() == before
    assert await on_call_at(pager, in_summer + 12 * day, "b") == paged, "the handoff is an hour away"
    assert await on_call_at(pager, in_winter + 12 * day, "c") != paged
    await pager.close()


QUICK = CONFIG.replace("timeout: 5m", "timeout: 1m").replace("timeout: 10m", "timeout: 1m")


@pytest.mark.parametrize("down", [timedelta(seconds=90), timedelta(minutes=10)])
async def test_down_across_several_due_times_catches_up_once(
    any_database_url: str, clock: FakeClock, down: timedelta
) -> None:
    """A ladder of minutes after minutes of absence: one step, late, then by the minute (F-32, B048, B049)."""
    pager = await Pager(any_database_url, clock, QUICK).start()
    await pager.alert()
    assert told(pager) == [("alice", "slack")]
    await pager.close()
    clock.move_to(clock.now() + down)
    await pager.restart()
    await pager.app.worker.run_due()
    heard = Counter(told(pager))
    assert heard["bob", "slack"] == 1
    assert max(heard.values()) == 1, "no page is made up for"
    assert heard["alice", "sms"] == 1, "and none is dropped for being late"
    assert (await pager.incident()).level == 1
    await pager.ack()
    await pager.advance(hours=1)
    assert told(pager) == []
    await pager.close()


async def test_a_process_that_stood_still_does_what_is_left(pager: Pager) -> None:
    """Stopped for ten minutes while somebody acknowledged elsewhere: it pages nobody afterwards (F-27)."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    other = Pager(pager.url, pager.clock)
    pager.clock.move(minutes=10)
    incident_id = await other.app.responder.find(1)
    assert incident_id is not None
    await other.app.responder.acknowledge(incident_id, await other.person("alice"))
    await pager.app.worker.run_due()
    assert told(pager) == []
    assert (await only(pager, Method.VOICE)).status is DeliveryStatus.CANCELLED
    await other.close()
