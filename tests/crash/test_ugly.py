"""The ugly intervals, in which nobody can know: many attempts may exist, one record and one key.

Each is told on both databases, and both the rows and the metrics are held against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from engine import schema
from tests.crash.faults import Fault, Kind
from tests.crash.history import Told
from tests.crash.stage import Other, Run, Stage
from tests.crash.story import Story, night
from tests.crash.world import World

pytestmark = pytest.mark.crash


@dataclass(frozen=True, slots=True)
class Record:
    """The one delivery by a method, and how its attempts ended."""

    id: int
    status: str
    attempts: list[str]


async def record(stage: Stage, method: str, person: str = "alice") -> Record:
    """Fails if there is more than one."""
    deliveries, attempts, people = schema.deliveries, schema.attempts, schema.people
    async with stage.other.snapshot() as tx:
        (found,) = await tx.execute(
            sa.select(deliveries)
            .join(people, people.c.id == deliveries.c.person_id)
            .where(deliveries.c.method == method, people.c.name == person)
        )
        ended: Any = await tx.scalars(
            sa.select(attempts.c.outcome)
            .where(attempts.c.delivery_id == found.id)
            .order_by(attempts.c.number)
        )
        return Record(found.id, found.status, list(ended))


def times_taken(run: Run, one: Record) -> int:
    return sum(taken.message.delivery == one.id for taken in run.world.ledger.taken)


async def boundary(stage: Stage, kind: Kind, starts: str, story: Story, nth: int = 1) -> Fault:
    """The fault at the nth boundary that starts so."""
    whole = await stage.tell(Fault(kind), story)
    found = [number for number, what in enumerate(whole.log, 1) if what.startswith(starts)]
    return Fault(kind, found[nth - 1])


async def a_minute(world: World) -> None:
    """Alice is told by Slack; a minute later the alert is resolved by hand."""
    world.outside.plan = (Told("alice", "slack", timedelta()),)
    await world.alert()
    await world.wait(seconds=50)
    await world.answer("resolve")
    await world.wait(minutes=2)


async def test_a_timeout_after_the_receiver_accepted(stage: Stage) -> None:
    """It is tried again under the same delivery, counted as a failed try; the person hears it twice."""
    run = await stage.tell(Fault(Kind.NO_ANSWER, 1))
    sms = await record(stage, "sms")
    assert (sms.status, sms.attempts) == ("sent", ["retry", "sent"])
    assert times_taken(run, sms) == 2
    assert run.world.outside.counted == {"attempts_unknown": 0, "leases_lost": 0, "sent_after_ack": 0}
    assert run.broken == []


async def test_a_restart_between_send_and_record(stage: Stage) -> None:
    """After its lease it is sent again under the same delivery, and the first try is unknown (F-05)."""
    run = await stage.tell(await boundary(stage, Kind.KILL_AFTER, "taken", night))
    sms = await record(stage, "sms")
    assert (sms.status, sms.attempts) == ("sent", ["unknown", "sent"])
    assert times_taken(run, sms) == 2
    assert run.world.outside.counted == {"attempts_unknown": 1, "leases_lost": 0, "sent_after_ack": 0}
    assert run.broken == []


async def test_a_restart_between_claim_and_send(stage: Stage) -> None:
    """After its lease it is sent, once (F-04)."""
    run = await stage.tell(await boundary(stage, Kind.KILL_BEFORE, "send", night))
    slack = await record(stage, "slack")
    assert (slack.status, slack.attempts) == ("sent", ["unknown", "retry", "sent"])
    assert times_taken(run, slack) == 1
    assert run.world.outside.counted == {"attempts_unknown": 1, "leases_lost": 0, "sent_after_ack": 0}
    assert run.broken == []


async def test_two_claimers_on_one_due_row(stage: Stage) -> None:
    """Both have read that it is due; one sends it, and the other finds it taken (F-33)."""
    fault = await boundary(stage, Kind.RIVAL, "read SELECT deliveries.id", a_minute)
    run = await stage.tell(fault, a_minute)
    slack = await record(stage, "slack")
    assert (slack.status, slack.attempts) == ("sent", ["sent"])
    assert times_taken(run, slack) == 1
    assert run.world.outside.counted == {"attempts_unknown": 0, "leases_lost": 0, "sent_after_ack": 0}
    assert run.broken == []


async def test_an_ack_after_the_lease_has_expired_and_then_the_late_result(stage: Stage) -> None:
    """Nobody else took it over, so the late result counts: recorded as sent, and as sent past the ack."""

    async def acknowledge(other: Other) -> None:
        other.clock.move(seconds=31)
        assert await other.do("acknowledge")

    fault = await boundary(stage, Kind.HANG, "taken", a_minute)
    run = await stage.tell(fault, a_minute, acknowledge)
    slack, sms = await record(stage, "slack"), await record(stage, "sms")
    assert (slack.status, slack.attempts) == ("sent", ["sent"])
    assert (sms.status, sms.attempts) == ("cancelled", [])
    assert times_taken(run, slack) == 1
    assert run.world.outside.counted == {"attempts_unknown": 0, "leases_lost": 0, "sent_after_ack": 1}
    assert run.broken == []


async def test_an_ack_after_the_lease_has_expired_and_another_worker(stage: Stage) -> None:
    """The other one finds it unwanted and ends it; the late result changes nothing (F-34)."""

    async def acknowledge_and_work(other: Other) -> None:
        other.clock.move(seconds=31)
        assert await other.do("acknowledge")
        await other.do("work")

    fault = await boundary(stage, Kind.HANG, "taken", a_minute)
    run = await stage.tell(fault, a_minute, acknowledge_and_work)
    slack, sms = await record(stage, "slack"), await record(stage, "sms")
    assert (slack.status, slack.attempts) == ("cancelled", ["unknown"])
    assert (sms.status, sms.attempts) == ("cancelled", [])
    assert times_taken(run, slack) == 1
    assert run.world.outside.counted == {"attempts_unknown": 1, "leases_lost": 1, "sent_after_ack": 0}
    assert run.broken == []
