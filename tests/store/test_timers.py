"""A timer is one live row for a kind and a subject, claimed by one, finished by whoever holds it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from engine import schema
from engine.db import Database, Tx
from engine.models import ORG, LaneName, Rank, Timer, TimerKind
from engine.store import timers
from engine.store.due import beginnings, near, next_due
from engine.store.timers import Arming
from tests.fakes import START
from tests.store import queue

NOW = START
LEASE = timedelta(seconds=30)


def later(**delta: float) -> datetime:
    return NOW + timedelta(**delta)


def deliver(subject: int, due_at: datetime = NOW, *, rank: Rank = Rank.PAGE) -> Arming:
    return Arming(TimerKind.DELIVER, subject, due_at, rank=rank)


async def arm(database: Database, *armings: Arming) -> None:
    await database.write(lambda tx: timers.arm(tx, ORG, armings))


async def due(
    database: Database, now: datetime = NOW, limit: int = 100, lane: LaneName = LaneName.DELIVER
) -> list[Timer]:
    async with database.snapshot() as tx:
        return await queue.due(tx, lane, now, limit)


async def claim(database: Database, now: datetime = NOW, found: Sequence[Timer] | None = None) -> list[Timer]:
    wanted = await due(database, now) if found is None else found
    return await database.write(lambda tx: timers.claim(tx, wanted, "me", now + LEASE, now))


async def rows(database: Database) -> dict[int, Timer]:
    async with database.snapshot() as tx:
        found = await tx.execute(sa.select(*timers.COLUMNS))
        return {timer.subject_id: timer for timer in (Timer(*row) for row in found)}


async def test_arming_again_moves_the_one_live_timer(database: Database) -> None:
    """A second arming of a subject is the same row, with a new due time, epoch and revision."""
    await arm(database, deliver(7))
    (first,) = (await rows(database)).values()
    await arm(database, Arming(TimerKind.DELIVER, 7, later(minutes=5), epoch=3, rank=Rank.NOTICE))
    (second,) = (await rows(database)).values()
    assert second.id == first.id
    assert (second.due_at, second.epoch, second.rank) == (later(minutes=5), 3, Rank.NOTICE)
    assert (first.rev, second.rev) == (1, 2)
    assert await due(database) == []


async def test_kinds_and_subjects_have_timers_of_their_own(database: Database) -> None:
    """One incident may wait for its escalation and its snooze at once; its number is no other's."""
    kinds = (TimerKind.ESCALATE, TimerKind.UNSNOOZE, TimerKind.CARD, TimerKind.DELIVER)
    await arm(database, *(Arming(kind, 7, NOW) for kind in kinds))
    assert len(await due(database, lane=LaneName.FATE)) == 2
    assert len(await due(database, lane=LaneName.CARD)) == 1
    await database.write(lambda tx: timers.disarm(tx, ORG, timers.FATE_KINDS, [7]))
    assert await due(database, lane=LaneName.FATE) == []
    assert len(await due(database)) == 1


async def test_the_same_subject_twice_in_one_arming_is_one_timer(database: Database) -> None:
    """The last arming of a batch counts: PostgreSQL would refuse to touch one row twice."""
    await arm(database, deliver(7, NOW), deliver(7, later(minutes=1)))
    assert {subject: timer.due_at for subject, timer in (await rows(database)).items()} == {
        7: later(minutes=1)
    }


async def test_what_is_due_comes_oldest_first_and_can_be_paged(database: Database) -> None:
    """Due timers are read in order of due time, and what was seen can be paged past."""
    await arm(database, *(deliver(n, later(seconds=-n)) for n in range(1, 6)), deliver(9, later(seconds=1)))
    first = await due(database, limit=2)
    assert [timer.subject_id for timer in first] == [5, 4]
    async with database.snapshot() as tx:
        rest = await queue.due(tx, LaneName.DELIVER, NOW, 100, first[-1])
    assert [timer.subject_id for timer in rest] == [3, 2, 1]


async def test_pages_come_before_notices_however_long_those_have_waited(database: Database) -> None:
    """A backlog of lesser messages never stands before a page, nor on the next page of reading."""
    notices = [deliver(n, later(minutes=-9), rank=Rank.NOTICE) for n in range(1, 4)]
    await arm(database, *notices, deliver(7), deliver(8))
    first = await due(database, limit=1)
    assert [timer.subject_id for timer in first] == [7]
    async with database.snapshot() as tx:
        rest = await queue.due(tx, LaneName.DELIVER, NOW, 2, first[-1])
    assert [timer.subject_id for timer in rest] == [8, 1]


