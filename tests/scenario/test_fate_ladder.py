"""The ladder: who is paged when, level by level and pass by pass, until a human answers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engine.db import Tx
from engine.models import ORG, Severity, Via
from engine.store import contacts, directory
from tests.scenario.fates import OPS, PRIMARY, change, entries, fate_timers, level, rota, take, to, walk
from tests.scenario.harness import Pager


async def test_steps_of_an_earlier_level_run_on(pager: Pager) -> None:
    """The next level begins while the first one's later rules are still to come."""
    await walk(pager, level(PRIMARY, timeout="2m"), level(to("bob")))
    await pager.alert()
    await pager.advance(minutes=2)
    assert take(pager) == [("alice", "slack"), ("alice", "sms"), ("bob", "slack")]
    await pager.advance(minutes=1)
    assert take(pager) == [("alice", "voice"), ("bob", "sms")]
    await pager.ack()


async def test_a_schedule_with_nobody_on_call_pages_its_fallback(pager: Pager) -> None:
    """At once, in the same level."""
    await rota(pager, fallback="carol")
    await pager.alert()
    assert take(pager) == [("carol", "sms")]
    await pager.ack(by="carol")


async def test_an_empty_level_is_skipped_at_once(pager: Pager) -> None:
    """Nobody waits five minutes for nobody, and the timeline says who was missing."""
    await rota(pager)
    await pager.alert()
    assert take(pager) == [("bob", "slack")]
    assert await entries(pager, "escalated") == ["paging level 2; nobody is on call on primary"]
    await pager.ack(by="bob")


async def test_a_level_of_channels_only_waits_its_time(pager: Pager) -> None:
    """The channel is told, reaches nobody, and the next level comes when its time is over."""
    await walk(pager, level(OPS, timeout="4m"), level(to("bob")))
    await pager.alert()
    await pager.advance(seconds=230)
    assert take(pager) == [("#payments", "channel")]
    await pager.advance(seconds=10)
    assert take(pager) == [("bob", "slack")]
    await pager.ack(by="bob")


async def test_extra_passes_send_everything_again_and_then_nobody_answered(pager: Pager) -> None:
    """`repeat: 1` walks the ladder twice; five minutes later the incident is unanswered."""
    await walk(pager, level(to("carol")), level(to("bob"), timeout="10m"), repeat=1)
    await pager.alert()
    await pager.advance(minutes=14)
    assert take(pager) == [("bob", "slack"), ("bob", "sms"), ("carol", "sms")]
    await pager.advance(minutes=1)
    assert take(pager) == [("carol", "sms")]
    await pager.advance(minutes=19)
    assert ((await pager.incident()).status, (await pager.incident()).pass_) == ("triggered", 1)
    await pager.advance(minutes=1)
    assert (await pager.incident()).status == "unanswered"
    assert await fate_timers(pager) == ["exhaust"]
    await pager.ack()
    take(pager)


async def test_on_exhaustion_repeat_goes_round_until_somebody_answers(pager: Pager) -> None:
    """It is never unanswered, and every pass pages again."""
    await walk(pager, level(to("carol"), timeout="5m"), on_exhaustion="repeat")
    await pager.alert()
    await pager.advance(minutes=59)
    assert take(pager) == [("carol", "sms")] * 12
    incident = await pager.incident()
    assert (incident.status, incident.pass_) == ("triggered", 11)
    await pager.ack(by="carol")


async def test_urgency_none_pages_nobody(pager: Pager) -> None:
    """It stands there, nothing is armed, and the source's resolve closes it."""
    await pager.alert(service="quiet", severity=Severity.INFO)
    await pager.advance(hours=2)
    pager.expect_silence()
    assert ((await pager.incident()).status, await fate_timers(pager)) == ("triggered", [])
    await pager.resolved_by_source(service="quiet", severity=Severity.INFO)
    assert (await pager.incident()).status == "resolved"


async def test_low_urgency_climbs_by_the_low_rules_and_ends_with_a_line(pager: Pager) -> None:
    """At the end nobody else is told, and nothing stays armed."""
    await change(pager, services=[{"name": "checkout", "policy": "payments", "urgency": {"warning": "low"}}])
    await pager.alert(severity=Severity.WARNING)
    await pager.advance(minutes=20)
    assert take(pager) == [("alice", "slack"), ("bob", "slack")]
    assert ((await pager.incident()).status, await fate_timers(pager)) == ("unanswered", [])
    await pager.advance(hours=3)
    pager.expect_silence()
    assert (await pager.ack()).changed


