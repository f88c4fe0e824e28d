"""Deliveries, their attempts and cards as rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from engine import schema
from engine.db import Database, Tx
from engine.escalation import open_fate
from engine.models import ORG, Delivery, DeliveryKind, DeliveryStatus, Method, NewDelivery, Urgency
from engine.notify.next_rule import next_steps
from engine.store import attempts, cards, deliveries, incidents
from engine.store.attempts import Record
from engine.store.cards import Posted
from engine.store.incidents import NewIncident
from tests.fakes import START

PAGE = DeliveryKind.PAGE


async def make_incident(tx: Tx, key: str = "k") -> int:
    service = await tx.scalar(
        sa.insert(schema.services)
        .values(org_id=ORG, name=f"s-{key}", flap_window=timedelta(), urgency={})
        .returning(schema.services.c.id)
    )
    fate = open_fate(Urgency.HIGH, 3, 1)
    new = NewIncident(service, key, "t", fate, None, "", START, 1)
    (made,) = (await incidents.insert(tx, ORG, [new])).values()
    return made


def page(incident: int | None, key: str, **changed: Any) -> NewDelivery:
    return NewDelivery(incident, PAGE, Method.SMS, key, START, **{"round": 1, **changed})


async def queue(tx: Tx, *new: NewDelivery) -> list[int]:
    return [one for one, _ in await deliveries.queue(tx, ORG, new, START)]


async def one(tx: Tx, delivery_id: int) -> Delivery:
    return (await deliveries.read(tx, [delivery_id]))[delivery_id]


async def tries(tx: Tx, delivery_id: int) -> list[tuple[int, str]]:
    table = schema.attempts
    rows = await tx.execute(
        sa.select(table.c.number, table.c.outcome)
        .where(table.c.delivery_id == delivery_id)
        .order_by(table.c.id)
    )
    return [(row.number, row.outcome) for row in rows]


def ended(delivery_id: int, number: int, outcome: str, status: DeliveryStatus, **more: Any) -> Record:
    return Record(delivery_id, number, outcome, more.pop("reason", ""), status, **more)


async def test_a_step_is_queued_once(database: Database) -> None:
    """The same step of the same round is one row, in one batch and in the next."""

    async def unit(tx: Tx) -> None:
        assert len(await queue(tx, page(None, "a"), page(None, "a"), page(None, "b"))) == 2
        assert len(await queue(tx, page(None, "b"), page(None, "c"))) == 1

    await database.write(unit)


async def test_attempts_are_numbered_by_the_delivery(database: Database) -> None:
    """Each attempt has a row of its own; one without an end is closed as unknown, and counts."""

    async def unit(tx: Tx) -> None:
        (first, second) = await queue(tx, page(None, "a"), page(None, "b"))
        assert await attempts.begin(tx, ORG, [first, second], START) == {first: 1, second: 1}
        retry = ended(first, 1, "retry", DeliveryStatus.QUEUED, reason="lost")
        await attempts.record(tx, ORG, [retry], START)
        assert await attempts.begin(tx, ORG, [first], START) == {first: 2}
        assert await attempts.close_unknown(tx, ORG, [first, second], START) == {first: 1, second: 1}
        assert await attempts.close_unknown(tx, ORG, [first, second], START) == {}
        assert await attempts.begin(tx, ORG, [first], START) == {first: 3}
        assert await tries(tx, first) == [(1, "retry"), (2, "unknown"), (3, "sending")]
        assert [(await one(tx, n)).attempts for n in (first, second)] == [2, 1]

    await database.write(unit)


@pytest.mark.parametrize("final", [DeliveryStatus.DELIVERED, DeliveryStatus.DEAD, DeliveryStatus.CANCELLED])
async def test_a_record_does_not_bring_back_what_has_ended(database: Database, final: DeliveryStatus) -> None:
    """The provider said delivered or failed before its answer came: the attempt is closed, the word stays."""

    async def unit(tx: Tx) -> None:
        (it,) = await queue(tx, page(None, "a"))
        await attempts.begin(tx, ORG, [it], START)
        await deliveries.set_status(tx, it, final, "said before", START)
        sent = ended(it, 1, "sent", DeliveryStatus.SENT, provider="p", provider_ref="r")
        await attempts.record(tx, ORG, [sent], START)
        stored = await one(tx, it)
        assert (stored.status, stored.reason, stored.provider_ref) == (final, "said before", "r")
        assert await tries(tx, it) == [(1, "sent")]

    await database.write(unit)


async def test_what_was_sent_without_a_reference_was_sent(database: Database) -> None:
    """Some services give no reference; the time and the provider are kept all the same."""

    async def unit(tx: Tx) -> None:
        (it,) = await queue(tx, page(None, "a"))
        await attempts.begin(tx, ORG, [it], START)
        sent = ended(it, 1, "sent", DeliveryStatus.SENT, provider="apprise")
        await attempts.record(tx, ORG, [sent], START)
        stored = await one(tx, it)
        assert (stored.status, stored.sent_at, stored.provider) == (DeliveryStatus.SENT, START, "apprise")

    await database.write(unit)


async def test_only_what_is_queued_is_cancelled_and_exactly_that_revived(database: Database) -> None:
    """What is in flight goes on; a re-fire takes up what that resolve cancelled, and nothing older."""

    async def unit(tx: Tx) -> None:
        incident = await make_incident(tx)
        made = await queue(tx, *(page(incident, key) for key in "abcd"))
        old, flying, first, second = sorted(made)
        await attempts.begin(tx, ORG, [flying], START)
        await tx.execute(
            sa.update(schema.deliveries)
            .where(schema.deliveries.c.id == old)
            .values(status="cancelled", cancelled_epoch=2)
        )
        gone = await deliveries.cancel(tx, ORG, [incident], [PAGE], "resolved", {incident: 5}, START)
        assert sorted(gone) == [first, second]
        assert (await one(tx, flying)).status is DeliveryStatus.SENDING
        revived = await deliveries.revive(tx, ORG, incident, 5)
        assert sorted(one_ for one_, _ in revived) == [first, second]
        assert (await one(tx, old)).status is DeliveryStatus.CANCELLED
        assert (await one(tx, first)).ended_at is None

    await database.write(unit)


async def test_the_next_steps_of_a_page_are_those_of_its_person_round_and_level(database: Database) -> None:
    """Pulling a rule forward never touches another level, round or person."""

    async def unit(tx: Tx) -> None:
        incident = await make_incident(tx)
        shapes: list[dict[str, Any]] = [
            {"step": 0},
            {"step": 2},
            {"step": 1},
            {"step": 1, "level": 1},
            {"step": 1, "round": 2},
            {"step": 1, "pass_": 1},
        ]
        new = [page(incident, str(n), **shape) for n, shape in enumerate(shapes)]
        await queue(tx, *new)
        stored = {d.idem_key: d for d in await deliveries.of_incidents(tx, ORG, [incident])}
        waiting = await deliveries.queued(tx, ORG, [incident])
        assert [d.step for d in waiting] == [0, 1, 1, 1, 1, 2]
        assert next_steps([stored["0"]], waiting) == {stored["2"].id}
        assert next_steps([stored["0"], stored["2"]], waiting) == {stored["1"].id}

    await database.write(unit)


async def test_a_level_lives_while_one_of_its_pages_to_a_person_does(database: Database) -> None:
    """Lines in a channel reach nobody, and other levels and rounds say nothing of the present one."""

    async def unit(tx: Tx) -> None:
        dead_end, incident = await make_incident(tx, "d"), await make_incident(tx)
        both = [dead_end, incident]
        shapes: list[dict[str, Any]] = [{}, {"step": 1}, {"level": 1}, {"round": 2}, {"pass_": 1}]
        new = [page(incident, str(n), **shape) for n, shape in enumerate(shapes)]
        to_channel = NewDelivery(incident, PAGE, Method.CHANNEL, "c", START, address="#a", round=1)
        await queue(tx, *new, to_channel)
        stored = {d.idem_key: d.id for d in await deliveries.of_incidents(tx, ORG, [incident])}
        assert await deliveries.with_living_pages(tx, ORG, both) == {incident}
        await deliveries.set_status(tx, stored["0"], DeliveryStatus.DEAD, "", START)
        assert await deliveries.with_living_pages(tx, ORG, both) == {incident}
        await deliveries.set_status(tx, stored["1"], DeliveryStatus.DEAD, "", START)
        assert await deliveries.with_living_pages(tx, ORG, both) == set()

    await database.write(unit)


async def test_many_attempts_end_in_one_go_each_in_its_own_way(database: Database) -> None:
    """Sent, to be tried again, dead, cancelled, throttled: each row is as if it had been recorded alone."""

    async def unit(tx: Tx) -> None:
        made = sorted(await queue(tx, *(page(None, key) for key in "abcde")))
        await attempts.begin(tx, ORG, made, START)
        sent, again, dead, gone, throttled = made
        ends = [
            ended(sent, 1, "sent", DeliveryStatus.SENT, provider="p", provider_ref="r"),
            ended(again, 1, "retry", DeliveryStatus.QUEUED, reason="lost"),
            ended(dead, 1, "rejected", DeliveryStatus.DEAD, reason="no"),
            ended(gone, 0, "cancelled", DeliveryStatus.CANCELLED, reason="acked", counts=False, epoch=7),
            ended(throttled, 1, "throttled", DeliveryStatus.QUEUED, reason="slow", counts=False),
        ]
        await attempts.record(tx, ORG, ends, START)
        found = [await one(tx, each) for each in made]
        assert [(d.status.value, d.reason, d.attempts, d.provider_ref) for d in found] == [
            ("sent", "", 1, "r"),
            ("queued", "lost", 1, ""),
            ("dead", "no", 1, ""),
            ("cancelled", "acked", 0, ""),
            ("queued", "slow", 0, ""),
        ]
        assert [d.sent_at for d in found] == [START, None, None, None, None]
        assert [d.ended_at for d in found] == [None, None, START, START, None]
        assert [await tries(tx, each) for each in made] == [
            [(1, "sent")],
            [(1, "retry")],
            [(1, "rejected")],
            [(1, "sending")],
            [(1, "throttled")],
        ]

    await database.write(unit)


async def test_cards_are_one_for_a_channel_and_lost_broken_and_placed(database: Database) -> None:
    """A channel has one card of an incident; a broken one is said once and not shown until it is placed."""

    async def unit(tx: Tx) -> None:
        incident = await make_incident(tx)
        (card,) = await cards.ensure_all(tx, ORG, [(incident, "#a")], START)
        again = await cards.ensure_all(tx, ORG, [(incident, "#a"), (incident, "#b")], START)
        assert card in again
        assert len(set(again)) == 2
        await cards.placed(tx, card, "C1", "1.0", START)
        found = await cards.by_message(tx, ORG, "C1", "1.0")
        assert found is not None
        assert (found.id, found.shown_at) == (card, START)
        await cards.lost(tx, card)
        assert await cards.by_message(tx, ORG, "C1", "1.0") is None
        assert [await cards.broken(tx, card, "is_archived") for _ in range(2)] == [True, False]
        assert [c.channel for c in await cards.of_incidents(tx, ORG, [incident])] == ["#b"]
        await cards.placed(tx, card, "C1", "2.0", START)
        assert len(await cards.of_open_incidents(tx, ORG)) == 2

    await database.write(unit)


async def test_a_message_takes_the_place_of_the_card_that_was_there(database: Database) -> None:
    """A card that was broken or lost stands again at the last message that shows its incident there."""

    async def unit(tx: Tx) -> None:
        incident = await make_incident(tx)
        (card,) = await cards.ensure_all(tx, ORG, [(incident, "#a")], START)
        await cards.broken(tx, card, "is_archived")
        new = [Posted(incident, "#a", None, "C1", "1.0"), Posted(incident, "#b", None, "C2", "1.0")]
        await cards.posted(tx, ORG, [*new, Posted(incident, "#b", None, "C2", "2.0")], START)
        found = await cards.of_incidents(tx, ORG, [incident])
        assert [(c.channel, c.channel_id, c.ts) for c in found] == [("#a", "C1", "1.0"), ("#b", "C2", "2.0")]
        assert (found[0].id, found[0].shown_at) == (card, START)

    await database.write(unit)


async def test_every_statement_works_a_dozen_times_on_one_connection(any_database_url: str) -> None:
    """Upserts, conditional updates and their literal predicates under PostgreSQL's generic plan (F-21)."""
    database = Database(any_database_url, pool_size=1)
    for n in range(13):

        async def unit(tx: Tx, n: int = n) -> None:
            incident = await make_incident(tx, f"k{n}")
            (it, other) = sorted(await queue(tx, page(incident, f"a{n}"), page(incident, f"b{n}", step=1)))
            await attempts.begin(tx, ORG, [it], START)
            await attempts.close_unknown(tx, ORG, [it], START)
            await attempts.begin(tx, ORG, [it], START)
            sent = ended(it, 2, "sent", DeliveryStatus.SENT, provider="p", provider_ref=f"r{n}")
            await attempts.record(tx, ORG, [sent], START)
            assert await deliveries.by_ref(tx, ORG, f"r{n}") == [it]
            assert [d.id for d in await deliveries.queued(tx, ORG, [incident])] == [other]
            assert await deliveries.with_living_pages(tx, ORG, [incident]) == {incident}
            await deliveries.ringing(tx, ORG, [incident])
            await deliveries.cancel_responder(tx, ORG, incident, 1, "", START)
            gone = await deliveries.cancel(tx, ORG, [incident], [PAGE], "acked", {incident: n}, START)
            assert gone == [other]
            assert len(await deliveries.revive(tx, ORG, incident, n)) == 1
            await deliveries.incidents_texted_to(tx, ORG, "hash")
            (card,) = await cards.ensure_all(tx, ORG, [(incident, "#a")], START)
            await cards.posted(tx, ORG, [Posted(incident, "#a", None, "C1", "0")], START)
            await cards.placed(tx, card, "C1", f"{n}", START)
            await cards.shown(tx, card, START)
            await cards.outdated(tx, ORG, timedelta(seconds=10), START, 10)
            await cards.broken(tx, card, "gone")

        await database.write(unit)
    await database.close()
