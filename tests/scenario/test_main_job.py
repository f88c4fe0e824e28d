"""The main job: an alert pages the person on call, and an answer stops it."""

from __future__ import annotations

import pytest

from engine.models import Via
from tests.scenario.harness import Pager


async def test_an_unacknowledged_page_goes_on_by_the_rules_and_then_to_the_second_level(pager: Pager) -> None:
    """Slack at once, SMS after a minute, a call after three, the next level after five."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    pager.expect_silence()
    await pager.advance(minutes=1)
    pager.expect_page("alice", "sms")
    await pager.advance(minutes=2)
    pager.expect_page("alice", "voice")
    pager.expect_silence()
    await pager.advance(minutes=2)
    pager.expect_page("bob", "slack")
    pager.expect_silence()
    await pager.advance(minutes=1)
    pager.expect_page("bob", "sms")


@pytest.mark.parametrize("via", [Via.SLACK_BUTTON, Via.SLACK_COMMAND, Via.SMS, Via.VOICE, Via.API])
async def test_an_ack_stops_all_of_it(pager: Pager, via: Via) -> None:
    """After an ack nobody is told anything more, by whichever way it came."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    answer = await pager.ack(via=via)
    assert (answer.changed, answer.incident.status) == (True, "acknowledged")
    assert (answer.incident.acknowledged_by, answer.incident.acknowledged_via) == ("alice", via)
    await pager.advance(hours=2)
    pager.expect_silence()


async def test_the_same_alert_two_hundred_times_is_one_page_and_a_count(pager: Pager) -> None:
    """Repeats are counted on one incident and page nobody (F-67, B005)."""
    for _ in range(200):
        await pager.alert()
    pager.expect_page("alice", "slack")
    pager.expect_silence()
    (incident,) = await pager.open_incidents()
    assert (incident.number, incident.alert_count, incident.event_count) == (1, 1, 200)
    await pager.ack()


async def test_the_source_resolves_what_it_fired(pager: Pager) -> None:
    """When its last alert is over the incident is resolved, and nothing more is sent."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    await pager.resolved_by_source()
    incident = await pager.incident()
    assert (incident.status, incident.resolved_via, incident.firing_count) == ("resolved", Via.SOURCE, 0)
    await pager.advance(hours=1)
    pager.expect_silence()


async def test_a_restart_between_alert_and_page_still_pages_once(pager: Pager) -> None:
    """The process dies after the 2xx; the next one pages, once."""
    from tests.scenario.harness import fire

    await pager.receive(fire())
    await pager.restart()
    pager.expect_silence()
    await pager.outage(minutes=0.5)
    pager.expect_page("alice", "slack")
    await pager.ack()
    pager.expect_silence()


async def test_nobody_answers_and_the_fallback_is_paged_until_somebody_does(pager: Pager) -> None:
    """At the end of the ladder the incident is unanswered, the fallback is told, and a late ack works."""
    await pager.alert()
    await pager.advance(minutes=15)
    assert (await pager.incident()).status == "triggered"
    await pager.advance(minutes=5)
    assert (await pager.incident()).status == "unanswered"
    told = {(page.person, page.method.value) for page in pager.pages()}
    assert ("carol", "sms") in told
    pager._heard.clear()
    await pager.advance(minutes=30)
    pager.expect_page("carol", "sms")
    answer = await pager.ack(by="carol")
    assert answer.changed
    pager._heard.clear()
    await pager.advance(hours=3)
    pager.expect_silence()
