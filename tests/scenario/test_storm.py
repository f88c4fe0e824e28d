"""When everything fires at once, and people and sources act on the same incident in the same instant."""

from __future__ import annotations

import asyncio

import sqlalchemy as sa

from engine.audit import find
from engine.models import ORG, Action, Body, Event, Receipt, Via
from engine.schema import alerts, deliveries, incidents
from tests.scenario.harness import Pager, fire


async def at_once(pager: Pager, *events: Event) -> list[Receipt]:
    """A request for each event, all in the same instant."""
    service = await pager.service_id("checkout")
    accept = pager.app.receiver.accept
    answers = await asyncio.gather(*(accept(ORG, service, Body("test", (event,))) for event in events))
    return [receipt for (receipt,) in answers]


async def test_two_thousand_alerts_of_one_key_are_one_page_and_all_counted(pager: Pager) -> None:
    """Nothing is throttled on its way in; only what people are told is one thing (B019, F-67)."""
    receipts = await at_once(pager, *(fire() for _ in range(2_000)))
    assert sorted(receipt.status for receipt in receipts)[:2] == ["opened", "repeat"]
    await pager.app.worker.run_due()
    pager.expect_page("alice", "slack")
    pager.expect_silence()
    assert ((await pager.incident()).event_count, (await pager.incident()).alert_count) == (2_000, 1)
    await pager.ack()


async def test_a_group_of_hundreds_in_bodies_of_their_own_is_one_page(pager: Pager) -> None:
    """Three hundred alerts of one group, each in its own request: one incident, one page."""
    await at_once(pager, *(fire(f"db-{n}", group_key="g") for n in range(300)))
    await pager.app.worker.run_due()
    pager.expect_page("alice", "slack")
    pager.expect_silence()
    assert (await pager.incident()).firing_count == 300
    await pager.ack()


async def test_every_problem_of_a_storm_is_kept_and_routed(pager: Pager) -> None:
    """A hundred problems at once are a hundred incidents, each with its number and its timer (I3)."""
    await at_once(pager, *(fire(f"db-{n}") for n in range(100)))
    await pager.app.worker.run_due()
    paged = sa.exists().where(deliveries.c.incident_id == incidents.c.id)
    async with pager.app.database.snapshot() as tx:
        rows = await tx.execute(sa.select(incidents.c.number, paged).order_by(incidents.c.number))
    assert [tuple(row) for row in rows] == [(number, True) for number in range(1, 101)]
    pager.pages()
    pager._heard.clear()


async def test_a_person_and_the_source_resolve_in_the_same_instant(pager: Pager) -> None:
    """Whoever is first has resolved it; the other is told so, and nothing is left half closed (F-37)."""
    for number in range(1, 6):
        await pager.receive(fire(), fire("db-2", group_key="db-1 is down"))
        found = await pager.app.responder.find(number)
        assert found is not None
        actor = await pager.person("alice", Via.SMS)
        ends = [Event(Action.RESOLVE, key, "") for key in ("db-1 is down", "db-2")]
        await asyncio.gather(
            pager.app.responder.resolve(found, actor), pager.receive(*ends), pager.receive(*reversed(ends))
        )
        assert (await pager.incident(number)).status == "resolved"
        pager.clock.move(minutes=20)
    async with pager.app.database.snapshot() as tx:
        assert await tx.scalar(sa.select(sa.func.count()).where(alerts.c.status != "resolved")) == 0
        assert await find(tx, ORG, pager.clock.now()) == []


async def test_people_answer_while_the_source_goes_on(pager: Pager) -> None:
    """Repeats, joiners and ends race with acks and resolves: the books are balanced after each (I2)."""
    await pager.receive(fire("a", group_key="g"))
    actor = await pager.person("alice")
    for n in range(8):
        (incident,) = await pager.open_incidents()
        answer = pager.app.responder.resolve if n % 3 == 2 else pager.app.responder.acknowledge
        await asyncio.gather(
            pager.receive(fire("a", group_key="g")),
            pager.receive(fire(f"b{n}", group_key="g"), Event(Action.RESOLVE, f"b{n - 1}", "")),
            answer(incident.id, actor),
            pager.receive(fire("a", group_key="g"), fire(f"c{n}", group_key="g")),
        )
        await pager.receive(fire("a", group_key="g"))
        await balanced(pager)
        pager.clock.move(seconds=50)
    pager.pages()
    for incident in await pager.open_incidents():
        await pager.resolve(incident.number)
    pager.pages()
    pager._heard.clear()


async def balanced(pager: Pager) -> None:
    """Each incident knows how many of its alerts fire; a resolved one has none, an open one has some."""
    firing = sa.func.count().filter(alerts.c.status == "firing")
    query = (
        sa.select(incidents.c.status, incidents.c.open_alerts, firing.label("firing"))
        .join(alerts, alerts.c.incident_id == incidents.c.id)
        .group_by(incidents.c.id, incidents.c.status, incidents.c.open_alerts)
    )
    async with pager.app.database.snapshot() as tx:
        rows = list(await tx.execute(query))
    for row in rows:
        assert row.open_alerts == row.firing
        assert (row.status == "resolved") == (row.firing == 0)
    assert sum(row.status != "resolved" for row in rows) == 1
