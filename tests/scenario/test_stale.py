"""Old messages that arrive late, and a source that goes on firing what a person has resolved."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from engine.models import ORG, Severity, Via
from engine.schema import dedup_keys, events, incidents
from tests.fakes import START, FakeClock
from tests.scenario.harness import Pager
from tests.scenario.harness import fire as fires
from tests.scenario.receiving import Receiving, end, fire

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("started_at", "minutes", "status"),
    [
        (START, 1, "ignored"),  # the same occurrence, still under way
        (START - MINUTE, 1, "ignored"),  # an older one
        (START + MINUTE, 1, "refired"),  # a later start: it fires again (B009, B021)
        (START, 2.5, "opened"),  # no message is under way that long
        (None, 1, "refired"),  # without a start nobody can tell: rather a page too many
    ],
)
async def test_an_old_message_of_an_ended_occurrence_opens_nothing(
    receiving: Receiving, clock: FakeClock, started_at: datetime | None, minutes: float, status: str
) -> None:
    """Started no later than what the source has ended, and here within two minutes of that end."""
    await receiving.one(fire(started_at=START))
    await receiving.one(end(started_at=START, ended_at=START + MINUTE))
    clock.move(minutes=minutes)
    receipt = await receiving.one(fire(started_at=started_at))
    assert receipt.status == status
    if status == "ignored":
        assert (receipt.reason, receipt.incident_number) == (
            "the source has ended this occurrence already",
            1,
        )
        assert (await receiving.rows(events))[-1].incident_id == receipt.incident_id
        assert [one.status for one in await receiving.rows(incidents)] == ["resolved"]


@pytest.mark.parametrize(
    ("started_at", "minutes", "status"),
    [(START, 0, "ignored"), (START, 2, "opened"), (START + MINUTE, 0, "opened")],
)
async def test_an_end_that_overtook_its_beginning(
    receiving: Receiving, clock: FakeClock, started_at: datetime, minutes: int, status: str
) -> None:
    """Resolve before fire: the fire is noted as over; a later start, or two minutes later, pages (F-68)."""
    await receiving.one(end(started_at=START, ended_at=START + MINUTE))
    clock.move(minutes=minutes)
    assert (await receiving.one(fire(started_at=started_at))).status == status
    assert len(await receiving.rows(incidents)) == (0 if status == "ignored" else 1)


async def test_an_end_that_is_repeated_does_not_begin_the_two_minutes_anew(
    receiving: Receiving, clock: FakeClock
) -> None:
    """Two peers say the same end a minute apart: what counts is when it was first heard of."""
    await receiving.one(fire(started_at=START))
    for _ in range(3):
        await receiving.one(end(started_at=START, ended_at=START + MINUTE))
        clock.move(minutes=1)
    assert (await receiving.one(fire(started_at=START))).status == "opened"


async def test_an_older_end_does_not_hide_what_a_newer_one_ended(
    receiving: Receiving, clock: FakeClock
) -> None:
    """An end that comes late, of an occurrence before the last, changes nothing that is remembered."""
    later = START + 5 * MINUTE
    await receiving.one(fire(started_at=later))
    await receiving.one(end(started_at=later))
    await receiving.one(end(started_at=START))
    await receiving.one(end())
    assert [one.last_started_at for one in await receiving.rows(dedup_keys)] == [later]
    assert (await receiving.one(fire(started_at=later))).status == "ignored"


async def test_an_old_message_does_not_take_a_new_one_with_it(receiving: Receiving, clock: FakeClock) -> None:
    """In one batch a new occurrence and, behind it, a message of the one that is over: the new one counts."""
    await receiving.one(fire(started_at=START))
    await receiving.one(end(started_at=START))
    clock.move(seconds=30)
    receipts = await receiving.accept(fire(started_at=START + MINUTE), fire(started_at=START))
    assert [receipt.status for receipt in receipts] == ["refired", "ignored"]


async def test_two_senders_that_differ_on_the_start_do_not_page_in_turns(
    receiving: Receiving, clock: FakeClock
) -> None:
    """The latest start is kept: only the first message of it is a new occurrence, however they alternate."""
    reasons = []
    for n in range(6):
        clock.move(hours=1)
        reasons.append((await receiving.one(fire(started_at=START + (n % 2) * MINUTE))).reason)
    assert reasons == ["", "a later start", "", "", "", ""]
    await receiving.one(end(started_at=START))
    assert (await receiving.one(fire(started_at=START + MINUTE))).status == "ignored"


# --- a person resolved it, and the source still fires -------------------------------------------------------


async def test_what_still_fires_after_a_persons_resolve_is_paged_a_quarter_of_an_hour_later(
    pager: Pager,
) -> None:
    """The same key, start and severity: a new incident at once, its first page late, never dropped (B028)."""
    await pager.alert(started_at=START)
    pager.expect_page("alice", "slack")
    await pager.advance(minutes=2)
    pager.expect_page("alice", "sms")
    await pager.resolve()
    await pager.advance(minutes=1)
    receipt = await pager.alert(started_at=START)
    assert (receipt.status, receipt.incident_number) == ("opened", 2)
    assert receipt.reason == "a person resolved #1, and the source still fires"
    # Paged last by the SMS, one minute in: due at minute 16, and it is minute 3.
    await pager.advance(minutes=12, seconds=59)
    pager.expect_silence()
    await pager.advance(seconds=1)
    pager.expect_page("alice", "slack")
    await pager.resolve(2)
    # A person resolves again: the quarter of an hour counts from the last page of all.
    await pager.alert(started_at=START)
    await pager.advance(minutes=14, seconds=59)
    pager.expect_silence()
    await pager.advance(seconds=1)
    pager.expect_page("alice", "slack")
    await pager.ack(3)


@pytest.mark.parametrize(
    "changed",
    [
        {"started_at": START + MINUTE},
        {"started_at": START, "severity": Severity.ERROR},
        {"started_at": START, "severity": None, "raw_severity": "page"},
    ],
)
async def test_anything_else_after_a_persons_resolve_pages_at_once(
    pager: Pager, changed: dict[str, object]
) -> None:
    """A new start, or another severity, is a new problem."""
    await pager.alert(started_at=START)
    pager.expect_page("alice", "slack")
    await pager.resolve(via=Via.SMS)
    await pager.advance(seconds=1)  # Slack's pace
    assert (await pager.alert(**changed)).incident_number == 2
    pager.expect_page("alice", "slack")
    await pager.ack(2)


async def test_a_new_alert_in_the_group_is_not_held_back_with_the_old_one(pager: Pager) -> None:
    """The known alert alone would wait; together with a new one of its group it is paged at once."""
    await pager.alert("db-1", group_key="g")
    pager.expect_page("alice", "slack")
    await pager.resolve()
    await pager.advance(seconds=1)  # Slack's pace
    await pager.receive(fires("db-1", group_key="g"), fires("db-2", group_key="g"))
    await pager.app.worker.run_due()
    pager.expect_page("alice", "slack")
    assert (await pager.incident(2)).alert_count == 2
    await pager.ack(2)


async def test_what_was_never_paged_is_not_held_back(pager: Pager) -> None:
    """Resolved by a person before the first page went out: the next one is paged at once."""
    await pager.receive(fires())
    await pager.resolve()
    assert (await pager.alert()).incident_number == 2
    pager.expect_page("alice", "slack")
    await pager.ack(2)


async def test_another_alert_does_not_wait_for_what_a_person_has_just_resolved(pager: Pager) -> None:
    """Only the same alert is held back; whatever joins it meanwhile pages at once."""
    await pager.alert("a", group_key="g")
    pager.expect_page("alice", "slack")
    await pager.resolve()
    await pager.alert("a", group_key="g")
    await pager.advance(minutes=1)
    pager.expect_silence()
    await pager.alert("b", group_key="g")
    pager.expect_page("alice", "slack")
    await pager.ack(2)


async def test_a_person_who_opens_it_again_is_not_held_back(pager: Pager) -> None:
    """Opened, resolved and opened by hand within a minute: paged both times."""
    service, actor = await pager.service_id("checkout"), await pager.person("bob")
    for number in (1, 2):
        await pager.app.receiver.open_by_hand(ORG, service, "Disk full", "disk", actor)
        await pager.app.worker.run_due()
        await pager.advance(seconds=2)
        pager.expect_page("alice", "slack")
        await pager.resolve(number)
