"""The card lane and a page that is recorded write the same card; neither waits for the other in a ring."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa

from bot.slack import cards as face
from engine import db
from engine.db import Database, Tx
from engine.models import ORG, Rank, Timer, TimerKind
from engine.store import cards, timers
from engine.store.timers import Arming
from tests.fakes import START, FakeClock
from tests.scenario.harness import Pager, fire

BLOCKED = sa.text(
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
)
ALWAYS = START.replace(year=START.year + 1)


async def claimed_card(pager: Pager) -> tuple[int, int, Timer]:
    """An incident, its card, and the card's timer, which is ours."""
    await pager.receive(fire())
    incident = (await pager.incident()).id

    async def unit(tx: Tx) -> tuple[int, Timer]:
        (card,) = await cards.ensure_all(tx, ORG, [(incident, "#ops")], START)
        await timers.arm(tx, ORG, [Arming(TimerKind.CARD, card, START, rank=Rank.CARD)])
        due = await timers.of_subjects(tx, ORG, [TimerKind.CARD], [card])
        (timer,) = await timers.claim(tx, due, "us", ALWAYS, START)
        return card, timer

    card, timer = await pager.app.database.write(unit)
    return incident, card, timer


async def blocked(database: Database) -> None:
    """Somebody waits for a row of somebody else, or has ended without."""
    for _ in range(200):
        async with database.snapshot() as tx:
            if await tx.scalar(BLOCKED):
                return
        await asyncio.sleep(0.005)


async def test_a_shown_card_and_a_page_to_the_same_card_do_not_deadlock(
    postgresql_url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lane has shown the card; in the same instant a page's record places it anew and arms its timer."""
    pager = await Pager(postgresql_url, clock).start()
    incident, card, timer = await claimed_card(pager)
    database, other = pager.app.database, Database(postgresql_url)
    view = await pager.incident()
    async with database.snapshot() as tx:
        (row,) = await cards.read(tx, [card])

    async def page(tx: Tx) -> None:
        await cards.posted(tx, ORG, [cards.Posted(incident, "#ops", None, "C1", "2.0")], START)
        await timers.arm(tx, ORG, [Arming(TimerKind.CARD, card, START, rank=Rank.CARD)])

    pages: list[asyncio.Task[None]] = []
    finish, again = timers.finish, db._again
    errors: list[str] = []

    async def finish_while_a_page_comes(tx: Tx, timer: Timer) -> bool:
        done = await finish(tx, timer)
        pages.append(asyncio.create_task(other.write(page)))
        await blocked(database)
        return done

    def note(error: BaseException) -> bool:
        errors.append(db.sqlstate(error))
        return again(error)

    monkeypatch.setattr(timers, "finish", finish_while_a_page_comes)
    monkeypatch.setattr(db, "_again", note)
    lane = face.Cards(None, None, database, None, clock, lambda: None)  # type: ignore[arg-type]  # it only records
    await lane._record([(face.Job(timer, row, view), face.Shown())])
    await asyncio.gather(*pages)
    assert errors == []
    await other.close()
    await pager.close()
    pager.silence_ops()
