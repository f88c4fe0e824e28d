"""What the machine, the disk and the databases can do at best: no queue can be faster than these."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import asyncpg

SECONDS = 2.0
ROWS = 100_000
BATCH = 500


async def run(url: str, directory: Path, seconds: float = SECONDS, rows: int = ROWS) -> list[tuple[str, str]]:
    """(what, how much), each on one connection and with nothing else going on."""
    connection = await asyncpg.connect(url)
    other = await asyncpg.connect(url)
    await connection.execute("CREATE TABLE limits (id bigint PRIMARY KEY, due_at bigint, lease bigint)")
    await connection.execute("CREATE INDEX ON limits (due_at, id)")
    try:
        return [
            ("fsync of 8 KiB, p50 / p99", _pair(fsyncs(directory, seconds))),
            ("PostgreSQL: commits/s of one row", f"{await _commits(connection, seconds):,.0f}"),
            ("SQLite, synchronous=FULL: commits/s of one row", f"{_sqlite(directory, seconds):,.0f}"),
            (
                f"PostgreSQL: rows/s by INSERT … unnest, {BATCH} each",
                f"{await _insert(connection, rows):,.0f}",
            ),
            (f"PostgreSQL: rows/s by UPDATE … RETURNING, {BATCH} each", await _swept(connection, UPDATE)),
            (f"PostgreSQL: rows/s by DELETE … RETURNING, {BATCH} each", await _swept(connection, DELETE)),
            ("PostgreSQL: round trip of SELECT 1, p50 / p99", _pair(await _selects(connection, seconds))),
            ("PostgreSQL: NOTIFY to LISTEN, p50 / p99", _pair(await _notifies(connection, other, seconds))),
        ]
    finally:
        await connection.close()
        await other.close()


UPDATE = """
    WITH due AS (SELECT id FROM limits WHERE due_at <= $1 AND lease IS NULL ORDER BY due_at, id LIMIT $2
                 FOR UPDATE SKIP LOCKED)
    UPDATE limits SET lease = $1 WHERE id IN (SELECT id FROM due) RETURNING id
"""
DELETE = """
    WITH due AS (SELECT id FROM limits WHERE due_at <= $1 ORDER BY due_at, id LIMIT $2
                 FOR UPDATE SKIP LOCKED)
    DELETE FROM limits WHERE id IN (SELECT id FROM due) RETURNING id
"""


def _pair(durations: Sequence[float]) -> str:
    ordered = sorted(durations)
    p50, p99 = (ordered[int(q * len(ordered))] for q in (0.5, 0.99))
    return f"{p50 * 1000:.2f} / {p99 * 1000:.2f} ms"


def fsyncs(directory: Path, seconds: float) -> list[float]:
    """How long each took, on the disk of `directory`."""
    durations = []
    with (directory / "fsync").open("wb", buffering=0) as file:
        for _ in _for(seconds):
            file.write(b"x" * 8192)
            began = time.perf_counter()
            os.fsync(file.fileno())
            durations.append(time.perf_counter() - began)
    return durations


def _for(seconds: float) -> Iterator[None]:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        yield


async def _commits(connection: asyncpg.Connection, seconds: float) -> float:
    await connection.execute("CREATE TABLE commits (id bigint)")
    count = 0
    for _ in _for(seconds):
        await connection.execute("INSERT INTO commits VALUES ($1)", count)
        count += 1
    return count / seconds


def _sqlite(directory: Path, seconds: float) -> float:
    connection = sqlite3.connect(directory / "limits.sqlite3", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE commits (id INTEGER)")
    count = 0
    for _ in _for(seconds):
        connection.execute("INSERT INTO commits VALUES (?)", (count,))
        count += 1
    connection.close()
    return count / seconds


async def _insert(connection: asyncpg.Connection, rows: int) -> float:
    began = time.perf_counter()
    for start in range(0, rows, BATCH):
        ids = list(range(start, start + BATCH))
        await connection.execute("INSERT INTO limits SELECT id, id FROM unnest($1::bigint[]) AS id", ids)
    return rows / (time.perf_counter() - began)


async def _swept(connection: asyncpg.Connection, statement: str) -> str:
    """Everything that is due, a batch after the other."""
    await connection.execute("VACUUM ANALYZE limits")
    rows, began = 0, time.perf_counter()
    while taken := len(await connection.fetch(statement, 1 << 40, BATCH)):
        rows += taken
    return f"{rows / (time.perf_counter() - began):,.0f}"


async def _timed(once: Callable[[], Awaitable[object]], seconds: float) -> list[float]:
    durations = []
    for _ in _for(seconds):
        began = time.perf_counter()
        await once()
        durations.append(time.perf_counter() - began)
    return durations


async def _selects(connection: asyncpg.Connection, seconds: float) -> list[float]:
    return await _timed(lambda: connection.fetchval("SELECT 1"), seconds)


async def _notifies(connection: asyncpg.Connection, other: asyncpg.Connection, seconds: float) -> list[float]:
    heard = asyncio.Event()
    await other.add_listener("limits", lambda *_: heard.set())

    async def once() -> None:
        heard.clear()
        await connection.execute("NOTIFY limits")
        await heard.wait()

    return await _timed(once, seconds)
