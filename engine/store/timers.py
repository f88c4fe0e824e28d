"""Timer rows: armed, disarmed, claimed, finished. A row is live until it is deleted.

Decides nothing. Timers of an incident are touched only under that incident's lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from engine.bulk import Insert, insert_many
from engine.db import Tx, any_of, given, given_list
from engine.models import LaneName, Rank, Timer, TimerKind
from engine.schema import EPOCH, incidents, timers

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
    TimerKind.SHIFT: LaneName.ROTA,
    TimerKind.HANDOFF: LaneName.ROTA,
    TimerKind.COVER: LaneName.ROTA,
    TimerKind.COVERAGE: LaneName.OUTSIDE,  # it asks Slack who was deactivated there
    TimerKind.SHOWN: LaneName.OUTSIDE,
    TimerKind.CALENDAR: LaneName.OUTSIDE,
    TimerKind.RECEIPT: LaneName.OUTSIDE,
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


def timer_of(row: Any) -> Timer:
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


_OF_SUBJECTS = sa.and_(
    timers.c.org_id == given("of_org", timers.c.org_id),
    any_of(timers.c.kind, given_list("kinds", timers.c.kind)),
    any_of(timers.c.subject_id, given_list("subjects", timers.c.subject_id)),
)
_DISARM = sa.delete(timers).where(_OF_SUBJECTS)
_READ_OF_SUBJECTS = sa.select(*COLUMNS).where(_OF_SUBJECTS)


def _these(org_id: int, kinds: Sequence[TimerKind], subjects: Sequence[int]) -> dict[str, Any]:
    return {"of_org": org_id, "kinds": [kind.value for kind in kinds], "subjects": subjects}


async def disarm(tx: Tx, org_id: int, kinds: Sequence[TimerKind], subjects: Sequence[int]) -> None:
    if subjects:
        await tx.execute(_DISARM, _these(org_id, kinds, subjects))


_DISARM_UNSENT = sa.delete(timers).where(_OF_SUBJECTS, timers.c.lease_until.is_(None))


async def disarm_unsent(tx: Tx, org_id: int, deliveries: Sequence[int]) -> None:
    """Forget `deliver` timers that nobody holds; one in flight is recorded by its holder."""
    if deliveries:
        await tx.execute(_DISARM_UNSENT, _these(org_id, [TimerKind.DELIVER], deliveries))


async def of_subjects(
    tx: Tx, org_id: int, kinds: Sequence[TimerKind], subjects: Sequence[int]
) -> list[Timer]:
    rows = await tx.execute(_READ_OF_SUBJECTS, _these(org_id, kinds, subjects))
    return [timer_of(row) for row in rows]


_THESE = any_of(timers.c.id, given_list("ids", timers.c.id))
_LIVE = sa.select(*COLUMNS).where(_THESE)


async def live(tx: Tx, ids: Sequence[int]) -> dict[int, Timer]:
    """The rows of these timers as they are now; under the incident's lock they stay so."""
    found = map(timer_of, await tx.execute(_LIVE, {"ids": ids}))
    return {timer.id: timer for timer in found}


_FINISH = sa.delete(timers).where(_THESE)


async def finish_all(tx: Tx, ids: Sequence[int]) -> None:
    if ids:
        await tx.execute(_FINISH, {"ids": ids})


_FINISH_DUE = (
    sa.delete(timers).where(_THESE, timers.c.due_at <= given("now", timers.c.due_at)).returning(*COLUMNS)
)


async def finish_due(tx: Tx, ids: Sequence[int], now: datetime) -> list[Timer]:
    """Finish those of these timers that are due still, whatever became of them since they were read;
    returns them. Their incidents are locked by us."""
    rows = await tx.execute(_FINISH_DUE, {"ids": ids, "now": now})
    return sorted((timer_of(row) for row in rows), key=lambda timer: (timer.due_at, timer.id))


