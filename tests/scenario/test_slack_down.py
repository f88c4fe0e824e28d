"""Slack is down: pages go the other way at once, nothing is lost, and nothing is said twice afterwards."""

from __future__ import annotations

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from bot.condition_words import slack_faults
from engine.models import DeliveryStatus, Method, Page, Retry, Via
from engine.notify.slack_watch import SlackWatch
from engine.outage import TOLD_AFTER, Report, Standing, State
from engine.pager.story import story
from tests.scenario.harness import CONFIG, Pager
from tests.scenario.sending import counted

REFUSED = Retry("Slack: http_503")
WITH_ADMIN = CONFIG.replace("- {name: carol,", "- {name: carol, admin: true,")


async def looks(pager: Pager, *, watch: SlackWatch | None = None, **seen: object) -> Standing:
    """One process tells what it sees, and what follows is worked."""
    watch = watch or pager.app.slack_watch
    report = Report(watch.owner, pager.clock.now(), **{"listening": True, **seen})  # type: ignore[arg-type]  # a test's words
    standing = await watch.look(report)
    await pager.app.worker.run_due()
    return standing


async def goes_down(pager: Pager, code: str = "http_503") -> Standing:
    now = pager.clock.now()
    pager.transports[Method.SLACK].always = REFUSED
    return await looks(pager, failed=(now, now, now), code=code)


async def comes_back(pager: Pager) -> Standing:
    pager.clock.move(seconds=1)
    pager.transports[Method.SLACK].always = None
    return await looks(pager, ok_at=pager.clock.now())


def only_pages(pager: Pager) -> None:
    """Who was paged is also told how it ended; that is tested elsewhere."""
    pager._heard = [page for page in pager.pages() if page.kind.value != "status"]


def channels(pager: Pager, address: str) -> list[Page]:
    """What was posted in a channel and not expected yet."""
    return [page for page in pager.pages() if page.address == address]


async def test_a_page_goes_by_sms_at_once(pager: Pager) -> None:
    """The SMS that was due after a minute leaves within two seconds, and says why; Slack is not called."""
    await goes_down(pager)
    pager.transports[Method.SLACK].always = AssertionError("nobody should call Slack")
    await pager.alert()
    await pager.advance(seconds=2)
    page = pager.expect_page("alice", "sms")
    assert page.body["slack_down"] is True
    pager.expect_silence()
    await pager.ack(via=Via.SMS)


async def test_why_says_that_slack_was_down(pager: Pager) -> None:
    """Whoever asks why there was no message in Slack reads it, and what came in its place."""
    await goes_down(pager)
    await pager.alert()
    pager.expect_page("alice", "sms")
    tale = await pager.app.views.tale(1)
    assert tale is not None
    people = (await pager.app.roster.directory()).people
    lines = [line.text for line in story(tale, {one.id: one.name for one in people.values()})]
    assert any("page by slack to alice" in line and "Slack is down: http_503" in line for line in lines)
    assert any(line.startswith("page by sms to alice (level 1), attempt 1: sent") for line in lines)
    await pager.ack(via=Via.SMS)


async def test_pages_that_wait_for_their_next_try_fail_over(pager: Pager) -> None:
    """A dead token: what failed a moment ago is not tried again, and nobody is called before their time
    for that (F-46)."""
    pager.transports[Method.SLACK].always = REFUSED
    await pager.alert()
    pager.expect_page("alice", "sms")  # high urgency does not wait for the second failure
    await pager.answer("escalate")
    pager.expect_page("bob", "sms")
    pager.transports[Method.SLACK].always = AssertionError("nobody should call Slack")
    now = pager.clock.now()
    await looks(pager, failed=(now,), dead_token="token_revoked", dead_at=now, code="token_revoked")
    await pager.advance(seconds=2)
    queued = [one for one in await pager.app.views.deliveries(1) if one.method is Method.SLACK]
    assert {one.reason for one in queued} == {"Slack is down: token_revoked"}
    assert {one.status for one in queued} == {DeliveryStatus.QUEUED}
    pager.silence_ops()
    await pager.ack(via=Via.SMS)
    only_pages(pager)


async def test_whoever_has_only_slack_is_passed_over(pager: Pager) -> None:
    """The level is over at once: nobody waits five minutes for a message that cannot come."""
    await pager.configure(
        CONFIG.replace('contact: {sms: "+12025550101", voice: "+12025550101"},', "").replace(
            "rules: {high: [slack, sms after 1m, voice after 3m], low: [slack]}", "rules: {high: [slack]}"
        )
    )
    await goes_down(pager)
    await pager.alert()
    await pager.advance(seconds=2)
    pager.expect_page("bob", "sms")
    pager.expect_silence()
    await pager.ack(by="bob", via=Via.SMS)


async def test_low_urgency_wakes_nobody_and_arrives_afterwards(pager: Pager) -> None:
    """What may wait waits for Slack: no level is passed over, and the message comes when Slack does."""
    await pager.configure(CONFIG.replace("urgency: {info: none}", "urgency: {critical: low}"))
    await goes_down(pager)
    await pager.alert(service="quiet")
    await pager.advance(minutes=2)
    pager.expect_silence()
    await comes_back(pager)
    await pager.advance(seconds=2)
    pager.expect_page("alice", "slack")
    pager.expect_message("channel", "#ops")
    await pager.ack()


