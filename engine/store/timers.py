"""Timer rows: armed, disarmed, claimed, finished. A row is live until it is deleted.

Decides nothing. Timers of an incident are touched only under that incident's lock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from engine.bulk import Insert, insert_many
from engine.db import ListOf, Tx, any_of, given, given_list
from engine.models import LaneName, Rank, Timer, TimerKind
from engine.schema import EPOCH, Instant, incidents, timers

FATE_KINDS = (
    TimerKind.ESCALATE,
    TimerKind.EXHAUST,
    TimerKind.UNSNOOZE,
    TimerKind.ACK_TIMEOUT,
    TimerKind.RAISE_URGENCY,
)

LANES = {
    **dict.fromkeys(FATE_KINDS, LaneName.FATE),
    TimerKind.DELIVER: LaneName.DELIVER,
    TimerKind.CARD: LaneName.CARD,
}

LANE_OF: dict[str, LaneName] = {kind.value: lane for kind, lane in LANES.items()}

COLUMNS = (
    timers.c.id,
    timers.c.org_id,
    timers.c.kind,
    timers.c.subject_id,
    timers.c.due_at,
    timers.c.rank,
    timers.c.epoch,
    timers.c.rev,
    timers.c.attempt,
)


@dataclass(frozen=True, slots=True)
class Arming:
    """A timer to arm; at most one is live for a kind and subject, so arming again moves it."""

    kind: TimerKind
    subject_id: int
    due_at: datetime
    epoch: int = 0
    rank: Rank = Rank.PAGE


def _timer(row: Any) -> Timer:
    return Timer(*row)


async def arm(tx: Tx, org_id: int, armings: Iterable[Arming]) -> None:
    rows = sorted(
        (
            {
                "kind": a.kind.value,
                "lane": LANES[a.kind].value,
                "subject_id": a.subject_id,
                "due_at": a.due_at,
                "epoch": a.epoch,
                "rank": int(a.rank),
            }
            for a in {(a.kind, a.subject_id): a for a in armings}.values()
        ),
        key=lambda row: (row["kind"], row["subject_id"]),
    )
    if not rows:
        return
    await insert_many(tx, timers, rows, _armed_again, {"org_id": org_id, "rev": 1, "attempt": 0})


def _armed_again(insert: Insert) -> sa.Insert:
    new = insert.excluded
    return insert.on_conflict_do_update(
        index_elements=["org_id", "kind", "subject_id"],
        # A lease in force stays: whoever holds it sees at its end that `rev` has moved on.
        set_={"due_at": new.due_at, "epoch": new.epoch, "rank": new.rank, "rev": timers.c.rev + 1},
    )


async def disarm(tx: Tx, org_id: int, kinds: Sequence[TimerKind], subjects: Sequence[int]) -> None:
    if subjects:
        await tx.execute(
            sa.delete(timers).where(
                timers.c.org_id == org_id,
                any_of(timers.c.kind, [kind.value for kind in kinds]),
                any_of(timers.c.subject_id, subjects),
            )
        )


async def disarm_unsent(tx: Tx, org_id: int, deliveries: Sequence[int]) -> None:
    """Forget `deliver` timers that nobody holds; one in flight is recorded by its holder."""
    if deliveries:
        await tx.execute(
            sa.delete(timers).where(
                timers.c.org_id == org_id,
                timers.c.kind == TimerKind.DELIVER.value,
                any_of(timers.c.subject_id, deliveries),
                timers.c.lease_until.is_(None),
            )
        )


async def of_subjects(
    tx: Tx, org_id: int, kinds: Sequence[TimerKind], subjects: Sequence[int]
) -> list[Timer]:
    rows = await tx.execute(
        sa.select(*COLUMNS).where(
            timers.c.org_id == org_id,
            any_of(timers.c.kind, [kind.value for kind in kinds]),
            any_of(timers.c.subject_id, subjects),
        )
    )
    return [_timer(row) for row in rows]


def _free(now: datetime) -> sa.ColumnElement[bool]:
    return sa.and_(
        timers.c.due_at <= now, sa.or_(timers.c.lease_until.is_(None), timers.c.lease_until <= now)
    )


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere in the queue of a lane and rank; without `due_at` its beginning."""

    lane: LaneName
    rank: Rank
    due_at: datetime = EPOCH
    id: int = 0


def beginnings(lanes: Iterable[LaneName] = LaneName) -> tuple[Place, ...]:
    return tuple(Place(lane, rank) for lane in lanes for rank in Rank)