_NOW = given("now", timers.c.due_at)
_FREE_NOW = sa.and_(
    timers.c.due_at <= _NOW, sa.or_(timers.c.lease_until.is_(None), timers.c.lease_until <= _NOW)
)
_FREE = (
    sa.select(timers.c.id)
    .where(_THESE, _FREE_NOW)
    .order_by(timers.c.due_at, timers.c.id)
    .with_for_update(skip_locked=True)
    .cte("free")
)
_CLAIM = (
    sa.update(timers)
    .where(timers.c.id.in_(sa.select(_FREE.c.id)), _FREE_NOW)
    .values(
        lease_until=given("new_lease", timers.c.lease_until),
        lease_owner=given("new_owner", timers.c.lease_owner),
        attempt=timers.c.attempt + 1,
    )
    .returning(*COLUMNS)
)


async def claim(
    tx: Tx, candidates: Sequence[Timer], owner: str, lease_until: datetime, now: datetime
) -> list[Timer]:
    """Take a lease on those that are still free; raises `attempt`, the fence of every later write.

    The predicate is restated in the outer WHERE: matched by id alone, two workers would both
    believe that they had it.
    """
    if not candidates:
        return []
    values = {
        "ids": [timer.id for timer in candidates],
        "now": now,
        "new_lease": lease_until,
        "new_owner": owner,
    }
    rows = await tx.execute(_CLAIM, values)
    return sorted((timer_of(row) for row in rows), key=lambda timer: (timer.due_at, timer.id))


# Why: a worker that stalled past its lease must change nothing, whatever it believes.
_HELD = sa.and_(
    timers.c.id == given("of_id", timers.c.id), timers.c.attempt == given("of_attempt", timers.c.attempt)
)
_AS_READ = timers.c.rev == given("of_rev", timers.c.rev)
_FINISH_HELD = sa.delete(timers).where(_HELD, _AS_READ)
_GIVE_BACK = sa.update(timers).where(_HELD).values(lease_until=None, lease_owner=None)
_POSTPONE = _GIVE_BACK.values(
    due_at=sa.case((_AS_READ, given("new_due", timers.c.due_at)), else_=timers.c.due_at)
)


def _as_read(timer: Timer) -> dict[str, Any]:
    return {"of_id": timer.id, "of_attempt": timer.attempt, "of_rev": timer.rev}


async def finish(tx: Tx, timer: Timer) -> bool:
    """Finish a claimed timer. False: the lease is lost. One re-armed meanwhile is due again."""
    gone = await tx.execute(_FINISH_HELD, _as_read(timer))
    if gone.rowcount == 1:
        return True
    kept = await tx.execute(_GIVE_BACK, {"of_id": timer.id, "of_attempt": timer.attempt})
    return kept.rowcount == 1


async def postpone(tx: Tx, timer: Timer, due_at: datetime) -> bool:
    """Give a claimed timer back, due at `due_at` or when it was re-armed for. False: lease lost."""
    kept = await tx.execute(_POSTPONE, {**_as_read(timer), "new_due": due_at})
    return kept.rowcount == 1


_MOVE = (
    sa.update(timers)
    .where(timers.c.id == given("of_id", timers.c.id), _AS_READ, timers.c.lease_until.is_(None))
    .values(due_at=given("new_due", timers.c.due_at))
)


async def move(tx: Tx, later: Sequence[tuple[Timer, datetime]]) -> None:
    """Put off timers that nobody holds and that nobody armed again meanwhile."""
    await tx.execute(
        _MOVE,
        [
            {"of_id": timer.id, "of_rev": timer.rev, "new_due": due_at}
            for timer, due_at in sorted(later, key=lambda one: one[0].id)
        ],
    )


_NEW_DUE = given("new_due", timers.c.due_at)
_PULL = (
    sa.update(timers)
    .where(_OF_SUBJECTS, timers.c.due_at > _NEW_DUE, timers.c.lease_until.is_(None))
    .values(due_at=_NEW_DUE, rev=timers.c.rev + 1)
)


async def pull(tx: Tx, org_id: int, kind: TimerKind, subjects: Sequence[int], due_at: datetime) -> int:
    """Make timers due at `due_at` if they are due later; those that somebody holds stay."""
    moved = await tx.execute(_PULL, {**_these(org_id, [kind], subjects), "new_due": due_at})
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
