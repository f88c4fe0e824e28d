"""What events become: alerts, incidents, counts, and a receipt for each."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from engine.db import Database
from engine.directory import OnExhaustion, Policy, Service
from engine.errors import NotFound
from engine.grouping import LONGEST_KEY
from engine.intake.rows import TITLE_LENGTH
from engine.models import ORG, Actor, Body, Link, Severity, TimerKind, Urgency, Via
from engine.schema import alerts, dedup_keys, events, incidents, timeline, timers
from tests.fakes import START, FakeClock
from tests.scenario.receiving import Receiving, end, fire, taken

WARNING = {"severity": Severity.WARNING, "raw_severity": "warning"}


async def test_a_first_event_opens_an_incident_that_is_routed_at_once(receiving: Receiving) -> None:
    """Alert, incident, number, timeline, event and the timer that routes it, all in one commit."""
    receipt = await receiving.one(fire(links=(Link("https://x.example", "Runbook"),), labels={"a": "b"}))
    (incident,), (alert,) = await receiving.rows(incidents), await receiving.rows(alerts)
    assert (receipt.status, receipt.incident_id, receipt.incident_number) == ("opened", incident.id, 1)
    assert (incident.status, incident.number, incident.title) == ("triggered", 1, "db-1 is down")
    assert (incident.open_alerts, incident.alert_count, incident.urgency) == (1, 1, "high")
    assert (alert.status, alert.event_count, alert.labels, alert.links) == (
        "firing",
        1,
        {"a": "b"},
        [{"url": "https://x.example", "text": "Runbook"}],
    )
    (timer,), (event,), (entry,) = [await receiving.rows(table) for table in (timers, events, timeline)]
    assert (timer.kind, timer.subject_id, timer.due_at, timer.epoch) == ("escalate", incident.id, START, 1)
    assert (event.outcome, event.incident_id) == ("opened", incident.id)
    assert (entry.kind, entry.actor, entry.via) == ("opened", "test", "source")


async def test_the_same_event_from_two_peers_is_one_incident_and_a_count(
    receiving: Receiving, clock: FakeClock
) -> None:
    """Two senders of a pair say the same 16 s apart: one incident; the second is a repeat (B006, B015)."""
    first = await receiving.one(fire(started_at=START))
    clock.move(seconds=16)
    again = await receiving.one(fire(started_at=START))
    assert (again.status, again.incident_id, again.incident_number) == ("repeat", first.incident_id, 1)
    (alert,) = await receiving.rows(alerts)
    assert (alert.event_count, alert.last_seen_at) == (2, clock.now())
    clock.move(minutes=10)
    await receiving.one(fire(started_at=START))
    assert [one.last_seen_at for one in await receiving.rows(alerts)] == [clock.now()]  # B031


async def test_new_words_are_shown_and_the_title_stays(receiving: Receiving) -> None:
    """ "test", then "new", under one key: one incident titled "test" whose alert says "new" (B016)."""
    for summary in ("test", "new", "new", "newer"):
        await receiving.one(fire("k", summary))
    (incident,), (alert,) = await receiving.rows(incidents), await receiving.rows(alerts)
    assert (incident.title, alert.summary, alert.event_count) == ("test", "newer", 4)


async def test_new_words_in_one_batch_and_after_a_restart_count_too(receiving: Receiving) -> None:
    """The first words are the title and the newest are shown, whoever remembers what."""
    await asyncio.gather(receiving.one(fire("k", "test")), receiving.one(fire("k", "new")))
    await receiving.another(receiving.database).one(fire("k", "newer"))
    (incident,), (alert,) = await receiving.rows(incidents), await receiving.rows(alerts)
    assert (incident.title, alert.summary, alert.event_count) == ("test", "newer", 3)


async def test_one_key_on_two_services_is_two_incidents(database: Database, clock: FakeClock) -> None:
    """A key means something only on its service, and so does its end (B034, S-27)."""
    receiving = await Receiving.start(
        database, clock, Service(0, "checkout", None, None), Service(0, "search", None, None)
    )
    await receiving.one(fire())
    await receiving.one(fire(), service="search")
    assert (await receiving.one(end(), service="search")).status == "resolved"
    assert [one.status for one in await receiving.rows(incidents)] == ["triggered", "resolved"]


async def test_an_end_that_nobody_began_is_kept_and_tells_nobody(receiving: Receiving) -> None:
    """2xx, no incident, no timer; the key remembers it (B007)."""
    assert (await receiving.one(end(started_at=START, ended_at=START))).status == "ignored"
    assert [len(await receiving.rows(table)) for table in (incidents, alerts, timers)] == [0, 0, 0]
    (key,) = await receiving.rows(dedup_keys)
    assert (key.ended_by, key.last_started_at, key.end_arrived_at) == ("source", START, START)


async def test_an_end_is_understood_by_a_process_that_never_saw_the_beginning(receiving: Receiving) -> None:
    """After a restart the first request may be the resolve; the key alone says what it ends (B008, B033)."""
    await receiving.one(fire(started_at=START))
    receipt = await receiving.another(receiving.database).one(end())
    assert (receipt.status, receipt.incident_number) == ("resolved", 1)
    assert [one.status for one in await receiving.rows(incidents)] == ["resolved"]


async def test_an_end_said_five_times_is_one_end(receiving: Receiving) -> None:
    """The incident is resolved once, with one line on its timeline (B036)."""
    await receiving.one(fire())
    statuses = [(await receiving.one(end())).status for _ in range(5)]
    assert statuses == ["resolved", *["ignored"] * 4]
    assert [entry.kind for entry in await receiving.rows(timeline)] == ["opened", "resolved"]


async def test_fired_and_ended_at_once_is_nothing_to_tell(receiving: Receiving) -> None:
    """Fire and resolve that share a batch open nothing: nobody hears "resolved" alone (B022)."""
    fired, ended = await asyncio.gather(receiving.one(fire()), receiving.one(end()))
    assert (fired.status, ended.status) == ("folded", "ignored")
    assert await receiving.rows(incidents) == []
    assert [(one.action, one.reason) for one in await receiving.rows(events)] == [
        ("trigger", "resolved in the same batch"),
        ("resolve", "nothing is open for this key"),
    ]


async def test_a_repeat_and_the_end_in_one_batch_leave_it_ended(receiving: Receiving) -> None:
    """What only repeats is not counted behind the end of the same batch: it would open anew."""
    await receiving.one(fire())
    repeated, ended = await asyncio.gather(receiving.one(fire()), receiving.one(end()))
    assert (repeated.status, ended.status) == ("folded", "resolved")
    assert [one.status for one in await receiving.rows(incidents)] == ["resolved"]


async def test_a_body_may_say_a_key_twice(receiving: Receiving) -> None:
    """Two events of one fingerprint in one body are one alert, counted twice (B032)."""
    receipts = await receiving.accept(fire(), fire())
    assert [receipt.status for receipt in receipts] == ["opened", "repeat"]
    assert {receipt.incident_number for receipt in receipts} == {1}
    receipts = await receiving.accept(fire(), fire(), fire("db-2"))
    assert [receipt.status for receipt in receipts] == ["repeat", "repeat", "opened"]
    assert [one.event_count for one in await receiving.rows(alerts)] == [4, 1]


async def test_receipts_stand_in_the_order_of_the_events(receiving: Receiving) -> None:
    """Whatever way each event takes, the sender can tell which receipt is whose."""
    await receiving.accept(fire("a"), fire("b"))
    receipts = await receiving.accept(end("b"), fire("c"), fire("a"), taken("a"), taken("z"), end("y"))
    assert [(one.dedup_key, one.status) for one in receipts] == [
        ("b", "resolved"),
        ("c", "opened"),
        ("a", "repeat"),
        ("a", "acknowledged"),
        ("z", "ignored"),
        ("y", "ignored"),
    ]


async def test_a_body_without_events_is_stored_as_nothing(receiving: Receiving) -> None:
    """`alerts: []` is answered without a transaction (F-73, B018)."""
    with receiving.statements() as statements:
        assert await receiving.accept() == []
    assert statements == []


async def test_a_deleted_service_takes_nothing(receiving: Receiving) -> None:
    """A key whose service is gone is told so, rather than 2xx and silence."""
    with pytest.raises(NotFound):
        await receiving.receiver.accept(ORG, 999, Body("test", (fire(),)))


# --- how loud ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("severity", "word", "urgency"),
    [
        (Severity.CRITICAL, "critical", "high"),
        (Severity.WARNING, "warning", "low"),
        (None, "page", "high"),  # B013, F-77
        (None, "", "high"),
        (Severity.INFO, "info", "none"),
    ],
)
async def test_urgency_is_as_the_service_says_or_the_severity(
    database: Database, clock: FakeClock, severity: Severity | None, word: str, urgency: str
) -> None:
    """Unknown severities page loudly; a service may silence one of its words."""
    service = Service(0, "checkout", None, None, urgency={"info": Urgency.NONE})
    receiving = await Receiving.start(database, clock, service)
    await receiving.one(fire(severity=severity, raw_severity=word))
    (incident,) = await receiving.rows(incidents)
    assert (incident.urgency, incident.raw_severity) == (urgency, word)


async def test_a_worse_event_that_came_first_in_a_batch_is_what_pages(receiving: Receiving) -> None:
    """Critical and then warning under one key, in one commit, is still a high incident."""
    await asyncio.gather(receiving.one(fire()), receiving.one(fire(**WARNING)))
    (incident,), (alert,) = await receiving.rows(incidents), await receiving.rows(alerts)
    assert (incident.urgency, incident.severity, alert.severity) == ("high", "critical", "warning")


# --- acknowledged by the source ---------------------------------------------------------------------------


async def test_a_source_may_take_its_own_alert(receiving: Receiving) -> None:
    """Acknowledged there is acknowledged here: the timer is gone, the timeline says by whom."""
    await receiving.one(fire())
    assert (await receiving.one(taken())).status == "acknowledged"
    again = await receiving.one(taken())
    assert (again.status, again.reason) == ("ignored", "already acknowledged by test 0 s ago")
    (incident,) = await receiving.rows(incidents)
    assert (incident.status, incident.acknowledged_name, incident.acknowledged_via) == (
        "acknowledged",
        "test",
        "source",
    )
    assert await receiving.rows(timers) == []
    assert [entry.kind for entry in await receiving.rows(timeline)] == ["opened", "acknowledged"]


async def test_fire_and_ack_at_once_end_acknowledged(receiving: Receiving) -> None:
    """An ack that shares the batch of its trigger waits for the commit that opens the incident."""
    fired, acked = await asyncio.gather(receiving.one(fire()), receiving.one(taken()))
    assert (fired.status, acked.status, acked.incident_number) == ("opened", "acknowledged", 1)
    assert [receipt.status for receipt in await receiving.accept(fire("b"), taken("b"))] == [
        "opened",
        "acknowledged",
    ]
    assert [one.status for one in await receiving.rows(incidents)] == ["acknowledged"] * 2
    assert await receiving.rows(timers) == []


async def test_an_ack_never_outlives_the_end_that_came_before_it(receiving: Receiving) -> None:
    """Resolve, then ack, of one of two alerts: the other still pages (B024, I11)."""
    await receiving.accept(fire("a", group_key="g"), fire("b", group_key="g"))
    ended, acked = await asyncio.gather(receiving.one(end("a")), receiving.one(taken("a")))
    assert (ended.status, acked.status) == ("resolved", "ignored")
    assert [one.status for one in await receiving.rows(incidents)] == ["triggered"]


async def test_an_ack_of_the_source_times_out_like_any_other(receiving: Receiving) -> None:
    """With `ack_timeout` in the policy its timer is armed."""
    service = next(iter(receiving.services.values()))
    receiving.services[service.id] = replace(service, policy_id=1)
    hour = timedelta(hours=1)
    receiving.policies[1] = Policy(
        1, 1, "p", (), 0, OnExhaustion.NOTIFY_ADMINS, ack_timeout=hour, created_at=START
    )
    await receiving.one(fire())
    await receiving.one(taken())
    (timer,) = await receiving.rows(timers)
    assert (timer.kind, timer.due_at) == (TimerKind.ACK_TIMEOUT, START + hour)


# --- opened by hand ----------------------------------------------------------------------------------------


async def test_who_opened_it_is_said_of_that_incident_alone(receiving: Receiving) -> None:
    """Two people and a source at once: three incidents, each with its own opener."""
    (service,) = receiving.services
    by_hand = receiving.receiver.open_by_hand
    await asyncio.gather(
        by_hand(ORG, service, "slow", "a", Actor("ana", Via.API)),
        receiving.one(fire("b")),
        by_hand(ORG, service, "odd", "c", Actor("ben", Via.SLACK_COMMAND)),
    )
    found = await receiving.rows(incidents)
    assert [(one.title, one.opened_by) for one in found] == [
        ("slow", "ana"),
        ("b is down", ""),
        ("odd", "ben"),
    ]
    entries = await receiving.rows(timeline)
    assert [(one.actor, one.via) for one in entries] == [
        ("ana", "api"),
        ("test", "source"),
        ("ben", "slack_command"),
    ]


async def test_two_who_open_the_same_by_hand_share_one_incident(receiving: Receiving) -> None:
    """The key decides: one opens it, the other is given the one that is open; without a key each opens."""
    (service,) = receiving.services
    ana, ben = Actor("ana", Via.API), Actor("ben", Via.API)
    open_it = receiving.receiver.open_by_hand
    both = await asyncio.gather(open_it(ORG, service, "x", "k", ana), open_it(ORG, service, "y", "k", ben))
    assert sorted(created for _, created in both) == [False, True]
    assert len({incident for incident, _ in both}) == 1
    alone = [await open_it(ORG, service, "x", None, ana) for _ in range(2)]
    assert [created for _, created in alone] == [True, True]


# --- hostile text and times -------------------------------------------------------------------------------


async def test_endless_text_is_kept_and_the_title_is_short(receiving: Receiving) -> None:
    """16 KB of summary, 64 labels of 4 KB, keys beyond any index: stored, met again, ended (B001–B003)."""
    summary, key = "🔥" * 4_096, "k" * 20_000
    labels = {f"label-{n}": "x" * 4_096 for n in range(64)}
    text = replace(fire(key, summary), labels=labels, group_key="g" * 20_000)
    await receiving.one(text)
    assert (await receiving.one(text)).status == "repeat"
    (incident,), (alert,) = await receiving.rows(incidents), await receiving.rows(alerts)
    assert (alert.summary, alert.labels, len(incident.title)) == (summary, labels, TITLE_LENGTH)
    assert len(alert.dedup_key.encode()) <= LONGEST_KEY
    assert (await receiving.one(replace(end(key), group_key="g" * 20_000))).status == "resolved"


@pytest.mark.parametrize("summary", ["", "   \n ", "\n"])
async def test_an_alert_without_words_has_a_title_that_says_so(receiving: Receiving, summary: str) -> None:
    """People see and hear a sentence, whatever the source left out (F-77)."""
    await receiving.one(replace(fire(), summary=summary))
    assert [one.title for one in await receiving.rows(incidents)] == ["No summary provided"]


async def test_the_order_of_arrival_counts_not_the_clock_of_the_sender(
    receiving: Receiving, clock: FakeClock
) -> None:
    """Starts 30 days ago, in two hours and in the year 9999 fire and end all the same (B025, F-80)."""
    starts = [START - timedelta(days=30), START + timedelta(hours=2), datetime(9999, 12, 31, tzinfo=UTC)]
    for start in starts:
        key = start.isoformat()
        for _ in range(2):
            assert (await receiving.one(fire(key, started_at=start))).status == "opened"
            assert (await receiving.one(end(key, started_at=start, ended_at=START))).status == "resolved"
            clock.move(minutes=3)
    assert [one.status for one in await receiving.rows(incidents)] == ["resolved"] * 6


async def test_instants_are_compared_whatever_zone_they_are_written_in(
    receiving: Receiving, clock: FakeClock
) -> None:
    """00:27+08:00 and 16:27Z the day before are one start: a repeat, and one end (B012)."""
    east = datetime.fromisoformat("2024-09-27T00:27:00+08:00")
    await receiving.one(fire(started_at=east))
    assert (await receiving.one(fire(started_at=east.astimezone(UTC)))).status == "repeat"
    assert (await receiving.one(end(started_at=east.astimezone(UTC)))).status == "resolved"
    clock.move(seconds=30)
    assert (await receiving.one(fire(started_at=east))).status == "ignored"