async def test_an_hour_without_slack(pager: Pager) -> None:
    """Every page by SMS, acks work there; afterwards one digest, what is still open, and no flood (F-55)."""
    await goes_down(pager)
    await pager.alert("db-1 is down")
    pager.expect_page("alice", "sms")
    await pager.ack(1, via=Via.SMS)
    await pager.advance(minutes=20)
    await goes_down(pager)
    await pager.alert("db-2 is down")
    pager.expect_page("alice", "sms")
    await pager.resolved_by_source("db-2 is down")
    await pager.advance(minutes=38)
    await goes_down(pager)
    await pager.alert("db-3 is down")
    pager.expect_page("alice", "sms")
    await pager.advance(seconds=30)
    pager.silence_ops()
    assert (await comes_back(pager)).state is State.UP
    await pager.advance(seconds=10)
    (said,) = channels(pager, "#ops")
    first, *others = said.text.splitlines()
    assert first.startswith("Slack was down 2026-03-02 09:00–09:58 UTC (59 min): 3 incidents opened")
    assert "1 acknowledged by SMS" in first
    assert "1 resolved" in first
    assert others == [
        "3 pages went the other way: 3 by SMS.",
        "Still open: #1 db-1 is down; #3 db-3 is down.",
    ]
    pager.expect_message("channel", "#ops")
    page = pager.expect_page("alice", "slack")
    assert page.incident is not None
    assert page.incident.number == 3, "of what was answered meanwhile nothing is posted"
    only_pages(pager)
    pager.expect_silence()
    await pager.resolve(1)
    await pager.ack(3)
    only_pages(pager)


async def test_lines_of_the_past_are_not_posted(pager: Pager) -> None:
    """Notes and notices about incidents that waited tell what the cards show by now: they end unsent."""
    await pager.alert()
    pager.expect_page("alice", "slack")
    await goes_down(pager)
    await pager.answer("note", text="rebooted db-1")
    await pager.ack(via=Via.SMS)
    before = len(await pager.app.views.deliveries(1))
    await pager.advance(minutes=2)
    pager.silence_ops()
    await comes_back(pager)
    await pager.advance(minutes=1)
    pager.expect_message("channel", "#ops")
    pager.expect_silence()
    assert len(await pager.app.views.deliveries(1)) == before


async def test_two_processes_say_it_once(pager: Pager) -> None:
    """Both see the outage and its end; one digest and one alarm come of it."""
    await pager.configure(WITH_ADMIN)
    app = pager.app
    other = SlackWatch(app.database, pager.clock, app.roster.directory, app.nudge, "another host")
    await goes_down(pager)
    pager.clock.move(seconds=TOLD_AFTER.total_seconds())
    now = pager.clock.now()
    for watch in (app.slack_watch, other, app.slack_watch):
        await looks(pager, watch=watch, failed=(now, now, now), code="http_503")
    told = pager.silence_ops()
    assert sorted(page.method for page in told) == ["sms", "url"]
    assert all("Slack is down (http_503)" in page.text for page in told)
    pager.clock.move(seconds=1)
    pager.transports[Method.SLACK].always = None
    for watch in (other, app.slack_watch, other):
        await looks(pager, watch=watch, ok_at=pager.clock.now())
    await pager.advance(seconds=30)
    said = [page.text for page in channels(pager, "#ops")]
    assert [text.split("(")[0] for text in said if text.startswith("Slack was down")] == [
        "Slack was down 2026-03-02 09:00–09:01 UTC "
    ]
    pager.silence_ops()


async def test_a_short_outage_in_which_nothing_happened_is_not_told(pager: Pager) -> None:
    """Ten seconds, and nobody was paged: no alarm, no digest."""
    await goes_down(pager)
    pager.clock.move(seconds=10)
    await comes_back(pager)
    await pager.advance(minutes=5)
    pager.expect_silence()


async def test_a_crash_at_the_end_of_an_outage_loses_nothing(pager: Pager) -> None:
    """The process that saw Slack come back dies before it acted on it: the next one does."""
    await goes_down(pager)
    await pager.alert()
    pager.expect_page("alice", "sms")
    pager.clock.move(minutes=2)
    watch = pager.app.slack_watch
    await watch._write(
        Report(watch.owner, pager.clock.now(), ok_at=pager.clock.now(), listening=True), pager.clock.now()
    )
    await pager.restart()
    pager.transports[Method.SLACK].always = None
    await looks(pager)
    await pager.advance(seconds=5)
    pager.expect_page("alice", "slack")
    assert "1 incident opened" in pager.expect_message("channel", "#ops").text
    await pager.ack()


async def test_a_wrong_clock_is_an_alarm(pager: Pager) -> None:
    """Ten minutes off Slack's date: said once (F-53, B090)."""
    for _ in range(3):
        await looks(pager, skew=timedelta(minutes=10))
    told = pager.silence_ops()
    assert {page.text for page in told} == {
        "The clock here is 10 min off Slack's: signatures fail. Set it by NTP."
    }
    assert len(told) == 2, "the ops channel and the fallback URL"


async def test_a_socket_that_is_none_of_ours_is_said(pager: Pager) -> None:
    """Somebody else listens with our token: a metric and a line of the status while it is so, and one line
    in the log (S-03)."""
    with capture_logs() as logs:
        for _ in range(3):
            await looks(pager, connections=2)
    (said,) = slack_faults(pager.app.slack_watch.figures)
    assert said.startswith("1 more connected to our Slack app than there are processes of ours")
    assert counted("slack_unexpected_connections") == 1
    assert [one["more"] for one in logs if one["event"] == "slack.strange_connections"] == [1]
    await looks(pager, connections=1)
    assert counted("slack_unexpected_connections") == 0
    assert list(slack_faults(pager.app.slack_watch.figures)) == []


@pytest.mark.parametrize("missed", [1, 2, 3])
async def test_what_nobody_reports_does_not_move_the_standing(pager: Pager, missed: int) -> None:
    """Without a report of a process nothing is decided, however often somebody looks."""
    await goes_down(pager)
    pager.clock.move(minutes=missed)
    assert (await pager.app.slack_watch.look()).state is State.DOWN
    pager.silence_ops()
