"""Slack is down: pages go the other way at once, nothing is lost, and nothing is said twice afterwards."""

from __future__ import annotations

from engine.models import Method, Retry, Via
from engine.outage import Report, Standing
from tests.scenario.harness import Pager

REFUSED = Retry("Slack: http_503")


async def looks(pager: Pager, *, owner: str = "host:1", **seen: object) -> Standing:
    """One process tells what it sees, and what follows is worked."""
    now = pager.clock.now()
    report = Report(owner, now, listening=bool(seen.pop("listening", True)), **seen)  # type: ignore[arg-type]  # a test's words
    standing = await pager.app.slack_watch.look(report)
    await pager.app.worker.run_due()
    return standing


async def goes_down(pager: Pager, code: str = "http_503") -> Standing:
    now = pager.clock.now()
    return await looks(pager, failed=(now, now, now), code=code)


async def comes_back(pager: Pager) -> Standing:
    pager.clock.move(seconds=1)
    return await looks(pager, ok_at=pager.clock.now())


async def test_a_page_goes_by_sms_at_once(pager: Pager) -> None:
    """Slack down: the SMS that was due after a minute leaves within two seconds, and says why."""
    await goes_down(pager)
    pager.transports[Method.SLACK].always = REFUSED
    await pager.alert()
    await pager.advance(seconds=2)
    page = pager.expect_page("alice", "sms")
    assert page.body["slack_down"] is True
    pager.expect_silence()
    assert await pager.app.slack_watch.look() == pager.app.slack_watch.standing
    await pager.ack(via=Via.SMS)
