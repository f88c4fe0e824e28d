"""Idempotent work on an interval: cards whose counts moved, old ids, the dead man's switch, silent loops."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import pytest
import sqlalchemy as sa
from aiohttp import web

from engine import schema, sweeps
from engine.models import ORG
from engine.store import cards, journal
from engine.sweeps import Sweeps
from tests.notify.phone_company import serving
from tests.scenario.harness import Pager
from tests.scenario.sending import alarms


@dataclass
class Watchman:
    """The dead man's switch outside: counts the pings, and answers what it is told to."""

    heard: int = 0
    status: int = 200

    async def ping(self, _: web.Request) -> web.Response:
        self.heard += 1
        return web.Response(status=self.status)

    @property
    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/ping", self.ping)
        return app


def with_heartbeat(pager: Pager, url: str) -> Sweeps:
    app = pager.app
    return Sweeps(app.database, app.clock, app.nudge, app.worker, heartbeat_url=url)


def fall_silent(pager: Pager) -> None:
    """A loop whose last tick was long ago."""
    pager.app.worker.lanes[0].ticked_at -= 2 * sweeps.SILENT.total_seconds()


async def test_the_watchman_hears_from_us_while_every_loop_ticks(pager: Pager) -> None:
    """A ping goes out while all is well, and none when a loop has stopped: silence is the alarm (B040)."""
    watchman = Watchman()
    async with serving(watchman.app) as url:
        beat = with_heartbeat(pager, f"{url}/ping")
        assert await beat.ping() is True
        fall_silent(pager)
        assert await beat.ping() is False
        assert watchman.heard == 1


async def test_a_watchman_who_is_away_does_no_harm(pager: Pager) -> None:
    """An answer that is an error, and none at all, are noticed and nothing more (B126)."""
    watchman = Watchman(status=500)
    async with serving(watchman.app) as url:
        beat = with_heartbeat(pager, f"{url}/ping")
        assert await beat.ping() is False
    assert await beat.ping() is False


async def test_a_loop_that_has_stopped_is_an_alarm(pager: Pager) -> None:
    """Whoever runs Midwatch is told which loop has not ticked, once (F-40)."""
    assert await pager.app.sweeps.watch_loops() == []
    fall_silent(pager)
    for _ in range(2):
        assert await pager.app.sweeps.watch_loops() == ["fate"]
    texts = {text for text, _ in await alarms(pager)}
    assert texts == {"The loop for fate timers has not ticked for 30 s."}
    await pager.app.worker.run_due()
    assert len(pager.silence_ops()) == 2


async def test_a_card_whose_count_moved_is_shown_again_after_a_while(pager: Pager) -> None:
    """Repeats touch no card; every ten seconds one update shows their count, while it moves."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    assert await pager.app.sweeps.refresh_cards() == 0
    await pager.advance(seconds=11)
    assert await pager.app.sweeps.refresh_cards() == 0, "nothing was counted"
    await pager.alert()
    assert await pager.app.sweeps.refresh_cards() == 1
    async with pager.app.database.snapshot() as tx:
        incident = await pager.incident()
        shown = [card for card in await cards.of_incidents(tx, ORG, [incident.id]) if card.shown_at]
    await pager.app.database.write(lambda tx: cards.shown(tx, shown[0].id, pager.clock.now()))
    assert await pager.app.sweeps.refresh_cards() == 0, "it shows the count now"
    await pager.ack()


async def test_ids_of_inbound_messages_are_kept_for_a_day(pager: Pager) -> None:
    """An old id is forgotten, a young one still makes the second click nothing."""

    async def first_time(key: str) -> bool:
        now = pager.clock.now()
        return await pager.app.database.write(lambda tx: journal.first_time(tx, ORG, "slack", key, now))

    assert await first_time("old")
    pager.clock.move(hours=24)
    assert await first_time("young")
    pager.clock.move(minutes=1)
    assert await pager.app.sweeps.forget() == 1
    assert not await first_time("young")
    async with pager.app.database.snapshot() as tx:
        assert await tx.scalar(sa.select(sa.func.count()).select_from(schema.inbound)) == 1


async def test_sweeps_run_by_themselves(pager: Pager, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started, they come round; a failing one is logged and comes round again."""
    monkeypatch.setattr(sweeps, "CARD_AGE", timedelta(milliseconds=20))
    rounds, twice = [], asyncio.Event()

    async def fail(_: Sweeps) -> int:
        rounds.append(1)
        if len(rounds) > 1:
            twice.set()
        raise RuntimeError("a bug")

    monkeypatch.setattr(Sweeps, "refresh_cards", fail)
    pager.app.sweeps.start()
    await asyncio.wait_for(twice.wait(), 10)
    pager.app.sweeps.stop()
