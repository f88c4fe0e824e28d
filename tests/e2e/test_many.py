"""Several processes on one PostgreSQL share the work, and the death of one costs what it held, no more."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
import sqlalchemy as sa

from engine.clock import monotonic
from engine.models import TimerKind
from engine.schema import attempts, deliveries, timeline, timers
from tests.e2e.fleet import OURS, PEOPLE, Fleet, fleet, number, owned_by
from tests.servers import database_url, new_database, run_on_server

pytestmark = pytest.mark.slow

SENT = sa.select(deliveries.c.id, deliveries.c.status, deliveries.c.attempts)
LEASE_S = 30.0
NEXT_LOOK_S = 2.0


@pytest.fixture
async def ships(postgresql_server: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    name = await new_database(postgresql_server)
    async with fleet(database_url(postgresql_server, name), tmp_path) as made:
        yield made
    await run_on_server(postgresql_server, f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.mark.parametrize("many", [1, 2, 4])
async def test_the_work_is_shared_and_nothing_is_done_twice(ships: Fleet, many: int) -> None:
    """However many processes: each alert is one incident, one attempt, one message, and one reply by SMS
    has one effect and one answer. Database and metrics agree (F-33, B044)."""
    running = await asyncio.gather(*(ships.run() for _ in range(many)))
    total = PEOPLE
    await asyncio.gather(*(ships.fire(running[n % many], n, f"alert {n}") for n in range(total)))
    await ships.until(SENT, lambda rows: [row.status for row in rows] == ["sent"] * total)
    assert ships.exchange.paged() == dict.fromkeys(range(1, total + 1), 1)
    assert [row.attempts for row in await ships.rows(SENT)] == [1] * total
    # A machine that is busy puts back what it could not start within a second: begun, and not sent.
    ended = Counter(row.outcome for row in await ships.rows(sa.select(attempts.c.outcome)))
    assert (ended.pop("sent"), ended.keys() <= {"not_started"}) == (total, True)
    assert sum([await ships.counted(each, "midwatch_attempts_total") for each in running]) == total
    for lost in ("midwatch_attempts_unknown_total", "midwatch_leases_lost_total"):
        assert sum([await ships.counted(each, lost) for each in running]) == 0
    await one_reply_is_one_answer(ships, many)


async def one_reply_is_one_answer(ships: Fleet, many: int) -> None:
    """Every process looks for replies; they find the same one."""
    (first,) = [one for one in ships.exchange.messages if "#1 " in one["Body"] or "#1:" in one["Body"]]
    before, at = len(ships.exchange.messages), datetime.now(UTC)  # as the phone company would
    ships.exchange.inbox = [
        {
            "sid": "SM-reply",
            "from": first["To"],
            "to": OURS,
            "body": "ack 1",
            "direction": "inbound",
            "date_sent": at.strftime("%a, %d %b %Y %H:%M:%S +0000"),
        }
    ]
    looks = len(ships.exchange.asked)
    await ships.exchange.until(lambda: len(ships.exchange.messages) > before)
    await ships.exchange.until(lambda: len(ships.exchange.asked) >= looks + 3 * many)
    assert len(ships.exchange.messages) == before + 1
    acks = await ships.rows(sa.select(timeline.c.id).where(timeline.c.kind == "acknowledged"))
    assert len(acks) == 1


async def test_roles_share_one_install_and_a_killed_worker_costs_its_lease(ships: Fleet) -> None:
    """The web alone accepts, and a worker elsewhere pages within a second. Killed with -9 in the middle
    of a send, it delays nothing else, and that send by its lease: once, and no other is sent again
    (F-04, B056)."""
    front, *workers = await asyncio.gather(
        *(ships.run("--only", role) for role in ("web", "worker", "worker"))
    )
    late, took = [], []
    for n in range(5):
        began = monotonic()
        accepted = await ships.fire(front, 1 + n, f"alert {n}")
        took.append(accepted - began)  # how busy this machine is
        await ships.exchange.until(lambda n=n: len(ships.exchange.messages) == n + 1)
        late.append(ships.exchange.came_at[-1] - accepted)
    assert sorted(late)[2] < 1 + 10 * max(took), (late, took)
    busy = max(late) + 10 * max(took)
    ships.exchange.held, ships.exchange.takes_held = {number(0)}, False
    await ships.fire(front, 0, "held")
    await ships.exchange.until(lambda: ships.exchange.holding)
    (killed,) = [each for each in workers if await ships.rows(sa.select(timers.c.id).where(owned_by([each])))]
    killed.command.process.send_signal(signal.SIGKILL)
    killed_at = monotonic()
    ships.exchange.held = set()
    for n in range(5):
        accepted = await ships.fire(front, 11 + n, f"after {n}")
        await ships.exchange.until(lambda n=n: len(ships.exchange.messages) == n + 6)
        assert ships.exchange.came_at[-1] - accepted < 2 + busy
    await ships.exchange.until(lambda: len(ships.exchange.messages) == 11)
    assert ships.exchange.came_at[-1] - killed_at < LEASE_S + NEXT_LOOK_S + busy
    await ships.until(SENT, lambda rows: {row.status for row in rows} == {"sent"})
    assert set(ships.exchange.paged().values()) == {1}
    outcomes = [row.outcome for row in await ships.rows(sa.select(attempts.c.outcome))]
    assert sorted(set(outcomes) - {"not_started"}) == ["sent", "unknown"]
    assert (outcomes.count("sent"), outcomes.count("unknown")) == (11, 1)
    assert (await ships.health(front))["workers"] == "working"
    workers.remove(killed)
    assert await workers[0].command.end(signal.SIGTERM) == 0


async def test_told_to_stop_in_the_middle_of_a_send_it_finishes_that_and_nothing_more(ships: Fleet) -> None:
    """SIGTERM: no new claim, the send under way is recorded, no lease is left, exit 0; the next process
    goes on with the rest, and sends nothing again (F-08)."""
    front, first = await ships.run("--only", "web"), await ships.run()
    ships.exchange.held = {number(0)}
    await ships.fire(front, 0, "held")
    await ships.exchange.until(lambda: ships.exchange.holding)
    first.command.process.send_signal(signal.SIGTERM)
    await refuses_connections(ships, first.url)
    await ships.fire(front, 1, "after the signal")
    ships.exchange.release.set()
    assert await first.command.end() == 0
    assert "Traceback" not in first.command.written
    assert ships.exchange.paged() == {1: 1}
    assert not await ships.rows(sa.select(timers.c.id).where(timers.c.lease_until.is_not(None)))
    await ships.run("--only", "worker")
    await ships.until(SENT, lambda rows: [row.status for row in rows] == ["sent"] * 2)
    assert ships.exchange.paged() == {1: 1, 2: 1}
    assert not await ships.rows(sa.select(timers.c.id).where(timers.c.kind == TimerKind.DELIVER.value))


async def refuses_connections(ships: Fleet, url: str) -> None:
    """The process has begun to stop: its port is closed first."""
    async with asyncio.timeout(30):
        while True:
            try:
                async with ships.http.get(f"{url}/healthz"):
                    await asyncio.sleep(0.02)
            except aiohttp.ClientError:
                return
