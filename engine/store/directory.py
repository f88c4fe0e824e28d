"""The directory read whole, and its revision, which moves with every change of it.

Never decides; the rows of each noun are in its own module beside this one.
"""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from engine.db import Tx, given, upsert
from engine.directory import Directory
from engine.schema import counters
from engine.store.keys import KeyRow, TokenRow, service_by_key_hash, token_by_hash
from engine.store.people import person_by_slack, persons_by_address, read_people
from engine.store.policies import policy_by_version, policy_version, read_policies
from engine.store.schedules import read_schedules
from engine.store.services import read_fallback, read_services
from engine.vault import Vault

__all__ = [
    "KeyRow",
    "TokenRow",
    "bump",
    "lock",
    "person_by_slack",
    "persons_by_address",
    "policy_by_version",
    "policy_version",
    "read",
    "revision",
    "service_by_key_hash",
    "token_by_hash",
]

COUNTER = "directory"


async def read(tx: Tx, org_id: int, now: datetime, vault: Vault) -> Directory:
    """What is true at `now`.

    The revision is read first: what changes while we read belongs to a later one, so that whoever
    keeps this by its revision reads again.
    """
    return Directory(
        org_id=org_id,
        rev=await revision(tx, org_id),
        people=await read_people(tx, org_id, vault),
        services=await read_services(tx, org_id),
        policies=await read_policies(tx, org_id),
        schedules=await read_schedules(tx, org_id, now),
        fallback=await read_fallback(tx, org_id),
    )


_REVISION = sa.select(counters.c.value).where(
    counters.c.org_id == given("org", counters.c.org_id), counters.c.name == COUNTER
)


async def revision(tx: Tx, org_id: int) -> int:
    return int(await tx.scalar(_REVISION, {"org": org_id}) or 0)


async def lock(tx: Tx, org_id: int) -> None:
    """One at a time: for whoever reads the directory and then changes it. First in its transaction.

    Such a transaction touches no incident, so the lock order of those is not its own.
    """
    insert = upsert(tx, counters).values(org_id=org_id, name=COUNTER, value=0)
    await tx.execute(
        insert.on_conflict_do_update(index_elements=["org_id", "name"], set_={"value": counters.c.value})
    )


async def bump(tx: Tx, org_id: int) -> None:
    """Say that the directory changed; last of all in its transaction, because counters are locked last."""
    insert = upsert(tx, counters).values(org_id=org_id, name=COUNTER, value=1)
    await tx.execute(
        insert.on_conflict_do_update(
            index_elements=["org_id", "name"], set_={"value": counters.c.value + insert.excluded.value}
        )
    )
