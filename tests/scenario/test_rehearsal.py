"""An outage of Slack is rehearsed: for one incident Slack counts as down, and for no other."""

from __future__ import annotations

from engine.directory import Person
from engine.models import IncidentStatus, IncidentView, Via
from engine.pager.rehearsal import Rehearsals
from tests.scenario.harness import Pager


def rehearsals(pager: Pager) -> Rehearsals:
    app = pager.app
    return Rehearsals(app.database, pager.clock, app.roster, app.receiver, app.responder, app.views)


async def begins(pager: Pager) -> IncidentView:
    directory = await pager.app.roster.directory()
    alice: Person = next(one for one in directory.people.values() if one.name == "alice")
    view = await rehearsals(pager).start("primary", alice, await pager.person("alice"))
    await pager.app.worker.run_due()
    return view


async def notes(pager: Pager, view: IncidentView) -> list[str]:
    return [one.text for one in await pager.app.views.timeline(view.id) if one.kind == "note"]


def only_pages(pager: Pager) -> None:
    """Lines in the thread, and who was paged is told how it ended; that is tested elsewhere."""
    pager._heard = [page for page in pager.pages() if page.kind.value not in {"status", "notice"}]


async def test_it_goes_by_sms_and_says_what_arrived(pager: Pager) -> None:
    """No Slack message for it; SMS 4 ends it, and its thread tells who answered when."""
    view = await begins(pager)
    await pager.advance(seconds=2)
    page = pager.expect_page("alice", "sms")
    assert page.body["slack_down"] is True
    pager.expect_silence()
    pager.clock.move(seconds=40)
    assert await rehearsals(pager).finish_due() == 0, "nobody has answered yet"
    await pager.ack(view.number, via=Via.SMS)
    assert await rehearsals(pager).finish_due() == 1
    (said,) = await notes(pager, view)
    assert said.startswith("REHEARSAL over for primary: sms to alice sent 09:00:0")
    assert said.endswith("alice acknowledged after 42 s.")
    assert (await pager.incident(view.number)).status is IncidentStatus.RESOLVED
    assert await rehearsals(pager).finish_due() == 0, "it is said once"
    await pager.app.worker.run_due()
    only_pages(pager)


async def test_a_real_page_meanwhile_goes_by_slack(pager: Pager) -> None:
    """Only the rehearsal's own incident is without Slack."""
    view = await begins(pager)
    await pager.alert("db-1 is down")
    await pager.advance(seconds=3)
    page = pager.expect_page("alice", "slack")
    assert page.incident is not None
    assert page.incident.title == "db-1 is down"
    await pager.ack(view.number, via=Via.SMS)
    await pager.ack(view.number + 1)
    pager.expect_page("alice", "sms")
    only_pages(pager)


async def test_a_key_that_looks_like_one_changes_nothing(pager: Pager) -> None:
    """A source may name its problem as it likes: what is a rehearsal, a row says."""
    await pager.alert("db-1 is down", dedup_key="rehearsal-0123456789abcdef")
    pager.expect_page("alice", "slack")
    await pager.ack()


async def test_it_ends_before_the_second_level(pager: Pager) -> None:
    """Nobody answers: it is over a moment before bob would be woken for nothing."""
    view = await begins(pager)
    await pager.advance(minutes=4, seconds=45)
    assert await rehearsals(pager).finish_due() == 1
    await pager.advance(minutes=30)
    assert (await notes(pager, view))[0].endswith("Nobody acknowledged.")
    pager.expect_pages(("alice", "sms"), ("alice", "voice"))
    only_pages(pager)
    pager.expect_silence()
