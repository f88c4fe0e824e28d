"""What happened is kept in order, and the same inbound id counts once."""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa

from engine.db import Database
from engine.directory import Service
from engine.escalation import open_fate
from engine.models import ORG, Actor, Urgency, Via
from engine.schema import events
from engine.store import incidents, journal, services
from engine.store.incidents import NewIncident
from engine.store.journal import EventRow, TimelineRow
from tests.fakes import START

ANA = Actor("ana", Via.SLACK_BUTTON)


async def opened(database: Database) -> tuple[int, int]:
    service = await database.write(
        lambda tx: services.save_service(tx, ORG, Service(0, "checkout", None, None))
    )
    new = NewIncident(service, "g", "down", open_fate(Urgency.HIGH, 4, 0), None, "", START, 0)
    found = await database.write(lambda tx: incidents.insert(tx, ORG, [new]))
    return service, found[(service, "g")]


async def test_the_timeline_is_told_in_the_order_in_which_it_happened(database: Database) -> None:
    """By time, and within one instant in the order in which it was written."""
    _, incident = await opened(database)
    late = TimelineRow(incident, "acknowledged", ANA, "acknowledged", 2)
    both = [TimelineRow(incident, "opened", ANA, "down", 1), TimelineRow(incident, "note", ANA, "hm", 1)]
    await database.write(lambda tx: journal.append_timeline(tx, ORG, [late], START + timedelta(minutes=1)))
    await database.write(lambda tx: journal.append_timeline(tx, ORG, both, START))
    async with database.snapshot() as tx:
        told = await journal.timeline_of(tx, ORG, [incident])
    assert [(entry.kind, entry.actor, entry.via) for entry in told] == [
        ("opened", "ana", "slack_button"),
        ("note", "ana", "slack_button"),
        ("acknowledged", "ana", "slack_button"),
    ]


async def test_events_are_kept_word_for_word(database: Database) -> None:
    """Text that looks like SQL, markup or an emoji comes back as it went in (S-22)."""
    service, incident = await opened(database)
    text = "'); DROP TABLE events;-- <b>ü</b> 🔥 \u2028\\x00 %s :name {}"
    row = EventRow(service, "test", "trigger", text, "opened", text, text, incident, text, {text: [text]})
    await database.write(lambda tx: journal.append_events(tx, ORG, [row, row], START))
    async with database.snapshot() as tx:
        kept = list(await tx.execute(sa.select(events)))
    assert [(one.summary, one.dedup_key, one.content) for one in kept] == [(text, text, {text: [text]})] * 2


async def test_an_inbound_id_is_new_once_for_each_source_until_it_is_forgotten(database: Database) -> None:
    """The same click twice is one effect; the same id of another sender is another click (F-50)."""

    async def first(source: str) -> bool:
        return await database.write(lambda tx: journal.first_time(tx, ORG, source, "1", START))

    assert [await first("slack"), await first("slack"), await first("twilio")] == [True, False, True]
    assert await database.write(lambda tx: journal.forget_inbound(tx, START)) == 0
    assert await database.write(lambda tx: journal.forget_inbound(tx, START + timedelta(seconds=1))) == 2
    assert await first("slack")


async def test_a_message_is_begun_by_one_and_by_the_next_when_that_one_died(database: Database) -> None:
    """Whoever begins has half a minute; then another may; once it is done nobody does it again."""

    async def begins(after: float) -> bool:
        now = START + timedelta(seconds=after)
        patience = timedelta(seconds=30)
        return await database.write(lambda tx: journal.begin_inbound(tx, ORG, "sms", "1", now, patience))

    assert [await begins(0), await begins(29), await begins(30), await begins(31)] == [
        True,
        False,
        True,
        False,
    ]
    assert await database.write(lambda tx: journal.first_time(tx, ORG, "sms", "1", START))
    assert not await begins(100)
    async with database.snapshot() as tx:
        assert await journal.acted_on(tx, ORG, "sms", ["1", "2"]) == {"1"}
    assert [await begins(100) for _ in range(12)] == [False] * 12