async def test_unknown_kinds_are_left_alone_and_starve_nobody(database: Database) -> None:
    """A hundred timers of a newer version stay, and the good one behind them is found (B053, B055)."""
    new = [
        {"org_id": ORG, "kind": "hologram", "lane": "deliver", "subject_id": n, "due_at": later(seconds=-9)}
        for n in range(100)
    ]
    await database.write(lambda tx: tx.execute(sa.insert(schema.timers), new))
    await arm(database, deliver(7))
    assert [timer.subject_id for timer in await claim(database)] == [7]
    async with database.snapshot() as tx:
        assert await next_due(tx) == later(seconds=30)
        untouched = await tx.scalar(
            sa.select(sa.func.count()).where(schema.timers.c.kind == "hologram", schema.timers.c.attempt == 0)
        )
    assert untouched == 100


async def test_a_claim_raises_the_attempt_and_hides_the_timer(database: Database) -> None:
    """Who claims counts an attempt before any work; until the lease ends nobody else sees it."""
    await arm(database, deliver(7))
    found = await due(database)
    (held,) = await claim(database, found=found)
    assert (held.attempt, await queue.lease(database, 7)) == (1, later(seconds=30))
    assert await due(database) == []
    assert await claim(database, found=found) == []
    assert await due(database, later(seconds=29)) == []
    (again,) = await claim(database, later(seconds=30))
    assert again.attempt == 2


async def test_what_is_not_due_any_more_is_not_claimed(database: Database) -> None:
    """Between the reading and the claim a timer may be moved or disarmed: then it is nobody's."""
    await arm(database, deliver(1), deliver(2), deliver(3))
    found = await due(database)
    await arm(database, deliver(1, later(minutes=1)))
    await database.write(lambda tx: timers.disarm(tx, ORG, [TimerKind.DELIVER], [2]))
    assert [timer.subject_id for timer in await claim(database, found=found)] == [3]


@pytest.mark.parametrize("ending", ["finish", "postpone"])
async def test_an_old_attempt_changes_nothing(database: Database, ending: str) -> None:
    """Whoever stalled past the lease neither finishes nor postpones the timer another holds (I8)."""
    await arm(database, deliver(7))
    (stalled,) = await claim(database)
    (holder,) = await claim(database, later(seconds=31))

    async def unit(tx: Tx) -> bool:
        if ending == "finish":
            return await timers.finish(tx, stalled)
        return await timers.postpone(tx, stalled, later(hours=1))

    assert await database.write(unit) is False
    assert (await rows(database))[7] == holder
    assert await database.write(lambda tx: timers.finish(tx, holder)) is True
    assert await rows(database) == {}
    assert await database.write(lambda tx: timers.finish(tx, holder)) is False


@pytest.mark.parametrize("ending", ["finish", "postpone"])
async def test_a_timer_armed_again_while_held_is_due_again(database: Database, ending: str) -> None:
    """What changed during the work is worked once more, at the time it was armed for."""
    await arm(database, deliver(7))
    (held,) = await claim(database)
    await arm(database, deliver(7, later(seconds=5)))
    assert await due(database, later(seconds=6)) == [], "its holder still has it"

    async def unit(tx: Tx) -> bool:
        if ending == "finish":
            return await timers.finish(tx, held)
        return await timers.postpone(tx, held, later(hours=1))

    assert await database.write(unit) is True
    (again,) = await due(database, later(seconds=6))
    assert (again.due_at, again.attempt) == (later(seconds=5), 1)
    assert await queue.lease(database, 7) is None


async def test_postponed_is_free_and_due_later(database: Database) -> None:
    """A postponed timer can be claimed from its new time on, by anybody."""
    await arm(database, deliver(7))
    (held,) = await claim(database)
    assert await database.write(lambda tx: timers.postpone(tx, held, later(seconds=60)))
    assert await due(database, later(seconds=59)) == []
    (again,) = await claim(database, later(seconds=60))
    assert again.attempt == 2


