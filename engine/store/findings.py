"""What the look ahead found, as rows: there as long as it is found, and told once meanwhile.

Decides nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from engine.coverage import Finding
from engine.db import Tx
from engine.schema import findings, schedules


@dataclass(frozen=True, slots=True)
class Found:
    """A finding of a schedule, by its name."""

    schedule_id: int
    schedule: str
    key: str
    text: str
    found_at: datetime


async def read_findings(tx: Tx, org_id: int) -> list[Found]:
    """Of all schedules that there are, the longest known first."""
    rows = await tx.execute(
        sa.select(
            findings.c.schedule_id,
            schedules.c.name,
            findings.c.key,
            findings.c.text,
            findings.c.found_at,
        )
        .join(schedules, schedules.c.id == findings.c.schedule_id)
        .where(findings.c.org_id == org_id, schedules.c.deleted_at.is_(None))
        .order_by(findings.c.id)
    )
    return [Found(*row) for row in rows]


async def known_keys(tx: Tx, org_id: int, schedule_id: int) -> list[str]:
    mine = sa.select(findings.c.key).where(findings.c.org_id == org_id, findings.c.schedule_id == schedule_id)
    return list(await tx.scalars(mine.order_by(findings.c.id)))


async def forget(tx: Tx, org_id: int, schedule_id: int, keys: Collection[str]) -> None:
    if keys:
        await tx.execute(
            sa.delete(findings).where(
                findings.c.org_id == org_id,
                findings.c.schedule_id == schedule_id,
                findings.c.key.in_(sorted(keys)),
            )
        )


async def add(tx: Tx, org_id: int, schedule_id: int, new: Sequence[Finding], now: datetime) -> None:
    """Findings that are told in this same transaction."""
    for finding in new:
        await tx.execute(
            sa.insert(findings).values(
                org_id=org_id,
                schedule_id=schedule_id,
                key=finding.key,
                text=finding.text,
                found_at=now,
                told_at=now,
            )
        )


async def reword(tx: Tx, org_id: int, schedule_id: int, still: Sequence[Finding]) -> None:
    """What is known already and may be said otherwise by now: other days, another name."""
    for finding in still:
        await tx.execute(
            sa.update(findings)
            .where(
                findings.c.org_id == org_id,
                findings.c.schedule_id == schedule_id,
                findings.c.key == finding.key,
                findings.c.text != finding.text,
            )
            .values(text=finding.text)
        )
