"""Calendars as rows: links that are handed out, and calendars that are fetched. Decides nothing.

Never sees a link in clear, nor the URL of a calendar: a hash of the one, the other encrypted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from engine.db import Tx, given, upsert
from engine.schedule import OverrideKind, ScheduleOverride, Shift
from engine.schema import calendar_feeds as feeds
from engine.schema import calendar_imports as imports
from engine.schema import overrides, people, schedule_versions, schedules


@dataclass(frozen=True, slots=True)
class Feed:
    """A link: of a person's shifts or of a schedule's. `made_by` None: whoever runs Midwatch."""

    id: int
    person_id: int | None
    schedule_id: int | None
    made_by: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Import:
    """A calendar that a schedule follows. Without a URL it is followed no more; what it said stays."""

    id: int
    schedule_id: int
    url: str  # encrypted
    etag: str | None = None
    body: str | None = None
    shifts: tuple[Shift, ...] = ()
    unmatched: tuple[str, ...] = ()
    fetched_at: datetime | None = None
    tried_at: datetime | None = None
    error: str | None = None
    failures: int = 0


# --- links

_FEED: Final = (feeds.c.id, feeds.c.person_id, feeds.c.schedule_id, feeds.c.made_by, feeds.c.created_at)
_HOLDER = people.alias("holder")
_OPEN = sa.and_(
    feeds.c.revoked_at.is_(None),
    people.c.deactivated_at.is_(None),
    _HOLDER.c.deactivated_at.is_(None),
    schedules.c.deleted_at.is_(None),
)
_OPEN_FEEDS = (
    sa.select(*_FEED)
    .outerjoin(people, people.c.id == feeds.c.person_id)
    .outerjoin(_HOLDER, _HOLDER.c.id == feeds.c.made_by)
    .outerjoin(schedules, schedules.c.id == feeds.c.schedule_id)
    .where(feeds.c.org_id == given("org", feeds.c.org_id), _OPEN)
)
_BY_HASH = _OPEN_FEEDS.where(feeds.c.token_hash == given("hash", feeds.c.token_hash))


async def feed_by_hash(tx: Tx, org_id: int, token_hash: str) -> Feed | None:
    """None for one that is unknown, was revoked, or is of somebody or something that is gone."""
    row = (await tx.execute(_BY_HASH, {"org": org_id, "hash": token_hash})).first()
    return None if row is None else Feed(*row)


async def open_feeds(tx: Tx, org_id: int) -> list[Feed]:
    return [Feed(*row) for row in await tx.execute(_OPEN_FEEDS.order_by(feeds.c.id), {"org": org_id})]


async def insert_feed(tx: Tx, org_id: int, token_hash: str, new: Feed) -> int:
    row = await tx.execute(
        sa.insert(feeds)
        .values(
            org_id=org_id,
            token_hash=token_hash,
            person_id=new.person_id,
            schedule_id=new.schedule_id,
            made_by=new.made_by,
            created_at=new.created_at,
        )
        .returning(feeds.c.id)
    )
    return int(row.scalar_one())


async def revoke_feeds(tx: Tx, org_id: int, ids: Sequence[int], now: datetime) -> int:
    """How many of them still opened something."""
    mine = sa.update(feeds).where(feeds.c.org_id == org_id, feeds.c.id.in_(ids))
    done = await tx.execute(mine.where(feeds.c.revoked_at.is_(None)).values(revoked_at=now))
    return done.rowcount


async def changed_at(tx: Tx, org_id: int, schedule_ids: Sequence[int]) -> datetime | None:
    """When any of these schedules was last edited or overridden."""
    latest = [
        sa.select(sa.func.max(column)).where(table.c.org_id == org_id, table.c.schedule_id.in_(schedule_ids))
        for table, column in (
            (schedule_versions, schedule_versions.c.created_at),
            (overrides, overrides.c.created_at),
            (overrides, overrides.c.cancelled_at),
        )
    ]
    found = [await tx.scalar(statement) for statement in latest]
    return max((at for at in found if at is not None), default=None)


# --- calendars that are fetched


async def follow(tx: Tx, org_id: int, schedule_id: int, url: str) -> int:
    """Let a schedule follow the calendar at this URL (encrypted); what was read before stays until then."""
    insert = upsert(tx, imports).values(
        org_id=org_id, schedule_id=schedule_id, url=url, shifts=[], unmatched=[], failures=0
    )
    nothing = dict.fromkeys(("etag", "body", "error"))
    anew: dict[str, Any] = {**nothing, "url": url, "unmatched": [], "failures": 0}
    statement = insert.on_conflict_do_update(index_elements=["org_id", "schedule_id"], set_=anew)
    return int((await tx.execute(statement.returning(imports.c.id))).scalar_one())


async def read_import(tx: Tx, org_id: int, import_id: int) -> Import | None:
    mine = sa.select(imports).where(imports.c.org_id == org_id, imports.c.id == import_id)
    row = (await tx.execute(mine)).first()
    return None if row is None else _import(row)


async def read_imports(tx: Tx, org_id: int) -> dict[int, Import]:
    """By schedule, without their bodies."""
    columns = [column for column in imports.c if column.name != "body"]
    found = await tx.execute(sa.select(*columns, sa.null().label("body")).where(imports.c.org_id == org_id))
    return {row.schedule_id: _import(row) for row in found}


async def save_import(tx: Tx, org_id: int, new: Import, was_url: str, *, same_body: bool = False) -> bool:
    """False: it follows another URL by now, and what was read is of the old one.

    `same_body`: the text, which may be megabytes, is as it was stored.
    """
    body = {} if same_body else {"body": new.body}
    done = await tx.execute(
        sa.update(imports)
        .where(imports.c.org_id == org_id, imports.c.id == new.id, imports.c.url == was_url)
        .values(
            url=new.url,
            etag=new.etag,
            **body,
            shifts=[_plain(shift) for shift in new.shifts],
            unmatched=list(new.unmatched),
            fetched_at=new.fetched_at,
            tried_at=new.tried_at,
            error=new.error,
            failures=new.failures,
        )
    )
    return done.rowcount == 1


async def followed(tx: Tx, org_id: int) -> list[int]:
    """The ids of imports that are to be fetched."""
    mine = sa.select(imports.c.id).where(imports.c.org_id == org_id, imports.c.url != "")
    return [int(one) for one in await tx.scalars(mine.order_by(imports.c.id))]


_SHIFTS = sa.select(imports.c.schedule_id, imports.c.shifts).where(
    imports.c.org_id == given("org", imports.c.org_id)
)


async def read_shifts(tx: Tx, org_id: int, after: datetime) -> dict[int, list[ScheduleOverride]]:
    """What calendars say, for the resolver: whoever a shift names is on call instead of the layers.

    Why as overrides that come before all others: a calendar's shift begins and ends at an instant, lies
    above the layers and the fallback, and below what people override by hand.
    """
    found = await tx.execute(_SHIFTS, {"org": org_id})
    return {row.schedule_id: _fixed(row.shifts, after.timestamp()) for row in found}


def _fixed(plain: Sequence[Any], after: float) -> list[ScheduleOverride]:
    made: list[ScheduleOverride] = []
    for shift in (_shift(each) for each in plain if each[1] > after):
        kinds = [OverrideKind.REPLACE_ALL, *[OverrideKind.ADD] * (len(shift.people) - 1)]
        made += [
            ScheduleOverride(kind, one, shift.start, shift.end, calendar=True)
            for kind, one in zip(kinds, shift.people, strict=True)
        ]
    return made


def _plain(shift: Shift) -> list[Any]:
    return [int(shift.start.timestamp()), int(shift.end.timestamp()), list(shift.people)]


def _shift(plain: Sequence[Any]) -> Shift:
    start, end, who = plain
    return Shift(datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(end, UTC), tuple(who))


def _import(row: Any) -> Import:
    return replace(
        Import(row.id, row.schedule_id, row.url),
        etag=row.etag,
        body=row.body,
        shifts=tuple(_shift(each) for each in row.shifts),
        unmatched=tuple(row.unmatched),
        fetched_at=row.fetched_at,
        tried_at=row.tried_at,
        error=row.error,
        failures=row.failures,
    )
