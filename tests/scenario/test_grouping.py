"""What belongs together: joiners and whom they tell, groups, their windows and their ends."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from engine.db import Database, Tx
from engine.directory import Service
from engine.models import ORG, Action, Event, Severity, Via
from engine.schema import alerts, events, incidents, timeline
from engine.store import cards
from tests.fakes import START, FakeClock
from tests.scenario.harness import CONFIG, Pager
from tests.scenario.receiving import Receiving, end, fire, over

MILD = {"severity": Severity.WARNING, "raw_severity": "warning"}


async def acknowledged(pager: Pager, **event: object) -> None:
    """db-1 of group g fires, and alice takes it."""
    await pager.alert("db-1", group_key="g", **event)
    pager.expect_page("alice", "slack")
    await pager.ack()
    await post_cards(pager)
    await pager.advance(seconds=1)  # Slack's pace
    pager.expect_silence()


async def post_cards(pager: Pager) -> None:
    """As Slack would have: a thread line waits until its card stands."""

    async def unit(tx: Tx) -> None:
        for card, _ in await cards.of_open_incidents(tx, ORG):
            await cards.placed(tx, card, "C0PAYMENTS", f"{card}.0", pager.clock.now())

    await pager.app.database.write(unit)


# --- joiners -----------------------------------------------------------------------------------------------


async def test_a_joiner_of_a_triggered_incident_pages_nobody_again(pager: Pager) -> None:
    """It is counted on the incident that is being paged for already (B010)."""
    await pager.alert("db-1", group_key="g")
    pager.expect_page("alice", "slack")
    receipt = await pager.alert("db-2", group_key="g")
    assert (receipt.status, receipt.incident_number) == ("joined", 1)
    pager.expect_silence()
    incident = await pager.incident()
    assert (incident.alert_count, incident.firing_count, incident.round) == (2, 2, 1)
    await pager.ack()


async def test_a_joiner_that_is_louder_starts_the_paging_anew(pager: Pager) -> None:
    """A low incident that a critical alert joins is paged by the high rules, from level one."""
    await pager.alert("slow", group_key="g", **MILD)
    pager.expect_page("alice", "slack")
    await pager.advance(minutes=2)
    pager.expect_silence()
    await pager.alert("down", group_key="g")
    pager.expect_page("alice", "slack")
    await pager.advance(minutes=1)
    pager.expect_page("alice", "sms")
    incident = await pager.incident()
    assert (incident.urgency, incident.severity, incident.round) == ("high", "critical", 2)
    await pager.ack()


async def test_a_storm_of_joiners_tells_who_acknowledged_once_and_quietly(pager: Pager) -> None:
    """A thread line and a DM for the first of ten; the ladder stays where it is."""
    await acknowledged(pager)
    for n in range(2, 12):
        await pager.alert(f"db-{n}", group_key="g")
    told = pager.expect_page("alice", "slack", kind="status")
    said = pager.expect_message("channel", "#payments")
    assert "db-2" in told.body["text"]
    assert (said.kind, said.body["text"]) == ("status", told.body["text"])
    pager.expect_silence()
    await pager.advance(hours=3)
    pager.expect_silence()
    assert ((await pager.incident()).status, (await pager.incident()).alert_count) == ("acknowledged", 11)


async def test_a_worse_joiner_does_not_hide_behind_an_ack(pager: Pager) -> None:
    """A critical alert that joins an acknowledged warning pages again."""
    await acknowledged(pager, **MILD)
    await pager.alert("down", group_key="g")
    pager.expect_page("alice", "slack")
    assert ((await pager.incident()).status, (await pager.incident()).round) == ("triggered", 2)
    await pager.ack()


@pytest.mark.parametrize(("minutes", "pages"), [(59, False), (61, True)])
async def test_an_ack_of_an_hour_ago_does_not_speak_for_a_new_alert(
    pager: Pager, minutes: int, pages: bool
) -> None:
    """Until then a joiner is told quietly; after it, it is paged."""
    await acknowledged(pager)
    await pager.advance(minutes=minutes)
    await pager.alert("db-2", group_key="g")
    pager.expect_page("alice", "slack", kind="page" if pages else "status")
    if not pages:
        pager.expect_message("channel", "#payments")
    else:
        await pager.ack()


async def test_a_new_start_of_a_known_alert_is_a_joiner(pager: Pager) -> None:
    """Its end was lost: the new occurrence is noted, and paged if the ack is old (B035)."""
    await acknowledged(pager, started_at=START)
    await pager.advance(hours=2)
    receipt = await pager.alert("db-1", group_key="g", started_at=START + timedelta(hours=2))
    assert (receipt.status, receipt.reason) == ("repeat", "a later start")
    pager.expect_page("alice", "slack")
    await pager.ack()


async def test_a_joiner_wakes_an_incident_that_nobody_answered(pager: Pager) -> None:
    """Unanswered, and another alert joins: the ladder starts anew."""
    await pager.alert("db-1", group_key="g")
    await pager.advance(minutes=21)
    assert (await pager.incident()).status == "unanswered"
    pager.pages()
    pager._heard.clear()
    await pager.alert("db-2", group_key="g")
    pager.expect_page("alice", "slack")
    assert (await pager.incident()).status == "triggered"
    await pager.ack()


async def test_a_silent_joiner_tells_nobody_whatever_the_state(pager: Pager) -> None:
    """An alert of urgency none is counted, on an acknowledged incident too."""
    silent = {"severity": Severity.INFO, "raw_severity": "info", "service": "quiet", "group_key": "g"}
    await pager.alert("loud", service="quiet", group_key="g")
    pager.expect_page("alice", "slack")
    await pager.ack()
    receipt = await pager.alert("silent", **silent)
    assert receipt.status == "joined"
    pager.expect_silence()


async def test_an_incident_of_urgency_none_pages_nobody_until_something_louder_joins(pager: Pager) -> None:
    """It stands open and silent for hours; a critical alert of its group pages."""
    silent = {"severity": Severity.INFO, "raw_severity": "info", "service": "quiet", "group_key": "g"}
    await pager.alert("note", **silent)
    await pager.advance(hours=2)
    pager.expect_silence()
    await pager.alert("down", service="quiet", group_key="g")
    pager.expect_page("alice", "slack")
    await pager.ack()


async def test_what_the_source_takes_stops_paging(pager: Pager) -> None:
    """Acknowledged at the source: no page goes on, and the incident says so."""
    await pager.alert("db-1")
    pager.expect_page("alice", "slack")
    await pager.receive(Event(Action.ACKNOWLEDGE, "db-1", ""))
    await pager.advance(hours=1)
    pager.expect_silence()
    incident = await pager.incident()
    assert (incident.status, incident.acknowledged_via) == ("acknowledged", Via.SOURCE)


# --- ends --------------------------------------------------------------------------------------------------


async def test_an_incident_is_over_with_its_last_alert(receiving: Receiving) -> None:
    """Each end is a line of its timeline; only the last one resolves it."""
    await receiving.accept(*(fire(key, group_key="g") for key in "abc"))
    statuses = []
    for key in "abc":
        await receiving.one(end(key))
        statuses.append([(one.status, one.open_alerts) for one in await receiving.rows(incidents)])
    assert statuses == [[("triggered", 2)], [("triggered", 1)], [("resolved", 0)]]
    kinds = [(entry.kind, entry.text) for entry in await receiving.rows(timeline)]
    assert kinds[1:] == [
        ("alert_resolved", "2 alerts still fire"),
        ("alert_resolved", "1 alerts still fire"),
        ("resolved", "resolved"),
    ]


async def test_an_end_and_a_joiner_in_one_body_leave_the_incident_open(receiving: Receiving) -> None:
    """The last alert ends while another of its group begins: one incident goes on (B011)."""
    await receiving.one(fire("a", group_key="g"))
    receipts = await receiving.accept(end("a", group_key="g"), fire("b", group_key="g"))
    assert [receipt.status for receipt in receipts] == ["resolved", "joined"]
    assert [(one.status, one.open_alerts, one.alert_count) for one in await receiving.rows(incidents)] == [
        ("triggered", 1, 2)
    ]


async def test_the_end_of_a_group_ends_members_that_were_cut_off(receiving: Receiving) -> None:
    """Every alert of the raw group that began before the newest end is over; a later one stays."""
    later = START + timedelta(minutes=9)
    await receiving.accept(
        fire("a", group_key="g", started_at=START),
        fire("cut", group_key="g", started_at=START),
        fire("timeless", group_key="g"),
        fire("later", group_key="g", started_at=later),
        fire("other", group_key="h", started_at=START),
    )
    before = START + timedelta(minutes=5)
    await receiving.accept(end("a", group_key="g", started_at=START, ended_at=before), **over("g", before))
    firing = [one.dedup_key for one in await receiving.rows(alerts) if one.status == "firing"]
    assert firing == ["later", "other"]
    await receiving.accept(**over("g"))
    assert [one.status for one in await receiving.rows(incidents)] == ["resolved", "triggered"]
    # What was cut off is remembered like any other end: an old message of it opens nothing.
    assert (await receiving.one(fire("cut", group_key="g", started_at=START))).status == "ignored"


async def test_the_end_of_a_group_goes_over_several_incidents(database: Database, clock: FakeClock) -> None:
    """Grouped by labels the source's group is several incidents: its end ends them all."""
    service = Service(0, "checkout", None, None, group_by=("cluster",))
    receiving = await Receiving.start(database, clock, service)
    for cluster in "ab":
        await receiving.one(fire(f"db-{cluster}", group_key="g", labels={"cluster": cluster}))
    await receiving.accept(**over("g"))
    assert [one.status for one in await receiving.rows(incidents)] == ["resolved", "resolved"]