async def test_pull_makes_due_earlier_but_never_later_and_not_what_is_held(database: Database) -> None:
    """A pulled timer is due now; one due already and one that somebody holds stay as they are."""
    await arm(database, deliver(1, later(minutes=5)), deliver(2, later(minutes=-5)), deliver(3))
    (two, three) = await due(database)
    (held,) = await claim(database, found=[three])
    await arm(database, deliver(3, later(minutes=5)))
    moved = await database.write(lambda tx: timers.pull(tx, ORG, TimerKind.DELIVER, [1, 2, 3], NOW))
    found = await rows(database)
    assert moved == 1
    assert (found[1].due_at, found[1].rev) == (NOW, 2)
    assert found[2] == two
    assert (found[3].due_at, found[3].attempt) == (later(minutes=5), held.attempt)


async def test_move_puts_off_only_what_nobody_holds_or_armed_again(database: Database) -> None:
    """Moving goes by what was read: a newer arming and a lease win over it."""
    await arm(database, deliver(1), deliver(2), deliver(3))
    found = await due(database)
    (held,) = await claim(database, found=found[1:2])
    await arm(database, deliver(3, later(seconds=-1)))
    later_on = [(timer, later(hours=1)) for timer in found]
    await database.write(lambda tx: timers.move(tx, later_on))
    after = await rows(database)
    assert after[1].due_at == later(hours=1)
    assert after[2] == held
    assert after[3].due_at == later(seconds=-1)


async def test_disarming_unsent_leaves_what_is_in_flight(database: Database) -> None:
    """The timer of a message that is being sent stays, so that its end is recorded."""
    await arm(database, deliver(1), deliver(2))
    found = await due(database)
    await claim(database, found=found[:1])
    await database.write(lambda tx: timers.disarm_unsent(tx, ORG, [1, 2]))
    assert list(await rows(database)) == [1]


async def test_a_failed_timer_counts_and_comes_later_unless_it_was_armed_again(database: Database) -> None:
    """A failure raises the attempt; one armed again meanwhile is not put off."""
    await arm(database, deliver(1))
    (timer,) = await due(database)
    for tries in (1, 2):
        assert await database.write(lambda tx: timers.defer_failed(tx, timer, later(seconds=30))) == tries
    await arm(database, deliver(1))
    assert await database.write(lambda tx: timers.defer_failed(tx, timer, later(seconds=30))) == 0
    assert (await rows(database))[1].due_at == NOW


async def test_the_next_due_time_waits_for_a_lease(database: Database) -> None:
    """The next instant at which anything can be worked: a due time, or the end of a lease."""
    async with database.snapshot() as tx:
        assert await next_due(tx) is None
    await arm(database, deliver(1), Arming(TimerKind.ESCALATE, 1, later(minutes=2)))
    await claim(database)
    async with database.snapshot() as tx:
        assert await next_due(tx) == later(seconds=30)
        upcoming, _ = await near(tx, beginnings([LaneName.FATE]), NOW, later(minutes=2), 10)
    assert [timer.due_at for timer in upcoming] == [later(minutes=2)]


async def test_every_statement_works_a_dozen_times_on_one_connection(any_database_url: str) -> None:
    """PostgreSQL's generic plan, taken from the sixth execution on, changes nothing (F-21, B038)."""
    database = Database(any_database_url, pool_size=1)
    for round_ in range(1, 14):
        now = later(minutes=round_)
        await arm(database, *(deliver(n, now) for n in range(4)), Arming(TimerKind.ESCALATE, 1, now))
        held = await claim(database, now)
        assert len(held) == 4
        await arm(database, deliver(0, now))

        async def unit(tx: Tx, held: Sequence[Timer] = held, now: datetime = now) -> None:
            assert await timers.finish(tx, held[0])
            assert await timers.finish(tx, held[1])
            assert await timers.postpone(tx, held[2], now + LEASE)
            assert await timers.pull(tx, ORG, TimerKind.DELIVER, [2, 3], now) == 1
            await timers.move(tx, [(held[0], now)])
            await timers.disarm_unsent(tx, ORG, [2])
            await timers.disarm(tx, ORG, [TimerKind.DELIVER], [0, 3])
            found = await timers.of_subjects(tx, ORG, [TimerKind.ESCALATE], [1])
            assert await timers.defer_failed(tx, found[0], now) == 1
            assert list(await timers.live(tx, [found[0].id])) == [found[0].id]
            await near(tx, beginnings(), now, now + LEASE, 5)
            assert await next_due(tx) == now
            await timers.finish_all(tx, [found[0].id])

        await database.write(unit)
        assert await rows(database) == {}
    await database.close()
