"""Messages that fail: when they are tried again, when they are dead, and who is told then."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise

import pytest

from engine.config.parse import parse_config
from engine.directory import STOPPED
from engine.models import ORG, DeliveryStatus, Method, Rejected, Retry, Severity, Throttled
from engine.pager.alarm import raise_alarm
from engine.pager.consent import OFF
from engine.pager.setup import Setup
from engine.vault import Vault
from tests.fakes import START, FakeClock, FakeTransport
from tests.scenario.harness import Pager
from tests.scenario.sending import LADDER, Killed, alarms, counted, only, statuses, stored, tries

LOST = Retry("the provider is lost")


@pytest.fixture
async def pager(any_database_url: str, clock: FakeClock) -> AsyncIterator[Pager]:
    made = await Pager(any_database_url, clock, LADDER).start()
    yield made
    await made.close()
    made.silence_ops()
    made.expect_silence()


def seconds(delta: timedelta) -> float:
    return delta.total_seconds()


async def test_transient_failures_are_tried_three_more_times_and_then_dead(pager: Pager) -> None:
    """Retries come after 30, 60 and 120 s; then it is a dead row with its reason, an alarm and a metric."""
    dead = counted("deliveries_dead_total", method="sms")
    pager.transports[Method.SMS].fail_next(*[LOST] * 4)
    await pager.alert(service="search")
    await pager.advance(minutes=4)
    page = next(one for one in await stored(pager, Method.SMS) if one.level == 0)
    numbers, outcomes, at = zip(*await tries(pager, page.id), strict=True)
    assert (numbers, outcomes) == ((1, 2, 3, 4), ("retry",) * 4)
    for expected, (before, after) in zip((30, 60, 120), pairwise(at), strict=True):
        assert seconds(after - before) == pytest.approx(expected, rel=0.11)
    assert (page.status, page.reason, page.attempts) == (DeliveryStatus.DEAD, LOST.reason, 4)
    assert page.ended_at == at[-1]
    assert counted("deliveries_dead_total", method="sms") == dead + 1
    (text, _), _ = await alarms(pager)
    assert text == f"#1: a message by sms to ben could not be delivered: {LOST.reason}"
    assert {alarm.address for alarm in pager.silence_ops()} == {"#ops", "json://localhost/last-resort"}
    pager.expect_page("ann", "sms")
    await pager.ack(by="ann")


async def test_when_the_last_page_of_a_level_is_dead_the_next_level_is_paged_at_once(pager: Pager) -> None:
    """The ladder goes on past dead pages, without waiting for the level's time (I10)."""
    pager.transports[Method.SMS].fail_next(Rejected("no such number"))
    await pager.alert(service="search")
    pager.expect_page("ann", "sms")
    incident = await pager.incident()
    assert (incident.level, incident.next_step_at) == (1, START + timedelta(minutes=10))
    await pager.ack(by="ann")


async def test_a_level_with_one_living_page_keeps_its_time(pager: Pager) -> None:
    """While one of a level's pages may still reach somebody, the next level waits."""
    pager.transports[Method.SMS].fail_next(Rejected("no such number"))
    await pager.alert()
    pager.expect_page("ann", "voice")
    await pager.advance(minutes=9)
    pager.silence_ops()
    pager.expect_silence()
    await pager.ack(by="ann")


async def test_the_first_failure_of_a_high_page_pulls_the_next_rule(pager: Pager) -> None:
    """Who may be awake because of this page is called now, not in three minutes; the SMS is tried on."""
    pager.transports[Method.SMS].fail_next(LOST)
    await pager.alert()
    pager.expect_page("ann", "voice")
    pager.expect_silence()
    await pager.advance(seconds=34)
    pager.expect_page("ann", "sms")
    await pager.advance(minutes=4)
    pager.expect_silence()
    await pager.ack(by="ann")


async def test_a_low_page_keeps_its_rules_when_it_fails_for_now(pager: Pager) -> None:
    """Nobody is called early for something of low urgency."""
    pager.transports[Method.SMS].fail_next(LOST)
    await pager.alert(severity=Severity.WARNING)
    await pager.advance(seconds=34)
    pager.expect_page("ann", "sms")
    pager.expect_silence()
    await pager.ack(by="ann")


async def test_a_permanent_failure_fires_the_next_rule_now(pager: Pager) -> None:
    """What will never work is not tried again."""
    pager.transports[Method.SMS].fail_next(Rejected("the person has replied STOP"))
    await pager.alert()
    pager.expect_page("ann", "voice")
    sms = await only(pager, Method.SMS)
    assert (sms.status, sms.reason, sms.attempts) == (DeliveryStatus.DEAD, "the person has replied STOP", 1)
    await pager.advance(minutes=5)
    pager.silence_ops()
    pager.expect_silence()
    await pager.ack(by="ann")