async def test_fired_and_swept_at_once_is_over(receiving: Receiving) -> None:
    """A body fires an alert, the next one says that its whole group is over: nothing stays open."""
    await receiving.one(fire("a", group_key="g"))
    await asyncio.gather(
        receiving.one(fire("b", group_key="g")), receiving.accept(end("a", group_key="g"), **over("g"))
    )
    assert [one.status for one in await receiving.rows(incidents)] == ["resolved"]
    assert {one.outcome for one in await receiving.rows(events)} == {"opened", "joined", "resolved"}


# --- groups ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group_by", "numbers"),
    [
        (None, [1, 1, 2]),  # the source's own grouping
        ((), [1, 2, 3]),  # each key alone
        (("cluster",), [1, 2, 2]),  # by label; B033
        (("cluster", "nothing"), [1, 2, 2]),  # a label that no alert has
        (("nothing",), [1, 2, 3]),  # without any of the labels: alone
    ],
)
async def test_alerts_are_grouped_as_the_service_says(
    database: Database, clock: FakeClock, group_by: tuple[str, ...] | None, numbers: list[int]
) -> None:
    """The source's groups, or the labels of the service, or each alert on its own."""
    receiving = await Receiving.start(database, clock, Service(0, "checkout", None, None, group_by=group_by))
    given = [
        await receiving.one(fire("a", group_key="g", labels={"cluster": "x"})),
        await receiving.one(fire("b", group_key="g", labels={"cluster": "y"})),
        await receiving.one(fire("c", group_key="h", labels={"cluster": "y"})),
    ]
    assert [receipt.incident_number for receipt in given] == numbers


