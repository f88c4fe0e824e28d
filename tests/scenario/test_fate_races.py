"""Two processes on one database: whoever commits first is right, and the other is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from engine.models import Via
from tests.fakes import FakeClock
from tests.scenario.fates import broken, entries, fate_timers, queued, take
from tests.scenario.harness import Pager


@pytest.fixture
async def other(pager: Pager, any_database_url: str, clock: FakeClock) -> AsyncIterator[Pager]:
    """A second process on the same database, with phones of its own."""
    made = await Pager(any_database_url, clock).start()
    yield made
    await made.close()
    made.silence_ops()
    made.expect_silence()


async def incident_id(pager: Pager, number: int = 1) -> int:
    return (await pager.incident(number)).id


async def test_two_acks_at_once_have_one_owner(pager: Pager, other: Pager) -> None:
    """The second is told who was first; the incident is acknowledged once."""
    for number in range(1, 6):
        await pager.alert(f"db-{number} is down")
        one = await incident_id(pager, number)
        alice, bob = await pager.person("alice", Via.SMS), await pager.person("bob")
        answers = await asyncio.gather(
            pager.app.responder.acknowledge(one, alice), other.app.responder.acknowledge(one, bob)
        )
        assert sorted(answer.changed for answer in answers) == [False, True]
        owner = (await pager.incident(number)).acknowledged_by
        (loser,) = (answer for answer in answers if not answer.changed)
        assert loser.reason.startswith(f"already acknowledged by {owner} ")
        assert await entries(pager, "acknowledged", number) == ["acknowledged"]
    take(pager)


async def test_an_ack_that_races_a_level_leaves_nothing_behind(pager: Pager, other: Pager) -> None:
    """Whoever is first: after the ack nothing is queued or armed, and nobody is told any more."""
    for number in range(1, 6):
        await pager.alert(f"db-{number} is down")
        await pager.advance(minutes=4)
        pager.clock.move(minutes=1)
        take(pager)
        one, alice = await incident_id(pager, number), await pager.person("alice")
        answer, _ = await asyncio.gather(
            pager.app.responder.acknowledge(one, alice), other.app.worker.run_due()
        )
        assert (answer.changed, answer.incident.status) == (True, "acknowledged")
        assert (await queued(pager, number), await fate_timers(pager, number)) == (0, [])
        take(other)  # bob, if the level was first
        await other.advance(minutes=30)
        assert (take(pager), take(other)) == ([], [])


@pytest.mark.parametrize("first", ["acknowledge", "resolve"])
async def test_resolve_wins_over_a_late_ack_in_either_order(pager: Pager, first: str) -> None:
    """Whoever comes second, the incident ends resolved; a late ack is told so."""
    await pager.alert()
    answers = {}
    for command in (first, "acknowledge" if first == "resolve" else "resolve"):
        answers[command] = await pager.answer(command, by="bob")
    assert (await pager.incident()).status == "resolved"
    assert answers["resolve"].changed
    assert answers["acknowledge"].changed is (first == "acknowledge")
    assert await fate_timers(pager) == []
    take(pager)


async def test_resolve_and_ack_and_a_timer_at_once_end_resolved(pager: Pager, other: Pager) -> None:
    """By the source, by a person and by the clock in the same instant."""
    for number in range(1, 4):
        await pager.alert(f"db-{number} is down")
        pager.clock.move(minutes=5)
        one, alice = await incident_id(pager, number), await pager.person("alice")
        await asyncio.gather(
            pager.resolved_by_source(f"db-{number} is down"),
            other.app.responder.acknowledge(one, alice),
            other.app.worker.run_due(),
        )
        assert (await pager.incident(number)).status == "resolved"
        assert (await queued(pager, number), await fate_timers(pager, number)) == (0, [])
    take(pager)
    take(other)
    await pager.advance(hours=1)
    assert (take(pager), take(other), await broken(pager)) == ([], [], [])


async def test_two_workers_page_a_level_once(pager: Pager, other: Pager) -> None:
    """Both find the timer due; one of them works it."""
    await pager.alert()
    await pager.advance(minutes=3)
    take(pager)
    pager.clock.move(minutes=2)
    await asyncio.gather(pager.app.worker.run_due(), other.app.worker.run_due())
    assert take(pager) + take(other) == [("bob", "slack")]
    await pager.ack()


async def test_two_reopens_at_once_are_one_round(pager: Pager, other: Pager) -> None:
    """And a reopen that meets a new incident for its key is refused, naming it."""
    await pager.alert()
    await pager.resolve()
    one, alice = await incident_id(pager), await pager.person("alice")
    answers = await asyncio.gather(
        pager.app.responder.reopen(one, alice), other.app.responder.reopen(one, alice)
    )
    assert sorted(answer.changed for answer in answers) == [False, True]
    assert (await pager.incident()).round == 2
    await pager.resolve()
    await pager.advance(minutes=20)
    receipt, answer = await asyncio.gather(pager.alert(), other.app.responder.reopen(one, alice))
    holders = [one.number for one in await pager.open_incidents()]
    assert len(holders) == 1
    assert holders == [receipt.incident_number]
    assert answer.changed is (holders == [1])
    await pager.resolve(holders[0])
    take(pager)
    take(other)
