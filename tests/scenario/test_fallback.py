"""The fallback chain: who is paged when nobody can be found, or nobody answers."""

from __future__ import annotations

import pytest

from tests.scenario.fates import (
    OPS,
    PRIMARY,
    broken,
    change,
    entries,
    fate_timers,
    level,
    rota,
    take,
    to,
    walk,
)
from tests.scenario.harness import Pager

LAST_RESORT = ("json://localhost/last-resort", "url")


async def chain(pager: Pager) -> None:
    """carol is the schedule's fallback, bob the organisation's, admin dave its admin."""
    dave = {"name": "dave", "timezone": "UTC", "admin": True, "contact": {"sms": "+12025550104"}}
    await change(pager, people=[dave | {"rules": {"high": ["sms"]}}], fallback=[{"person": "bob"}])
    await rota(pager, "alice", fallback="carol")


async def test_each_time_one_link_more(pager: Pager) -> None:
    """Schedule, organisation, admins, URLs; every half hour all who were told are told again."""
    await chain(pager)
    await walk(pager, level(PRIMARY, timeout="5m"))
    await pager.alert()
    await pager.advance(minutes=9)
    take(pager)
    await pager.advance(minutes=1)
    carol, bob, dave = ("carol", "sms"), ("bob", "slack"), ("dave", "sms")
    assert take(pager) == [carol]
    await pager.advance(minutes=30)
    assert take(pager) == [bob, carol]
    await pager.advance(minutes=30)
    assert take(pager) == [bob, ("bob", "sms"), carol, dave]
    for _ in range(2):
        await pager.advance(minutes=30)
        assert take(pager) == [bob, ("bob", "sms"), carol, dave, LAST_RESORT]
    assert ((await pager.incident()).status, (await pager.incident()).level) == ("unanswered", -2)
    await pager.ack(by="dave")
    await pager.advance(hours=5)
    # carol, who was texted, hears who has it
    assert [(page.person, page.kind) for page in pager.pages()] == [("carol", "status")]
    take(pager)


async def test_a_pass_that_reaches_nobody_pages_the_fallback_at_once(pager: Pager) -> None:
    """Whatever the policy says about passes; five minutes later the next link is paged as well."""
    await chain(pager)
    await walk(pager, level(OPS, timeout="1m"), repeat=5, on_exhaustion="repeat")
    await pager.alert()
    await pager.advance(minutes=1)
    assert take(pager) == [("#payments", "channel"), ("bob", "slack")]
    assert (await pager.incident()).status == "triggered"
    await pager.advance(minutes=5)
    assert take(pager) == [("bob", "slack"), ("bob", "sms"), ("dave", "sms")]
    assert (await pager.incident()).status == "unanswered"
    await pager.resolve(by="bob")


async def test_a_service_without_a_policy_pages_the_fallback_and_says_why(pager: Pager) -> None:
    """Fail open: somebody hears of it at once."""
    await change(pager, services=[{"name": "orphan"}])
    await pager.alert(service="orphan")
    assert take(pager) == [("carol", "sms")]
    assert "this service has no policy" in (await entries(pager, "escalated"))[0]
    await pager.ack(by="carol")


async def test_links_that_hold_nobody_are_passed_over_and_named(pager: Pager) -> None:
    """The next one that can be reached is paged in the same instant."""
    await walk(pager, level(to("carol")))
    carol = await pager.person("carol")
    await pager.app.setup.deactivate(carol.person_id or 0)
    await pager.alert()
    assert take(pager) == [LAST_RESORT]
    assert "carol should be paged and is no longer here" in (await entries(pager, "escalated"))[0]
    await pager.resolve()


async def test_an_empty_chain_is_an_alarm_and_not_silence(
    pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs Midwatch is told; the incident is on record, and its timer goes on."""
    await change(pager, fallback=[])
    monkeypatch.setattr(pager.app.roster, "_fallback_urls", ())
    await rota(pager)
    await walk(pager, level(PRIMARY))
    await pager.alert()
    assert any("chain is empty" in page.text for page in pager.silence_ops())
    assert "the fallback chain is empty" in (await entries(pager, "escalated"))[0]
    assert (await fate_timers(pager), await broken(pager)) == (["exhaust"], [])
    await pager.ack()


async def test_escalate_now_tries_the_ladder_again_after_the_fallback(pager: Pager) -> None:
    """An override made meanwhile is found, since somebody asked."""
    await rota(pager)
    await walk(pager, level(PRIMARY))
    await pager.alert()
    assert take(pager) == [("carol", "sms")]
    await rota(pager, "bob")
    await pager.answer("escalate")
    assert take(pager) == [("bob", "slack")]
    await pager.ack(by="bob")
