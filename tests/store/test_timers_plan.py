"""Looking ahead costs the same however many timers are pending: the index leads to what is near."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from engine.bulk import insert_many
from engine.db import Database
from engine.models import ORG, LaneName, TimerKind
from engine.schema import timers as table
from engine.store.due import beginnings, near
from tests.fakes import START

PENDING = 5_000


async def plan(database: Database) -> str:
    """How the database would read the near future of all lanes."""
    asked: list[tuple[str, Any]] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        asked.append((statement, parameters))

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        async with database.snapshot() as tx:
            await near(tx, beginnings(), START, START + timedelta(seconds=3), 100)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    ((statement, parameters),) = (one for one in asked if "UNION" in one[0])
    explain = "EXPLAIN QUERY PLAN " if database.is_sqlite else "EXPLAIN "
    async with database.snapshot() as tx:
        rows = await tx.exec_driver_sql(explain + statement, parameters)
        return "\n".join(str(row[-1]) for row in rows)


async def test_the_near_future_is_read_by_the_index(database: Database) -> None:
    """One probe for each lane and rank, and no pending timer is looked at."""
    pending = [
        {"subject_id": n, "due_at": START + timedelta(hours=1, seconds=n), "epoch": 1, "rank": n % 3}
        for n in range(PENDING)
    ]
    same = {
        "org_id": ORG,
        "kind": TimerKind.DELIVER.value,
        "lane": LaneName.DELIVER.value,
        "rev": 1,
        "attempt": 0,
    }
    await database.write(lambda tx: insert_many(tx, table, pending, same=same))
    if not database.is_sqlite:
        async with database.writer_engine.begin() as tx:
            await tx.execute(sa.text("ANALYZE timers"))
    found = await plan(database)
    assert found.count("ix_timers_due") == len(beginnings())
    assert "Seq Scan" not in found
    assert "SCAN timers" not in found
