"""Cover requests, who was asked, and what was accepted. Decides nothing.

A part counts as long as its override does: it is gone when that is cancelled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from engine.covering import ASKED, OPEN, Request, Taken
from engine.db import Tx, any_of
from engine.parts import Part
from engine.schema import ASKING, cover_offers, cover_parts, cover_requests, overrides

_COLUMNS: Final = (
    cover_requests.c.id,
    cover_requests.c.schedule_id,
    cover_requests.c.asker_id,
    cover_requests.c.start_at,
    cover_requests.c.end_at,
    cover_requests.c.status,
    cover_requests.c.rev,
)


def _request(row: Any) -> Request:
    return Request(row.id, row.schedule_id, row.asker_id, Part(row.start_at, row.end_at), row.status, row.rev)


def _this(org_id: int, request_id: int) -> sa.ColumnElement[bool]:
    return sa.and_(cover_requests.c.org_id == org_id, cover_requests.c.id == request_id)


async def insert(
    tx: Tx, org_id: int, schedule_id: int, asker_id: int, whole: Part, asked: Sequence[int], now: datetime
) -> int:
    """A request, open, with everybody who is asked."""
    row = await tx.execute(
        sa.insert(cover_requests)
        .values(
            org_id=org_id,
            schedule_id=schedule_id,
            asker_id=asker_id,
            start_at=whole.start,
            end_at=whole.end,
            status=OPEN,
            rev=0,
            created_at=now,
        )
        .returning(cover_requests.c.id)
    )
    request_id = int(row.scalar_one())
    await tx.execute(
        sa.insert(cover_offers),
        [
            {"org_id": org_id, "request_id": request_id, "person_id": one, "answer": ASKED}
            for one in sorted(asked)
        ],
    )
    return request_id


async def read(tx: Tx, org_id: int, request_id: int) -> Request | None:
    row = (await tx.execute(sa.select(*_COLUMNS).where(_this(org_id, request_id)))).first()
    return None if row is None else _request(row)


async def change(tx: Tx, org_id: int, request_id: int) -> Request | None:
    """Lock it to change it, and count the change; None if it is not open any more.

    Why an update: of two people who accept in the same moment the second waits here for the first, and
    then sees what that one took. It is the row that decides, on both databases.
    """
    row = await tx.execute(
        sa.update(cover_requests)
        .where(_this(org_id, request_id), cover_requests.c.status == OPEN)
        .values(rev=cover_requests.c.rev + 1)
        .returning(*_COLUMNS)
    )
    found = row.first()
    return None if found is None else _request(found)


async def end(tx: Tx, org_id: int, request_id: int, status: str, now: datetime) -> None:
    await tx.execute(
        sa.update(cover_requests).where(_this(org_id, request_id)).values(status=status, ended_at=now)
    )


async def open_requests(tx: Tx, org_id: int) -> list[Request]:
    """The first to begin first."""
    rows = await tx.execute(
        sa.select(*_COLUMNS)
        .where(cover_requests.c.org_id == org_id, ASKING)
        .order_by(cover_requests.c.start_at, cover_requests.c.id)
    )
    return [_request(row) for row in rows]


async def answers(tx: Tx, org_id: int, request_ids: Sequence[int]) -> Mapping[int, Mapping[int, str]]:
    """By request: what each person who was asked has said."""
    rows = await tx.execute(
        sa.select(cover_offers.c.request_id, cover_offers.c.person_id, cover_offers.c.answer)
        .where(cover_offers.c.org_id == org_id, any_of(cover_offers.c.request_id, request_ids))
        .order_by(cover_offers.c.id)
    )
    found: dict[int, dict[int, str]] = {one: {} for one in request_ids}
    for row in rows:
        found[row.request_id][row.person_id] = row.answer
    return found


async def answer(tx: Tx, org_id: int, request_id: int, person_id: int, said: str, now: datetime) -> None:
    await tx.execute(
        sa.update(cover_offers)
        .where(
            cover_offers.c.org_id == org_id,
            cover_offers.c.request_id == request_id,
            cover_offers.c.person_id == person_id,
        )
        .values(answer=said, answered_at=now)
    )


async def insert_part(tx: Tx, org_id: int, request_id: int, override_id: int) -> None:
    await tx.execute(
        sa.insert(cover_parts).values(org_id=org_id, request_id=request_id, override_id=override_id)
    )


async def taken(tx: Tx, org_id: int, request_ids: Sequence[int]) -> list[Taken]:
    """The parts that are covered, the first to begin first."""
    rows = await tx.execute(
        sa.select(
            cover_parts.c.request_id,
            overrides.c.person_id,
            overrides.c.start_at,
            overrides.c.end_at,
            overrides.c.id,
        )
        .join(overrides, overrides.c.id == cover_parts.c.override_id)
        .where(
            cover_parts.c.org_id == org_id,
            any_of(cover_parts.c.request_id, request_ids),
            overrides.c.cancelled_at.is_(None),
        )
        .order_by(overrides.c.start_at, overrides.c.id)
    )
    return [Taken(row.request_id, row.person_id, Part(row.start_at, row.end_at), row.id) for row in rows]
