"""Idempotent work on an interval: cards whose counts moved, old ids; each a loop that is missed."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from engine import pulse, schema, sweeps
from engine.clock import monotonic
from engine.errors import Unavailable
from engine.models import ORG
from engine.store import cards, journal
from engine.sweeps import Sweeps
from tests.scenario.harness import Pager


def failing(monkeypatch: pytest.MonkeyPatch, error: type[Exception], *, rounds: int) -> asyncio.Event:
    """One sweep comes round all the time and fails; the event is set in that round."""
    monkeypatch.setattr(sweeps, "CARD_AGE", timedelta(milliseconds=20))
    left, reached = iter(range(rounds - 1)), asyncio.Event()

    async def fail(_: Sweeps) -> int:
        if next(left, None) is None:
            reached.set()
        raise error

    monkeypatch.setattr(Sweeps, "refresh_cards", fail)
    return reached


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
    """Started, they come round; one that fails comes round again, and is missed as if it had stopped."""
    twice = failing(monkeypatch, RuntimeError, rounds=2)
    began = monotonic()
    pager.app.sweeps.start()
    heard = pager.app.watch.pulse
    assert heard.silent() == []
    await asyncio.wait_for(twice.wait(), 10)
    pager.app.sweeps.stop()
    monkeypatch.setattr(pulse, "monotonic", lambda: began + 10_900)
    lanes = {lane.name.value for lane in pager.app.worker.lanes}
    assert {"refresh_cards", "audit", "watch_loops", "forget"} | lanes <= set(heard.silent())


@pytest.mark.parametrize(("error", "event"), [(Unavailable, "sweep.unavailable"), (KeyError, "sweep.failed")])
async def test_a_sweep_that_fails_is_said_in_our_words(
    pager: Pager,
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
    event: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """While the database is away it is one line, however many rounds that takes, and never a traceback."""
    thrice = failing(monkeypatch, error, rounds=3)
    with capture_logs() as logs:
        pager.app.sweeps.start()
        await asyncio.wait_for(thrice.wait(), 10)
        pager.app.sweeps.stop()
    said = [entry["event"] for entry in logs if entry.get("sweep") == "refresh_cards"]
    assert set(said) == {event}
    assert (len(said) == 1) is (error is Unavailable)
    assert not [record for record in caplog.records if record.name.startswith("apscheduler")]


async def test_a_sweep_that_is_told_to_stop_says_nothing(
    pager: Pager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Told to stop in the middle of a sweep, the process ends it without a line."""
    monkeypatch.setattr(sweeps, "CARD_AGE", timedelta(milliseconds=20))
    began, ended = asyncio.Event(), asyncio.Event()

    async def hang(_: Sweeps) -> int:
        began.set()
        try:
            return await asyncio.Future()
        finally:
            ended.set()

    monkeypatch.setattr(Sweeps, "refresh_cards", hang)
    with capture_logs() as logs:
        pager.app.sweeps.start()
        await asyncio.wait_for(began.wait(), 10)
        pager.app.sweeps.stop()
        await asyncio.wait_for(ended.wait(), 10)
    assert not [entry for entry in logs if entry.get("sweep")]
    assert not [record for record in caplog.records if record.name.startswith("apscheduler")]
