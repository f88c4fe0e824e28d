"""Fired again right after the source's end: taken up where it was, and only what that end put away."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import sqlalchemy as sa

from engine.db import Database
from engine.directory import Service
from engine.models import Method, Retry, Severity, Via
from engine.schema import alerts, incidents, timers
from tests.fakes import START, FakeClock
from tests.scenario.harness import Pager
from tests.scenario.harness import fire as fires
from tests.scenario.receiving import Receiving, end, fire, over, taken


async def test_a_flap_goes_on_with_the_time_that_was_left(pager: Pager) -> None:
    """Ended two minutes into a level of five, back after one: the next level follows three minutes later."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    await pager.advance(minutes=1)
    pager.expect_page("alice", "sms")
    await pager.advance(minutes=1)
    await pager.resolved_by_source()
    await pager.advance(minutes=1)
    receipt = await pager.alert()
    assert (receipt.status, receipt.incident_number) == ("refired", 1)
    incident = await pager.incident()
    assert (incident.status, incident.round, incident.firing_count) == ("triggered", 1, 1)
    # The call was cancelled by that end, and it alone is revived; it was due when the alert came back.
    pager.expect_page("alice", "voice")
    pager.expect_silence()
    await pager.advance(minutes=2, seconds=59)
    pager.expect_silence()
    await pager.advance(seconds=1)
    pager.expect_page("bob", "slack")
    await pager.ack()


async def test_a_flap_of_an_acknowledged_incident_pages_nobody(pager: Pager) -> None:
    """Fire, ack, end, fire: still acknowledged, and what the ack cancelled stays cancelled (B023)."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    await pager.ack()
    await pager.resolved_by_source()
    await pager.advance(minutes=1)
    assert (await pager.alert()).status == "refired"
    await pager.advance(hours=1)
    pager.expect_silence()
    incident = await pager.incident()
    assert (incident.status, incident.acknowledged_by) == ("acknowledged", "alice")


async def test_a_flap_before_the_first_page_still_pages(pager: Pager) -> None:
    """Fired, ended and fired again before anything was routed: paged, once."""
    await pager.receive(fires())
    await pager.resolved_by_source()
    pager.expect_silence()
    assert (await pager.alert()).status == "refired"
    pager.expect_page("alice", "slack")
    pager.expect_silence()
    await pager.ack()


async def test_after_the_window_it_is_a_new_problem_and_pages_anew(pager: Pager) -> None:
    """Fire, end, and fire again after two minutes: a second incident and a second page (B026, B027)."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    await pager.resolved_by_source()
    await pager.advance(minutes=2, seconds=1)
    receipt = await pager.alert()
    assert (receipt.status, receipt.incident_number) == ("opened", 2)
    pager.expect_page("alice", "slack")
    await pager.ack(2)