async def near(
    tx: Tx, places: Sequence[Place], now: datetime, until: datetime, limit: int
) -> tuple[list[Timer], tuple[Place, ...]]:
    """What comes after these places, due `until` then and untaken now: at most `limit` of each queue,
    in one statement. Second: where to read on in queues that have more."""
    bound: dict[str, Any] = {"until": until, "now": now, "few": limit, "kinds": [*LANES]}
    for n, place in enumerate(places):
        bound |= {f"lane{n}": place.lane, f"rank{n}": int(place.rank)}
        bound |= {f"due{n}": place.due_at, f"id{n}": place.id}
    rows = await tx.execute(_near(len(places)), bound)
    found = [_timer(row) for row in rows]
    last: dict[tuple[LaneName, int], list[Timer]] = defaultdict(list)
    for timer in found:
        last[LANE_OF[timer.kind], timer.rank].append(timer)
    full = [
        Place(lane, Rank(rank), *max((timer.due_at, timer.id) for timer in these))
        for (lane, rank), these in last.items()
        if len(these) == limit
    ]
    return sorted(found, key=lambda timer: (timer.rank, timer.due_at, timer.id)), tuple(full)


@lru_cache(maxsize=32)
def _near(queues: int) -> sa.CompoundSelect[Any]:
    """One probe of the index for each queue. Kinds of a newer version are left alone."""
    until, now = (sa.bindparam(name, type_=Instant) for name in ("until", "now"))
    free = sa.or_(timers.c.lease_until.is_(None), timers.c.lease_until <= now)
    known = any_of(timers.c.kind, sa.bindparam("kinds", type_=ListOf(sa.Text)))
    each = []
    for n in range(queues):
        place = sa.tuple_(sa.bindparam(f"due{n}", type_=Instant), sa.bindparam(f"id{n}", type_=sa.BigInteger))
        queue = (
            sa.select(*COLUMNS)
            .where(timers.c.lane == sa.bindparam(f"lane{n}", type_=sa.Text))
            .where(timers.c.rank == sa.bindparam(f"rank{n}", type_=sa.Integer))
            .where(sa.tuple_(timers.c.due_at, timers.c.id) > place, timers.c.due_at <= until, free, known)
            .order_by(timers.c.due_at, timers.c.id)
            .limit(sa.bindparam("few", type_=sa.Integer))
        )
        each.append(sa.select(queue.subquery(f"queue{n}")))
    return sa.union_all(*each)


async def next_due(tx: Tx) -> datetime | None:
    """When the earliest timer of any lane is due, or its lease ends, whichever is later."""
    earliest = []
    for lane in LaneName:
        rows = await tx.execute(
            sa.select(timers.c.due_at, timers.c.lease_until)
            .where(timers.c.lane == lane.value, any_of(timers.c.kind, [*LANES]))
            .order_by(timers.c.due_at, timers.c.id)
            .limit(50)
        )
        earliest += [max(row.due_at, row.lease_until or row.due_at) for row in rows]
    return min(earliest, default=None)


async def live(tx: Tx, ids: Sequence[int]) -> dict[int, Timer]:
    """The rows of these timers as they are now; under the incident's lock they stay so."""
    rows = await tx.execute(sa.select(*COLUMNS).where(any_of(timers.c.id, ids)))
    return {row.id: _timer(row) for row in rows}


async def finish_all(tx: Tx, ids: Sequence[int]) -> None:
    if ids:
        await tx.execute(sa.delete(timers).where(any_of(timers.c.id, ids)))


_FINISH_DUE = (
    sa.delete(timers)
    .where(
        any_of(timers.c.id, given_list("ids", timers.c.id)), timers.c.due_at <= given("now", timers.c.due_at)
    )
    .returning(*COLUMNS)
)


async def finish_due(tx: Tx, ids: Sequence[int], now: datetime) -> list[Timer]:
    """Finish those of these timers that are due still, whatever became of them since they were read;
    returns them. Their incidents are locked by us."""
    rows = await tx.execute(_FINISH_DUE, {"ids": ids, "now": now})
    return sorted((_timer(row) for row in rows), key=lambda timer: (timer.due_at, timer.id))


async def claim(
    tx: Tx, candidates: Sequence[Timer], owner: str, lease_until: datetime, now: datetime
) -> list[Timer]:
    """Take a lease on those that are still free; raises `attempt`, the fence of every later write.

    The predicate is restated in the outer WHERE: matched by id alone, two workers would both
    believe that they had it.
    """
    if not candidates:
        return []
    free = (
        sa.select(timers.c.id)
        .where(any_of(timers.c.id, [timer.id for timer in candidates]), _free(now))
        .order_by(timers.c.due_at, timers.c.id)
        .with_for_update(skip_locked=True)
        .cte("free")
    )
    rows = await tx.execute(
        sa.update(timers)
        .where(timers.c.id.in_(sa.select(free.c.id)), _free(now))
        .values(lease_until=lease_until, lease_owner=owner, attempt=timers.c.attempt + 1)
        .returning(*COLUMNS)
    )
    return sorted((_timer(row) for row in rows), key=lambda timer: (timer.due_at, timer.id))


def _held(timer: Timer) -> sa.ColumnElement[bool]:
    # Why: a worker that stalled past its lease must change nothing, whatever it believes.
    return sa.and_(timers.c.id == timer.id, timers.c.attempt == timer.attempt)