async def test_after_the_window_a_new_alert_is_a_new_problem(database: Database, clock: FakeClock) -> None:
    """The window runs from the last join; then the old incident is sealed and another one opens."""
    service = Service(0, "checkout", None, None, group_window=timedelta(minutes=5))
    receiving = await Receiving.start(database, clock, service)
    given = []
    for key, minutes in (("a", 0), ("b", 4), ("c", 4), ("d", 6), ("e", 1)):
        clock.move(minutes=minutes)
        given.append((await receiving.one(fire(key, group_key="g"))).incident_number)
    assert given == [1, 1, 1, 2, 2]
    # A known alert stays on its incident, and the source's group still ends all of them.
    assert (await receiving.one(fire("a", group_key="g"))).incident_number == 1
    await receiving.accept(**over("g"))
    assert [one.status for one in await receiving.rows(incidents)] == ["resolved", "resolved"]


async def test_a_new_grouping_counts_for_new_alerts_only(pager: Pager) -> None:
    """After an edit of `group_by` an open alert stays where it is, and is ended there."""
    await pager.alert("db-1", group_key="g")
    pager.expect_page("alice", "slack")
    await pager.configure(CONFIG.replace('channel: "#payments"}', 'channel: "#payments", group_by: []}'))
    await pager.advance(seconds=1)  # Slack's pace
    assert (await pager.alert("db-1", group_key="g")).incident_number == 1
    assert (await pager.alert("db-2", group_key="g")).incident_number == 2
    pager.expect_page("alice", "slack")
    assert (await pager.resolved_by_source("db-1", group_key="g")).incident_number == 1
    await pager.ack(2)
