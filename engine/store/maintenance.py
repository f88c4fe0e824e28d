"""Maintenance windows: when nobody is to be paged for a service, or for any. Decides nothing.

Rows are never deleted: they say who held back pages, from when until when, and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from engine.db import Tx, given
from engine.schema import maintenance_windows as windows


@dataclass(frozen=True, slots=True)
class Window:
    """Half open. `service_id` None: every service."""

    id: int
    service_id: int | None
    start_at: datetime
    end_at: datetime
    reason: str = ""
    created_by: str = ""


_COLUMNS = (
    windows.c.id,
    windows.c.service_id,
    windows.c.start_at,
    windows.c.end_at,
    windows.c.reason,
    windows.c.created_by,
)


def _window(row: Any) -> Window:
    return Window(*row)


async def insert(tx: Tx, org_id: int, new: Window) -> int:
    row = await tx.execute(
        sa.insert(windows)
        .values(
            org_id=org_id,
            service_id=new.service_id,
            start_at=new.start_at,
            end_at=new.end_at,
            reason=new.reason,
            created_by=new.created_by,
        )
        .returning(windows.c.id)
    )
    return int(row.scalar_one())


_NOW = given("now", windows.c.end_at)

_TO_COME = (
    sa.select(*_COLUMNS)
    .where(
        windows.c.org_id == given("org", windows.c.org_id),
        windows.c.end_at > _NOW,
        windows.c.cancelled_at.is_(None),
    )
    .order_by(windows.c.start_at, windows.c.id)
)
_ON_NOW = _TO_COME.where(windows.c.start_at <= _NOW)


async def to_come(tx: Tx, org_id: int, now: datetime) -> list[Window]:
    """Those that are on or will be, the first to begin first."""
    return [_window(row) for row in await tx.execute(_TO_COME, {"org": org_id, "now": now})]


async def on_now(tx: Tx, org_id: int, now: datetime) -> list[Window]:
    """Those that hold something at this instant."""
    return [_window(row) for row in await tx.execute(_ON_NOW, {"org": org_id, "now": now})]


async def end(tx: Tx, org_id: int, ids: Sequence[int], now: datetime) -> None:
    """End them early; those that have yet to begin never will."""
    for one in sorted(ids):
        await tx.execute(
            sa.update(windows)
            .where(windows.c.org_id == org_id, windows.c.id == one, windows.c.cancelled_at.is_(None))
            .values(cancelled_at=now)
        )