async def finish(tx: Tx, timer: Timer) -> bool:
    """Finish a claimed timer. False: the lease is lost. One re-armed meanwhile is due again."""
    gone = await tx.execute(sa.delete(timers).where(_held(timer), timers.c.rev == timer.rev))
    if gone.rowcount == 1:
        return True
    kept = await tx.execute(sa.update(timers).where(_held(timer)).values(lease_until=None, lease_owner=None))
    return kept.rowcount == 1


async def postpone(tx: Tx, timer: Timer, due_at: datetime) -> bool:
    """Give a claimed timer back, due at `due_at` or when it was re-armed for. False: lease lost."""
    kept = await tx.execute(
        sa.update(timers)
        .where(_held(timer))
        .values(
            lease_until=None,
            lease_owner=None,
            due_at=sa.case(
                (timers.c.rev == timer.rev, sa.literal(due_at, timers.c.due_at.type)),
                else_=timers.c.due_at,
            ),
        )
    )
    return kept.rowcount == 1


async def move(tx: Tx, later: Sequence[tuple[Timer, datetime]]) -> None:
    """Put off timers that nobody holds and that nobody armed again meanwhile."""
    await tx.execute(
        sa.update(timers)
        .where(
            timers.c.id == sa.bindparam("of_id"),
            timers.c.rev == sa.bindparam("of_rev"),
            timers.c.lease_until.is_(None),
        )
        .values(due_at=sa.bindparam("new_due", type_=timers.c.due_at.type)),
        [
            {"of_id": timer.id, "of_rev": timer.rev, "new_due": due_at}
            for timer, due_at in sorted(later, key=lambda one: one[0].id)
        ],
    )


async def pull(tx: Tx, org_id: int, kind: TimerKind, subjects: Sequence[int], due_at: datetime) -> int:
    """Make timers due at `due_at` if they are due later; those that somebody holds stay."""
    moved = await tx.execute(
        sa.update(timers)
        .where(
            timers.c.org_id == org_id,
            timers.c.kind == kind.value,
            any_of(timers.c.subject_id, subjects),
            timers.c.due_at > due_at,
            timers.c.lease_until.is_(None),
        )
        .values(due_at=due_at, rev=timers.c.rev + 1)
    )
    return moved.rowcount


async def defer_failed(tx: Tx, timer: Timer, due_at: datetime) -> int:
    """A timer that failed alone: count the attempt and try later. Returns the attempts so far."""
    row = await tx.execute(
        sa.update(timers)
        .where(timers.c.id == timer.id, timers.c.rev == timer.rev)
        .values(attempt=timers.c.attempt + 1, due_at=due_at)
        .returning(timers.c.attempt)
    )
    return int(row.scalar_one_or_none() or 0)


async def count_attempts(tx: Tx, begun: Sequence[Timer], now: datetime = EPOCH) -> set[int]:
    """Timers that nobody holds are about to be worked: should that end the process, the row knows.
    A lease that was over by `now` holds nothing.

    Returns those that were counted. The others are being changed by somebody, or were counted by
    another since they were read: of processes that begin together, one counts and works them.
    """
    read = {timer.id: timer.attempt for timer in begun}
    found = await _free_attempts(tx, [*read], now)
    ours = {one for one, attempt in found.items() if attempt == read[one]}
    await _add_attempts(tx, ours, 1)
    return ours


async def uncount_attempts(tx: Tx, ids: Iterable[int], now: datetime = EPOCH) -> set[int]:
    """Whoever had counted these is alive, so nothing speaks against them. Returns those taken back."""
    found = await _free_attempts(tx, [*ids], now)
    await _add_attempts(tx, [one for one, attempt in found.items() if attempt > 0], -1)
    return {*found}


async def _free_attempts(tx: Tx, ids: Sequence[int], now: datetime) -> dict[int, int]:
    # Why skipping: their incidents may be somebody else's, and who never waits is in no deadlock.
    rows = await tx.execute(
        sa.select(timers.c.id, timers.c.attempt)
        .where(
            any_of(timers.c.id, ids),
            sa.or_(timers.c.lease_until.is_(None), timers.c.lease_until <= now),
        )
        .order_by(timers.c.id)
        .with_for_update(skip_locked=True)
    )
    return {row.id: row.attempt for row in rows}


async def _add_attempts(tx: Tx, ids: Collection[int], more: int) -> None:
    if ids:
        counted = sa.update(timers).where(any_of(timers.c.id, sorted(ids)))
        await tx.execute(counted.values(attempt=timers.c.attempt + more))


async def held_subjects(tx: Tx, ids: Sequence[int], *, skip_locked: bool) -> set[int]:
    """Lock these incidents without reading them, as some cannot be read. Returns those of another."""
    these = sa.select(incidents.c.id).where(any_of(incidents.c.id, ids)).order_by(incidents.c.id)
    ours = await tx.scalars(these.with_for_update(skip_locked=skip_locked, key_share=True))
    # Why both: what is no more cannot be locked either, and nobody holds it.
    free = {*ours}
    return {*await tx.scalars(these)} - free
