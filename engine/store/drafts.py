"""Drafts of forms as rows: what somebody is typing, until it is saved or grows old.

Never checks what a draft says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from engine.db import Tx
from engine.schema import drafts


@dataclass(frozen=True, slots=True)
class Draft:
    """`rev` moves with every change, so that a view of an older one is known."""

    id: int
    rev: int
    body: Mapping[str, Any]


async def insert_draft(
    tx: Tx, org_id: int, person_id: int, form: str, body: Mapping[str, Any], now: datetime
) -> Draft:
    statement = sa.insert(drafts).values(
        org_id=org_id, person_id=person_id, form=form, rev=1, body=dict(body), updated_at=now
    )
    return Draft(int((await tx.execute(statement.returning(drafts.c.id))).scalar_one()), 1, body)


async def read_draft(tx: Tx, org_id: int, person_id: int, draft_id: int) -> Draft | None:
    row = (
        await tx.execute(sa.select(drafts.c.rev, drafts.c.body).where(_own(org_id, person_id, draft_id)))
    ).first()
    return None if row is None else Draft(draft_id, row.rev, row.body)


async def update_draft(
    tx: Tx, org_id: int, person_id: int, draft: Draft, body: Mapping[str, Any], now: datetime
) -> Draft | None:
    """None where it is not there any more as it was read."""
    statement = sa.update(drafts).where(_own(org_id, person_id, draft.id), drafts.c.rev == draft.rev)
    changed = statement.values(rev=drafts.c.rev + 1, body=dict(body), updated_at=now).returning(drafts.c.rev)
    row = (await tx.execute(changed)).first()
    return None if row is None else Draft(draft.id, row.rev, body)


async def delete_draft(tx: Tx, org_id: int, person_id: int, draft_id: int) -> None:
    await tx.execute(sa.delete(drafts).where(_own(org_id, person_id, draft_id)))


async def delete_drafts_before(tx: Tx, org_id: int, before: datetime) -> None:
    await tx.execute(sa.delete(drafts).where(drafts.c.org_id == org_id, drafts.c.updated_at < before))


def _own(org_id: int, person_id: int, draft_id: int) -> sa.ColumnElement[bool]:
    """Nobody reads or changes the draft of somebody else."""
    return sa.and_(drafts.c.org_id == org_id, drafts.c.person_id == person_id, drafts.c.id == draft_id)