async def test_whoever_replied_stop_is_texted_no_more(pager: Pager) -> None:
    """The provider says so (21610): the method is off at once, its owner and the ops channel are told, and
    the next page goes by voice (F-56)."""
    pager.transports[Method.SMS].fail_next(Rejected("the person has replied STOP", stopped=True))
    await pager.alert()
    pager.expect_page("ann", "voice")
    assert pager.expect_message("slack", "U0ANN").text == OFF
    ops = [page.text for page in pager.silence_ops()]
    assert ops == ["#1: a message by sms to ann could not be delivered: the person has replied STOP"] * 2
    await pager.ack(by="ann")
    ann = next(one for one in (await pager.app.roster.directory()).people.values() if one.name == "ann")
    assert {one.kind: one.disabled_reason for one in ann.methods}[Method.SMS] == STOPPED
    await pager.advance(minutes=1)  # nobody is called twice in a minute
    await pager.alert("db-2 is down")
    pager.expect_page("ann", "voice")
    pager.expect_silence()
    await pager.ack(2, by="ann")
    setup = Setup(pager.app.database, pager.clock, Vault("a secret for tests only"))
    await setup.apply(parse_config(await setup.export()))  # must not undo what the person said
    ann = (await pager.app.roster.directory()).people[ann.id]
    assert {one.kind: one.disabled_reason for one in ann.methods}[Method.SMS] == STOPPED


async def test_being_told_to_wait_is_no_attempt(pager: Pager) -> None:
    """A throttled page goes out when it may, with all its tries left, and the other rules keep their time."""
    pager.transports[Method.SMS].fail_next(*[Throttled(START + timedelta(seconds=n)) for n in (5, 10, 20)])
    await pager.alert()
    await pager.advance(seconds=19)
    pager.expect_silence()
    assert (await only(pager, Method.SMS)).attempts == 0
    await pager.advance(seconds=1)
    pager.expect_page("ann", "sms")
    sms = await only(pager, Method.SMS)
    assert (sms.attempts, [outcome for _, outcome, _ in await tries(pager, sms.id)]) == (
        1,
        ["throttled", "throttled", "throttled", "sent"],
    )
    pager.expect_silence()
    await pager.ack(by="ann")


async def test_a_page_that_must_wait_long_goes_by_the_next_rule_too(pager: Pager) -> None:
    """More than half a minute is too long for one who sleeps (F-41)."""
    pager.transports[Method.SMS].fail_next(Throttled(START + timedelta(seconds=31)))
    await pager.alert()
    pager.expect_page("ann", "voice")
    await pager.advance(seconds=31)
    pager.expect_page("ann", "sms")
    await pager.ack(by="ann")


async def test_without_a_provider_the_next_rule_fires_and_the_reason_is_stored(pager: Pager) -> None:
    """A method for which nothing is set up is a dead page that says so."""
    del pager.transports[Method.SMS]
    await pager.restart()
    await pager.alert()
    pager.expect_page("ann", "voice")
    assert (await only(pager, Method.SMS)).reason == "no provider for sms is set up"
    await pager.ack(by="ann")


@pytest.mark.parametrize(
    "lost", [Retry("the credentials are refused", down=True), Retry("it cannot be reached", unsent=True)]
)
async def test_a_provider_that_is_down_is_passed_over_at_once(pager: Pager, lost: Retry) -> None:
    """One that refuses us, or cannot be reached, costs no attempt: this page and the next go by the second
    provider (F-57). One that may have sent it does not: nobody is paged twice for that."""
    first = pager.transports[Method.SMS]
    first.always = lost
    second = FakeTransport(frozenset({Method.SMS}), "second")
    pager.transports[Method.EMAIL] = second  # any free place: it is listed after the first
    await pager.restart()
    for number, summary in enumerate(("first", "second"), 1):
        await pager.alert(summary)
        pager.expect_page("ann", "sms")
        (sms,) = await stored(pager, Method.SMS, number)
        assert (sms.attempts, sms.provider) == (1, "second")
        await pager.ack(number, by="ann")
        await pager.advance(minutes=1)  # nobody is texted twice in a minute
    said = {page.text for page in pager.silence_ops()}
    refused = "no message by sms goes out this way until it is put right: the credentials are refused"
    assert said == ({refused} if lost.down else set())  # one alarm for both, though both arrived
    pager.expect_silence()


async def test_a_provider_that_never_answers_has_not_every_attempt(pager: Pager) -> None:
    """It may have sent it, so the first attempt stays with it; the next begins with the second provider,
    though the breaker is closed still."""
    first = pager.transports[Method.SMS]
    first.always = Retry("no answer in time: it may have been sent")
    second = FakeTransport(frozenset({Method.SMS}), "second")
    pager.transports[Method.EMAIL] = second  # any free place: it is listed after the first
    await pager.restart()
    await pager.alert()
    pager.expect_page("ann", "voice")  # the person's next rule, at the first failure
    assert second.sent == []
    await pager.advance(seconds=40)
    pager.expect_page("ann", "sms")
    (sms,) = await stored(pager, Method.SMS, 1)
    assert (sms.attempts, sms.provider) == (2, "second")
    await pager.ack(by="ann")


