"""The audit's queries among many closed incidents and pending timers: each starts from a small set."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import make_url

from engine import invariants, schema
from engine.db import Database, Tx
from engine.models import ORG
from tests.fakes import START

MANY = 20_000
BIG = ("incidents", "timers", "deliveries", "alerts")
READ_ALL = (*(f"SCAN {table}" for table in BIG), "SEARCH incidents USING INDEX ix_incidents_newest")

FILL = (
    "INSERT INTO services (id, org_id, name, flap_window, urgency) VALUES (1, 1, 'checkout', 0, '{}')",
    """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :many)
    INSERT INTO incidents
      (id, org_id, service_id, group_key, status, urgency, title, raw_severity, epoch, round, pass, level,
       reached, links, open_alerts, alert_count, truncated, opened_by, opened_at, last_joined_at)
    SELECT i, 1, 1, 'k' || i, CASE WHEN i % 1000 = 0 THEN 'triggered' ELSE 'resolved' END, 'high', 't', '',
       1, 1, 0, 0, false, 0, CASE WHEN i % 1000 = 0 THEN 1 ELSE 0 END, 1, 0, '',
       CAST(:at AS BIGINT), CAST(:at AS BIGINT)
    FROM n
    """,
    """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :many)
    INSERT INTO alerts
      (id, org_id, service_id, incident_id, dedup_key, status, raw_severity, urgency, summary, labels,
       links, event_count, flap_count, first_seen_at, last_seen_at, resolved_at)
    SELECT i, 1, 1, i, 'k' || i, CASE WHEN i % 1000 = 0 THEN 'firing' ELSE 'resolved' END, '', 'high', 's',
       '{}', '{}', 1, 0, CAST(:at AS BIGINT), CAST(:at AS BIGINT),
       CASE WHEN i % 1000 = 0 THEN NULL ELSE CAST(:at AS BIGINT) END
    FROM n
    """,
    """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :many)
    INSERT INTO timers (org_id, kind, lane, subject_id, due_at, rank, epoch, rev, attempt)
    SELECT 1, 'escalate', 'fate', i, CAST(:at AS BIGINT) + 3600000000 + i, 0, 1, 1, 0 FROM n
    """,
    """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :many)
    INSERT INTO deliveries
      (id, org_id, incident_id, kind, method, round, pass, level, step, idem_key, status, reason, attempts,
       provider, provider_ref, body, due_at, created_at)
    SELECT i, 1, i, 'page', 'sms', 1, 0, 0, 0, 'd' || i,
       CASE WHEN i % 1000 = 0 THEN 'queued' ELSE 'sent' END, '', 1, '', '', '{}',
       CAST(:at AS BIGINT), CAST(:at AS BIGINT)
    FROM n
    """,
    """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :many)
    INSERT INTO timers (org_id, kind, lane, subject_id, due_at, rank, epoch, rev, attempt)
    SELECT 1, 'deliver', 'deliver', i, CAST(:at AS BIGINT) + 3600000000, 0, 1, 1, 0 FROM n WHERE i % 1000 = 0
    """,
)


async def fill(database: Database, many: int) -> None:
    at = (START - schema.EPOCH) // schema.MICROSECOND

    async def unit(tx: Tx) -> None:
        for statement in FILL:
            text = sa.text(statement)
            names = text.compile().params
            await tx.execute(text, {name: {"many": many, "at": at}[name] for name in names})

    await database.write(unit)
    async with database.writer_engine.connect() as connection:
        await connection.execute(sa.text("ANALYZE"))
        await connection.commit()


@pytest.fixture
async def filled(database: Database) -> Database:
    await fill(database, MANY)
    return database


async def test_no_query_reads_a_whole_table(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed incidents, sent deliveries and pending timers are not read; what is broken is found."""
    # Why: for a thousand of twenty thousand rows reading them all is the better plan; for fifty it is not.
    monkeypatch.setattr(invariants, "SOONEST", 50)
    scanned = await (_scanned_sqlite(filled) if filled.is_sqlite else _scanned_postgresql(filled))
    assert scanned == []
    gone = sa.delete(schema.timers).where(
        schema.timers.c.kind == "escalate", schema.timers.c.subject_id == 7_000
    )
    await filled.write(lambda tx: tx.execute(gone))
    async with filled.snapshot() as tx:
        found = await invariants.find(tx, ORG, START + timedelta(minutes=1))
    assert [(one.invariant.value, one.subject) for one in found] == [("incident_without_timer", 7_000)]


async def _scanned_postgresql(database: Database) -> list[str]:
    """The tables that were read from end to end in the transaction of the audit."""
    async with database.snapshot() as tx:
        assert await invariants.find(tx, ORG, START + timedelta(minutes=1)) == []
        rows = await tx.execute(sa.text("SELECT relname FROM pg_stat_xact_user_tables WHERE seq_scan > 0"))
        return sorted(set(rows.scalars()) & set(BIG))


async def _scanned_sqlite(database: Database) -> list[str]:
    """The steps of its plans that read a table without an index."""
    asked: list[tuple[str, Any]] = []
    async with database.snapshot() as tx:
        engine = tx.sync_engine
        event.listen(engine, "before_cursor_execute", lambda *a: asked.append((a[2], a[3])))
        assert await invariants.find(tx, ORG, START + timedelta(minutes=1)) == []
    plain = sqlite3.connect(str(make_url(database.url).database))
    steps = [
        row[3]
        for statement, parameters in asked
        for row in plain.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
    ]
    plain.close()
    assert any("uq_incidents_open" in step for step in steps)
    return [step for step in steps if step.startswith(READ_ALL)]