async def test_an_incident_walks_its_policy_as_it_was_when_it_opened(pager: Pager) -> None:
    """An edit meets the next incident; the open one goes on as it began."""
    await pager.alert()
    take(pager)
    await pager.advance(minutes=1)
    await walk(pager, level(to("carol"), timeout="1m"))
    await pager.advance(minutes=4)
    assert ("bob", "slack") in take(pager)
    await pager.alert("disk is full")
    assert take(pager) == [("carol", "sms")]
    await pager.ack(1)
    await pager.ack(2)


async def test_an_edit_between_opening_and_the_first_page_is_too_late(pager: Pager) -> None:
    """What counts is when it opened, not when the first timer fired or a person acted."""
    from tests.scenario.harness import fire

    await pager.receive(fire())
    pager.clock.move(seconds=1)
    await walk(pager, level(to("carol")))
    await pager.app.worker.run_due()
    assert take(pager) == [("alice", "slack")]
    await pager.ack()


async def test_an_override_counts_from_the_next_level_on(pager: Pager) -> None:
    """Who is on call is asked anew at each level."""
    await walk(pager, level(to("bob")), level(PRIMARY))
    await pager.alert()
    now, schedules = pager.clock.now(), (await pager.app.roster.directory()).schedules
    carol = await pager.person("carol")
    await pager.app.roster.overrides.set(
        schedule_id=next(iter(schedules)),
        person_id=carol.person_id or 0,
        start_at=now,
        end_at=now + timedelta(hours=1),
        actor=carol,
    )
    await pager.advance(minutes=5)
    for told in ("carol", "alice"):
        pager.expect_page(told, kind="notice")  # of the override itself
    assert take(pager) == [("bob", "slack"), ("bob", "sms"), ("carol", "sms")]
    await pager.ack(by="carol")


async def disable(pager: Pager, name: str) -> None:
    """Every contact method of this person failed for good (they answered STOP, say)."""
    known = await pager.app.roster.directory()
    (person,) = (one for one in known.people.values() if one.name == name)

    async def unit(tx: Tx) -> None:
        for method in person.methods:
            await contacts.disable_method(tx, ORG, method.id, "STOP")
        await directory.bump(tx, ORG)

    await pager.app.database.write(unit)


async def test_a_person_without_a_usable_method_is_skipped_and_named(pager: Pager) -> None:
    """The level goes on to whoever can be reached."""
    await change(pager, people=[{"name": "dora", "timezone": "UTC", "contact": {"sms": "+12025550105"}}])
    await walk(pager, level(to("dora"), timeout="30m"), level(to("bob")))
    await disable(pager, "dora")
    await pager.alert()
    assert take(pager) == [("bob", "slack")]
    (text,) = await entries(pager, "escalated")
    assert text == "paging level 2; dora has no contact method that can be used"
    await pager.ack(by="bob")


async def test_a_person_who_left_is_skipped_and_named(pager: Pager) -> None:
    """Deactivated before the level, nobody waits for them."""
    alice = await pager.person("alice")
    await pager.app.setup.deactivate(alice.person_id or 0)
    await pager.alert()
    assert take(pager) == [("bob", "slack")]
    assert "alice should be paged and is no longer here" in (await entries(pager, "escalated"))[0]
    await pager.ack(by="bob")


async def test_an_ack_timeout_pages_again(pager: Pager) -> None:
    """Acknowledged and not resolved in time: everything may be sent again."""
    await walk(pager, level(PRIMARY), ack_timeout="30m")
    await pager.alert()
    await pager.ack()
    assert (take(pager), await fate_timers(pager)) == ([("alice", "slack")], ["ack_timeout"])
    await pager.advance(minutes=30)
    assert ((await pager.incident()).status, take(pager)) == ("triggered", [("alice", "slack")])
    await pager.resolve()
    assert await fate_timers(pager) == []


@pytest.mark.parametrize("late", [3, 90])
async def test_after_an_outage_each_late_timer_fires_once_and_in_order(pager: Pager, late: int) -> None:
    """However long nothing ran: the level that was due is paged, once, and goes on from there."""
    await pager.alert()
    take(pager)
    await pager.outage(minutes=late)
    heard = take(pager)
    assert len(heard) == len(set(heard))
    assert ("bob", "slack") in heard or late == 3
    await pager.ack(via=Via.API)
    await pager.advance(hours=2)
    pager.expect_silence()