async def test_when_every_provider_is_down_it_is_tried_again(pager: Pager) -> None:
    """An open breaker with nobody behind it is a failure for now, and the next rule fires."""
    pager.transports[Method.SMS].fail_next(Retry("the credentials are refused", down=True))
    await pager.alert("first")
    pager.expect_page("ann", "voice")
    await pager.alert("second")
    (second,) = await stored(pager, Method.SMS, 2)
    assert (second.status, second.reason) == (DeliveryStatus.QUEUED, "every provider for sms is down")
    await pager.advance(minutes=4)
    pager.expect_page("ann", "voice")  # a minute after the first call
    texted = [one for one in pager.pages() if one.method is Method.SMS]  # in one, if they are due at once
    assert sorted(view.number for one in texted for view in one.incidents) == [1, 2]
    for _ in texted:
        pager.expect_page("ann", "sms")
    await pager.ack(1, by="ann")
    await pager.ack(2, by="ann")


async def test_a_transport_that_raises_is_tried_again(pager: Pager) -> None:
    """Nobody knows whether it was sent: an attempt with a reason, and another one."""
    pager.transports[Method.SMS].fail_next(RuntimeError("boom"))
    await pager.alert()
    assert (await only(pager, Method.SMS)).reason == "unexpected RuntimeError"
    await pager.advance(seconds=34)
    pager.expect_pages(("ann", "voice"), ("ann", "sms"))
    await pager.ack(by="ann")


async def test_a_message_that_ends_the_process_each_time_is_given_up(pager: Pager) -> None:
    """Attempts that nobody recorded count; after four the page is dead and the ladder goes on (F-10)."""
    unknown = counted("attempts_unknown_total")
    for _ in range(4):
        pager.transports[Method.SMS].fail_next(Killed())
    await pager.alert(service="search")
    for _ in range(4):
        await pager.outage(seconds=31)
    page = next(one for one in await stored(pager, Method.SMS) if one.level == 0)
    assert (page.status, page.reason) == (DeliveryStatus.DEAD, "none of its attempts ever ended")
    assert [outcome for _, outcome, _ in await tries(pager, page.id)] == ["unknown"] * 4 + ["rejected"]
    assert counted("attempts_unknown_total") == unknown + 4
    pager.expect_page("ann", "sms")
    await pager.ack(by="ann")


async def test_a_dead_alarm_raises_no_alarm(pager: Pager) -> None:
    """When the alarms themselves cannot be delivered they die quietly: in the log and the metrics."""
    for method in (Method.SMS, Method.CHANNEL, Method.URL):
        pager.transports[method].always = Rejected("nothing works")
    await pager.alert(service="search")
    await pager.advance(minutes=10)
    causes = [text for text, _ in await alarms(pager)]
    assert len(causes) == len(set(causes)) * 2
    assert all("could not be delivered" not in text or "by sms" in text for text in causes)
    pager._collect().clear()
    await pager.resolve(by="ann")


async def test_an_alarm_is_said_once_per_cause_and_quarter_of_an_hour(pager: Pager) -> None:
    """A cause that comes up again and again is one message to each place in fifteen minutes (F-17)."""

    async def alarm(cause: str) -> None:
        now = pager.clock.now()
        await pager.app.database.write(lambda tx: raise_alarm(tx, ORG, cause, cause, now))

    for _ in range(3):
        await alarm("disk")
    await alarm("network")
    await pager.advance(minutes=1)
    assert len(pager.silence_ops()) == 4
    await pager.advance(minutes=14)
    await alarm("disk")
    await pager.advance(minutes=1)
    assert len(pager.silence_ops()) == 2


async def test_what_a_resolve_cancelled_is_sent_after_all_when_it_fires_again(pager: Pager) -> None:
    """A re-fire within the flap window takes the queued pages up again; their attempts go on counting."""
    pager.transports[Method.SMS].fail_next(LOST)
    await pager.alert()
    pager.expect_page("ann", "voice")
    await pager.resolved_by_source()
    sms = await only(pager, Method.SMS)
    assert (await statuses(pager)) == {"sms": "cancelled", "voice": "sent", "slack": "queued"}  # an update
    await pager.advance(seconds=50)
    pager.expect_silence()
    await pager.alert()
    pager.expect_page("ann", "sms")
    assert [(number, outcome) for number, outcome, _ in await tries(pager, sms.id)] == [
        (1, "retry"),
        (2, "sent"),
    ]
    pager.expect_silence()
    await pager.ack(by="ann")
