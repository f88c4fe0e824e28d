"""A maintenance window: nobody is paged for the service, nothing is lost, and it ends by itself."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engine.errors import BadInput
from engine.pager.maintenance import Maintenance
from tests.fakes import START
from tests.scenario.fates import broken, change, entries, fate_timers, level, soon, take, to, walk
from tests.scenario.harness import Pager


def windows(pager: Pager) -> Maintenance:
    return Maintenance(pager.app.database, pager.clock)


async def hold(pager: Pager, service: str | None = "checkout", *, after: float = 0, **length: float) -> None:
    """A window of alice's, `after` minutes from now."""
    start = pager.clock.now() + timedelta(minutes=after)
    service_id = None if service is None else await pager.service_id(service)
    alice = await pager.person("alice")
    await windows(pager).start(service_id, start, start + timedelta(**length), "new switches", alice)


async def test_what_fires_in_a_window_is_paged_when_it_is_over(pager: Pager) -> None:
    """Nobody hears of it for two hours; then it begins at the first level, in a round of its own."""
    await hold(pager, hours=2)
    await pager.alert()
    await pager.advance(hours=1, minutes=59)
    assert take(pager) == []
    incident = await pager.incident()
    assert (incident.status, incident.held_until) == ("triggered", START + timedelta(hours=2))
    await pager.advance(minutes=2)
    assert take(pager) == [("alice", "slack"), ("alice", "sms")]
    assert ((await pager.incident()).round, (await pager.incident()).held_until) == (2, None)
    await pager.advance(minutes=5)
    assert ("bob", "slack") in take(pager)
    await pager.ack()


async def test_a_window_is_told_once_however_often_it_is_looked_at(pager: Pager) -> None:
    """By whom, until when and why, on the timeline of what it holds."""
    await hold(pager, hours=2)
    await pager.alert()
    await pager.advance(hours=1)
    until = (START + timedelta(hours=2)).strftime("%Y-%m-%d %H:%M")
    assert await entries(pager, "held") == [
        f"held by a maintenance window of alice until {until} UTC: new switches"
    ]
    await pager.resolve()
    assert await fate_timers(pager) == []


async def test_another_service_is_paged_as_ever(pager: Pager) -> None:
    """A window is of one service; one of all services holds them all."""
    await hold(pager, "quiet", hours=1)
    await pager.alert()
    assert await soon(pager) == [("alice", "slack")]
    await pager.ack()
    await hold(pager, None, hours=1)
    await pager.alert("db-2 is down")
    assert await soon(pager) == []
    await pager.resolve(2)


async def test_steps_under_way_run_on_and_the_next_level_is_held(pager: Pager) -> None:
    """What was written before the window goes out; nobody else is called until its end."""
    await pager.alert()
    assert await soon(pager) == [("alice", "slack")]
    await hold(pager, minutes=30)
    await pager.advance(minutes=29)
    assert take(pager) == [("alice", "sms"), ("alice", "voice")]
    await pager.advance(minutes=2)
    assert take(pager) == [("alice", "slack"), ("alice", "sms")]  # a new round, at the first level
    await pager.ack()


async def test_a_window_that_has_yet_to_begin_holds_nothing(pager: Pager) -> None:
    """It may be set for tonight."""
    await hold(pager, after=10, hours=1)
    await pager.alert()
    assert await soon(pager) == [("alice", "slack")]
    await pager.ack()
    take(pager)
    await pager.advance(minutes=10)
    await pager.alert("db-2 is down")
    assert await soon(pager) == []
    await pager.resolve(2)


async def test_a_window_that_is_ended_early_lets_go_within_five_minutes(pager: Pager) -> None:
    """Whoever ends it need not wake anybody: what it holds looks again soon."""
    await hold(pager, hours=2)
    await pager.alert()
    await pager.advance(minutes=12)
    assert take(pager) == []
    ended = await windows(pager).end(await pager.service_id("checkout"), await pager.person("bob"))
    assert [(one.reason, one.created_by) for one in ended] == [("new switches", "alice")]
    assert await windows(pager).list() == []
    await pager.advance(minutes=5)
    assert ("alice", "slack") in take(pager)
    await pager.ack()


async def test_an_ack_timeout_and_a_snooze_that_end_in_a_window_wait_for_its_end(pager: Pager) -> None:
    """Neither wakes anybody inside it, both do after it."""
    await walk(pager, level(to("alice")), ack_timeout="10m")
    await pager.alert()
    await pager.alert("db-2 is down")
    await pager.ack()
    await pager.answer("snooze", 2, until=pager.clock.now() + timedelta(minutes=10))
    await soon(pager)
    await hold(pager, hours=1)
    await pager.advance(minutes=55)
    assert take(pager) == []
    for number in (1, 2):
        assert (await pager.incident(number)).status == "acknowledged"
    await pager.advance(minutes=10)
    heard = take(pager)
    assert {(await pager.incident(number)).status for number in (1, 2)} == {"triggered"}
    assert heard.count(("alice", "slack")) == 2
    await pager.resolve(1)
    await pager.resolve(2)


async def test_the_fallback_waits_too_and_then_the_ladder_begins_anew(pager: Pager) -> None:
    """`exhaust` inside a window pages nobody; after it somebody is tried from the first level on."""
    await walk(pager, level(to("alice")))
    await pager.alert()
    await pager.advance(minutes=9)
    take(pager)
    await hold(pager, hours=1)
    await pager.advance(minutes=58)
    assert take(pager) == []
    assert (await pager.incident()).status == "triggered"
    await pager.advance(minutes=4)
    assert ("alice", "slack") in take(pager)
    await pager.ack()


async def test_people_are_heard_inside_a_window(pager: Pager) -> None:
    """An ack, a resolve and an escalation by hand do what they always do."""
    await hold(pager, hours=1)
    await pager.alert()
    assert await soon(pager) == []
    await pager.answer("escalate")
    assert await soon(pager) == [("alice", "slack")]
    assert (await pager.incident()).held_until is None
    assert (await pager.ack()).changed
    assert (await pager.resolve()).changed
    await pager.advance(hours=2)
    assert (take(pager), await broken(pager)) == ([], [])


async def test_a_window_lasts_a_day_at_most_and_ends_after_it_begins(pager: Pager) -> None:
    """Whoever may hold back pages may not do so for good (S-27)."""
    for length in (timedelta(hours=24, seconds=1), timedelta(), timedelta(hours=-1)):
        with pytest.raises(BadInput):
            await windows(pager).start(None, START, START + length, "", await pager.person("bob"))
    assert await windows(pager).list() == []
    await windows(pager).start(None, START, START + timedelta(hours=24), "", await pager.person("bob"))
    assert [one.end_at for one in await windows(pager).list()] == [START + timedelta(hours=24)]


async def test_an_incident_that_pages_nobody_is_not_looked_at_again_and_again(pager: Pager) -> None:
    """Urgency `none` has nothing to hold back."""
    await change(
        pager, services=[{"name": "checkout", "policy": "payments", "urgency": {"critical": "none"}}]
    )
    await hold(pager, hours=1)
    await pager.alert()
    await pager.advance(minutes=10)
    assert (take(pager), await fate_timers(pager)) == ([], [])
    await pager.resolve()