async def test_what_a_person_resolved_is_never_taken_up_again(pager: Pager) -> None:
    """A human's resolve is final: the source that fires again opens another incident."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    answer = await pager.resolve(via=Via.SLACK_COMMAND)
    assert answer.incident.status == "resolved"
    await pager.resolved_by_source()
    assert (await pager.alert()).incident_number == 2
    pager.expect_page("alice", "slack")
    await pager.resolve(2)


# --- the books ---------------------------------------------------------------------------------------------


async def test_a_member_that_flaps_is_the_same_alert_with_a_flap_count(
    receiving: Receiving, clock: FakeClock
) -> None:
    """While its incident is open, an alert that ends and fires again stays one alert on it."""
    await receiving.accept(fire("a", group_key="g"), fire("b", group_key="g"))
    for _ in range(3):
        await receiving.one(end("a"))
        clock.move(seconds=20)
        receipt = await receiving.one(fire("a", group_key="g"))
        assert (receipt.status, receipt.reason) == ("repeat", "fired again")
    found = {one.dedup_key: one for one in await receiving.rows(alerts)}
    assert (found["a"].status, found["a"].event_count, found["a"].flap_count) == ("firing", 4, 3)
    (incident,) = await receiving.rows(incidents)
    assert (incident.status, incident.open_alerts, incident.alert_count) == ("triggered", 2, 2)


async def test_a_flap_joins_whoever_holds_the_group_by_now(receiving: Receiving, clock: FakeClock) -> None:
    """Another incident was opened for the group meanwhile: the alert joins it, the old one stays closed."""
    await receiving.one(fire("a", group_key="g"))
    await receiving.one(end("a"))
    # a new key of the group opens a new incident: nothing of it is open, and it has no end of its own
    assert (await receiving.one(fire("b", group_key="g"))).incident_number == 2
    clock.move(seconds=30)
    receipt = await receiving.one(fire("a", group_key="g"))
    assert (receipt.status, receipt.incident_number) == ("joined", 2)
    assert [one.status for one in await receiving.rows(incidents)] == ["resolved", "triggered"]


async def test_a_flap_and_a_new_alert_of_the_group_in_one_body_share_the_incident(
    receiving: Receiving, clock: FakeClock
) -> None:
    """The new alert finds the incident that the other one re-fires, whichever is named first."""
    for first, second in (("a", "b"), ("d", "c")):
        group = f"g{first}"
        await receiving.one(fire(first, group_key=group))
        await receiving.one(end(first))
        clock.move(seconds=30)
        keys = sorted((first, second))
        receipts = await receiving.accept(*(fire(key, group_key=group) for key in keys))
        assert {receipt.status for receipt in receipts} == {"refired", "joined"}
        assert len({receipt.incident_number for receipt in receipts}) == 1
    assert [one.alert_count for one in await receiving.rows(incidents)] == [2, 2]


async def test_several_members_that_flap_together_are_one_re_fire(
    receiving: Receiving, clock: FakeClock
) -> None:
    """A whole group ends and is back: one incident, the same round, each alert once."""
    keys = [fire(key, group_key="g") for key in "abc"]
    await receiving.accept(*keys)
    await receiving.accept(**over("g"))
    clock.move(seconds=30)
    receipts = await receiving.accept(*keys)
    assert sorted(receipt.status for receipt in receipts) == ["refired", "repeat", "repeat"]
    (incident,) = await receiving.rows(incidents)
    assert (incident.status, incident.round, incident.open_alerts) == ("triggered", 1, 3)
    assert [(one.status, one.event_count) for one in await receiving.rows(alerts)] == [("firing", 2)] * 3
    (timer,) = await receiving.rows(timers)
    assert (timer.kind, timer.epoch) == ("escalate", incident.epoch)


async def test_a_flap_that_comes_back_worse_starts_anew(receiving: Receiving, clock: FakeClock) -> None:
    """Acknowledged as a warning, ended, and back as critical: triggered, with one timer that counts."""
    mild = {"severity": Severity.WARNING, "raw_severity": "warning"}
    await receiving.one(fire("a", **mild))
    await receiving.one(taken("a"))
    await receiving.one(end("a"))
    clock.move(seconds=30)
    assert (await receiving.one(fire("a"))).status == "refired"
    (incident,), (timer,) = await receiving.rows(incidents), await receiving.rows(timers)
    assert (incident.status, incident.round, incident.urgency) == ("triggered", 2, "high")
    assert (timer.kind, timer.epoch, timer.due_at) == ("escalate", incident.epoch, clock.now())


async def test_a_sealed_incident_flaps_without_taking_the_group_back(
    database: Database, clock: FakeClock
) -> None:
    """Back while a newer incident holds the group, it joins that one; while none does, each is itself."""
    service = Service(0, "checkout", None, None, group_window=timedelta(minutes=5))
    receiving = await Receiving.start(database, clock, service)
    await receiving.one(fire("a", group_key="g"))
    clock.move(minutes=6)
    assert (await receiving.one(fire("b", group_key="g"))).incident_number == 2
    await receiving.one(end("a"))
    assert (await receiving.one(fire("a", group_key="g"))).incident_number == 2
    await receiving.accept(**over("g"))
    clock.move(minutes=6)
    await receiving.one(fire("a", group_key="g"))
    clock.move(minutes=6)
    await receiving.one(fire("c", group_key="g"))
    await receiving.accept(end("c"), end("a"))
    back = [await receiving.one(fire(key, group_key="g")) for key in "ac"]
    assert [(one.status, one.incident_number) for one in back] == [("refired", 3), ("refired", 4)]


async def test_a_flap_after_a_new_grouping_is_grouped_anew(receiving: Receiving, clock: FakeClock) -> None:
    """Its old incident belongs to another grouping by now: the alert opens one of its own, and no error."""
    await receiving.one(fire("a", group_key="g"))
    await receiving.one(end("a"))
    for number, service in receiving.services.items():
        receiving.services[number] = replace(service, group_by=())
    receiving.receiver.known.forget()
    clock.move(seconds=30)
    assert (await receiving.one(fire("a", group_key="g"))).status == "opened"


async def test_a_flap_that_meets_an_incident_opened_in_that_instant_joins_it(
    postgresql_url: str, clock: FakeClock
) -> None:
    """Another process opens the group while the old incident is being taken up: the unit starts again."""
    databases = [Database(postgresql_url) for _ in range(2)]
    here = await Receiving.start(databases[0], clock)
    there = here.another(databases[1])
    for n in range(8):
        group = f"g{n}"
        await here.one(fire(f"a{n}", group_key=group))
        await here.one(end(f"a{n}"))
        flap, new = await asyncio.gather(
            here.one(fire(f"a{n}", group_key=group)), there.one(fire(f"b{n}", group_key=group))
        )
        assert flap.incident_number == new.incident_number
    open_ones = sa.select(sa.func.count()).where(incidents.c.status != "resolved")
    async with databases[0].snapshot() as tx:
        assert await tx.scalar(open_ones) == 8
    for database in databases:
        await database.close()


async def test_the_window_is_the_services(database: Database, clock: FakeClock) -> None:
    """A service may set it longer; a flap later than two minutes is then still one."""
    service = Service(0, "checkout", None, None, flap_window=timedelta(minutes=30))
    receiving = await Receiving.start(database, clock, service)
    await receiving.one(fire())
    await receiving.one(end())
    clock.move(minutes=29)
    assert (await receiving.one(fire(started_at=START + timedelta(minutes=29)))).status == "refired"


async def test_a_page_in_flight_at_the_resolve_is_sent_after_the_refire(pager: Pager) -> None:
    """Its attempt failed while the source said that it was over: the re-fire takes it up again."""
    slack = pager.transports[Method.SLACK]
    slack.fail_next(Retry("a hiccup"))
    await pager.alert()
    pager.expect_page("alice", "sms")  # pulled forward by the failure
    await pager.resolved_by_source()
    await pager.advance(seconds=40)  # the retry is due, and nobody wants it
    pager.expect_silence()
    await pager.alert()
    pager.expect_page("alice", "slack")
    await pager.ack()
