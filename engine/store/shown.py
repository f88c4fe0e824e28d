"""What a user group or a topic was last set to for a schedule, and what is wrong with it, as rows.

Decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import sqlalchemy as sa

from engine.db import Tx, upsert
from engine.schema import schedules, shown


class What(StrEnum):
    USER_GROUP = "user_group"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True)
class Shown:
    """`trouble` is a sentence for people; None: all is well."""

    value: str | None = None
    trouble: str | None = None


async def read_shown(tx: Tx, org_id: int, schedule_id: int, what: What) -> Shown:
    row = (
        await tx.execute(
            sa.select(shown.c.value, shown.c.trouble).where(
                shown.c.org_id == org_id, shown.c.schedule_id == schedule_id, shown.c.what == what.value
            )
        )
    ).first()
    return Shown() if row is None else Shown(*row)


async def save_shown(tx: Tx, org_id: int, schedule_id: int, what: What, new: Shown, now: datetime) -> None:
    insert = upsert(tx, shown).values(
        org_id=org_id,
        schedule_id=schedule_id,
        what=what.value,
        value=new.value,
        trouble=new.trouble,
        at=now,
    )
    excluded = insert.excluded
    changed = {"value": excluded.value, "trouble": excluded.trouble, "at": excluded.at}
    await tx.execute(
        insert.on_conflict_do_update(index_elements=["org_id", "schedule_id", "what"], set_=changed)
    )


async def troubles(tx: Tx, org_id: int) -> Sequence[tuple[str, str]]:
    """The name of a schedule and what is wrong with how Slack shows it."""
    rows = await tx.execute(
        sa.select(schedules.c.name, shown.c.trouble)
        .join(schedules, schedules.c.id == shown.c.schedule_id)
        .where(shown.c.org_id == org_id, shown.c.trouble.is_not(None), schedules.c.deleted_at.is_(None))
        .order_by(schedules.c.name, shown.c.what)
    )
    return [(row.name, row.trouble) for row in rows]
