"""Mistakes that other pagers and job queues made with time, leases and retries, told as stories of ours.

Each names the complaint that taught it; docs/faults.md has the whole list.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bot.slack import client as slack
from engine.models import ORG, LaneName, Method, Retry, TimerKind
from engine.notify import apprise_url, email, twilio
from engine.notify.pipeline import SEND_TIMEOUT
from engine.schedule import next_change, parse_schedule
from engine.store import timers
from engine.store.due import beginnings, near
from engine.store.timers import Arming
from engine.worker import LEASE
from tests.fakes import START
from tests.scenario.fates import level, soon, take, to, walk
from tests.scenario.harness import Pager

MORNING = START + timedelta(hours=15)


async def test_what_is_due_in_the_morning_outlives_a_restart_in_the_night(pager: Pager) -> None:
    """A snooze until nine, and a restart at seven: paged at nine, not before and not never
    (B039, grafana/oncall#1206)."""
    await pager.alert()
    pager.expect_page("alice")
    await pager.answer("snooze", until=MORNING)
    await pager.advance(hours=13)
    await pager.restart()
    await pager.advance(hours=1, minutes=59, seconds=59)
    assert take(pager) == []
    await pager.advance(seconds=2)
    assert take(pager) == [("alice", "slack")]


async def test_a_level_gets_the_whole_of_its_time(pager: Pager) -> None:
    """The next level is paged five minutes later, and not a second earlier (B041, grafana/oncall#1931)."""
    await walk(pager, level(to("carol")), level(to("bob"), timeout="10m"))
    await pager.alert()
    assert await soon(pager) == [("carol", "sms")]
    await pager.advance(minutes=4, seconds=58)
    assert take(pager) == []
    await pager.advance(seconds=1)
    assert take(pager) == [("bob", "slack")]


async def test_an_ack_takes_back_the_rule_that_was_still_to_come(pager: Pager) -> None:
    """Slack at once, an SMS after a minute, an ack after half of it: no SMS (B043, grafana/oncall#4654)."""
    await pager.alert()
    pager.expect_page("alice")
    await pager.advance(seconds=30)
    await pager.ack()
    take(pager)
    await pager.advance(hours=1)
    assert take(pager) == []


async def test_two_people_of_a_level_are_one_step_of_the_ladder(pager: Pager) -> None:
    """Both are told once, and the incident climbs once (B045, target/goalert#912)."""
    await walk(pager, level(to("alice"), to("bob")), level(to("carol"), timeout="10m"))
    await pager.alert()
    assert await soon(pager) == [("alice", "slack"), ("bob", "slack")]
    steps = [one.kind for one in await pager.app.views.timeline((await pager.incident()).id)]
    assert steps.count("escalated") == 1
    await pager.ack()


async def test_what_repeats_is_made_up_for_once(pager: Pager) -> None:
    """Nobody answers, and nothing runs for three hours: the fallback is asked again once, not six times
    (B049, agronholm/apscheduler#463)."""
    await walk(pager, level(to("bob")))
    await pager.alert()
    await pager.advance(minutes=11)
    assert ("carol", "sms") in take(pager)
    await pager.outage(hours=3)
    await pager.advance(seconds=1)
    assert take(pager).count(("carol", "sms")) == 1
    await pager.ack()


async def test_arming_one_timer_wakes_no_other(pager: Pager) -> None:
    """What has fired stays fired when a new timer is armed (B050, agronholm/apscheduler#5)."""
    await pager.alert()
    pager.expect_page("alice")
    await pager.alert("db-2 is down")
    heard = await soon(pager)
    assert heard == [("alice", "slack")]
    assert len((await pager.incident(1)).receipts) == len((await pager.incident(2)).receipts)
    for number in (1, 2):
        await pager.ack(number)


async def test_a_clock_set_back_fires_nothing_early_and_nothing_twice(pager: Pager) -> None:
    """Ten minutes back: what is due comes at its time, what was sent stays sent
    (B059, Metaswitch/chronos#85)."""
    await walk(pager, level(to("carol")), level(to("bob"), timeout="1h"))
    await pager.alert()
    assert await soon(pager) == [("carol", "sms")]
    pager.clock.move(minutes=-10)
    await pager.restart()
    await pager.app.worker.run_due()
    assert take(pager) == []
    await pager.advance(minutes=14, seconds=58)
    assert take(pager) == []
    await pager.advance(seconds=2)
    assert take(pager) == [("bob", "slack")]
    await pager.ack()


async def test_a_provider_that_was_away_for_seconds_costs_half_a_minute(pager: Pager) -> None:
    """Down for five seconds, it has the message by the thirtieth (B061, louislam/uptime-kuma#6046)."""
    await walk(pager, level(to("carol")))
    pager.transports[Method.SMS].always = Retry("it is down")
    await pager.alert()
    await pager.advance(seconds=5)
    pager.transports[Method.SMS].always = None
    assert take(pager) == []
    await pager.advance(seconds=28)
    assert take(pager) == [("carol", "sms")]
    await pager.ack()


async def test_only_what_failed_is_sent_again(pager: Pager) -> None:
    """The SMS fails, the Slack message went out: the SMS alone is tried again
    (B063, prometheus/alertmanager#1494)."""
    await pager.alert()
    pager.expect_page("alice")
    pager.transports[Method.SMS].fail_next(Retry("it is down"))
    await pager.advance(minutes=1)
    await pager.advance(seconds=35)
    assert take(pager).count(("alice", "sms")) == 1
    sent = [one for one in (await pager.incident()).receipts if one.method is Method.SLACK]
    assert len(sent) == 1
    await pager.ack()


async def test_a_clock_set_back_makes_no_long_sleep(pager: Pager) -> None:
    """With a timer known that is an hour away by the new time, the loops still look each second
    (B058, quartznet/quartznet#1508)."""
    await pager.alert()
    pager.expect_page("alice")
    await pager.advance(seconds=58)
    horizon, lanes = pager.app.worker.horizon, pager.app.worker.lanes
    await horizon._look()
    assert any(lane._known.next_due for lane in lanes), "the SMS that is due in two seconds"
    pager.clock.move(hours=-1)
    for loop in (horizon, *lanes):
        assert loop._until_next() <= timedelta(seconds=1)
    await pager.ack()


def test_handoffs_move_on_through_the_hour_that_comes_twice() -> None:
    """From any instant the next handoff is later, and each comes once: 03:30 the first time only
    (F-29, B051, agronholm/apscheduler#1036)."""
    layer = {"name": "l", "users": ["ana", "ben"], "start": "2017-10-28T00:30"}
    layer["rotation"] = {"every": 1, "unit": "hour"}
    schedule = parse_schedule({"name": "s", "timezone": "Europe/Helsinki", "layers": [layer]})
    night = datetime(2017, 10, 28, 23, 45, tzinfo=UTC)
    handoffs = [night]
    for _ in range(4):
        handoffs.append(next_change(schedule, handoffs[-1]) or night)
    assert [f"{one:%H:%M}" for one in handoffs[1:]] == ["00:30", "02:30", "03:30", "04:30"]
    assert next_change(schedule, datetime(2017, 10, 29, 1, 45, tzinfo=UTC)) == handoffs[2]


@pytest.mark.parametrize("timeout", [twilio.TIMEOUT, email.TIMEOUT, apprise_url.TIMEOUT, slack.TIMEOUT])
def test_no_send_can_outlive_its_lease(timeout: timedelta) -> None:
    """Every transport gives up in less than a third of the lease, and the pipeline sees to it
    (B057, hexpm/hexpm PR#1825)."""
    assert timeout <= SEND_TIMEOUT < LEASE / 3


async def test_a_rescue_that_comes_too_late_changes_nothing(pager: Pager) -> None:
    """It reads a stuck timer, the worker records, it writes: nothing (B052, riverqueue/river#1302)."""
    now, database = pager.clock.now(), pager.app.database
    await database.write(lambda tx: timers.arm(tx, ORG, [Arming(TimerKind.DELIVER, 7, now)]))
    queue = beginnings([LaneName.DELIVER])
    async with database.snapshot() as tx:
        found, _ = await near(tx, queue, now, now, 10)

    async def taken(owner: str, at: datetime) -> list[timers.Timer]:
        return await database.write(lambda tx: timers.claim(tx, found, owner, at + LEASE, at))

    (held,) = await taken("worker", now)
    async with database.snapshot() as tx:
        stuck, _ = await near(tx, queue, now + LEASE, now + LEASE, 10)
    assert await database.write(lambda tx: timers.finish(tx, held))
    assert (
        await database.write(lambda tx: timers.claim(tx, stuck, "rescue", now + 2 * LEASE, now + LEASE)) == []
    )
