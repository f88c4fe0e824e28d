"""What must be so before Midwatch may work on a database: versions, durability, one host, one time.

Never changes anything. `midwatch run` refuses to start by it, and the doctor reports by it.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Final

import sqlalchemy as sa
import structlog
from sqlalchemy.engine import make_url

from engine.clock import Clock, MovableClock, SystemClock
from engine.db import Database, Tx
from engine.errors import Unsound
from engine.models import ORG
from engine.mounts import network_share
from engine.schema import counters
from engine.store import hosts

log = structlog.get_logger(__name__)

OLDEST_SQLITE: Final = (3, 35)  # RETURNING
OLDEST_POSTGRESQL: Final = 130000
SKEW_NOTED, SKEW_BAD = timedelta(seconds=5), timedelta(seconds=30)
PRAGMAS: Final = {"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"}
SEEN_EVERY: Final = timedelta(seconds=5)  # how often a host says that it works on the file
GONE_FOR: Final = timedelta(hours=1)  # then nobody waits to see whether it says so again
ASK_AGAIN: Final = timedelta(seconds=1)
MOST_AHEAD: Final = timedelta(hours=2)  # a clock that was further ahead than this was simply wrong
MOUNTS: Final = Path("/proc/self/mountinfo")
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why this database must not be worked on, and what to do about it."""

    text: str
    advice: str


async def start_checks(database: Database, clock: Clock) -> None:
    """Raises Unsound, in one sentence with what to do, when Midwatch must not start on this database."""
    _refuse(await faults(database))
    if database.is_sqlite:
        known = await _seen(database)
        _refuse(await _other_host(database, clock, known))
        _go_on(clock, max(known.values(), default=None))


def _refuse(found: Sequence[Fault]) -> None:
    if found:
        raise Unsound("\n".join(f"The database: {fault.text}. {fault.advice}" for fault in found))


async def faults(database: Database) -> Sequence[Fault]:
    """What the database itself is wrong with."""
    return await (_sqlite(database) if database.is_sqlite else _postgresql(database))


async def skew(database: Database, clock: Clock) -> timedelta:
    """How far our clock is ahead of the database's; none where they are one clock, or the demo's."""
    if database.is_sqlite or isinstance(clock, MovableClock):
        return timedelta()
    async with database.snapshot() as tx:
        await tx.scalar(sa.select(1))  # the way there must not count
        before = clock.now()
        theirs: datetime = (await tx.execute(sa.select(sa.func.clock_timestamp()))).scalar_one()
        after = clock.now()
    return before + (after - before) / 2 - theirs


def this_host() -> str:
    """The same for every container of a host, another one for every other host and boot."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return socket.gethostname()


async def _sqlite(database: Database) -> list[Fault]:
    path, share = _place(database)
    if share is not None:
        return [
            Fault(
                f"{path} is on a network share ({share}), which keeps no promise that SQLite needs",
                "Put the file on a local disk, or use PostgreSQL.",
            )
        ]
    # Why by `write`: what is asked of the connection that commits must be so.
    version, found = await database.write(_asked)
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_SQLITE:
        return [Fault(f"SQLite {version} is too old", "Use a Python with SQLite 3.35 or newer.")]
    return _kept(found)


async def _asked(tx: Tx) -> tuple[str, dict[str, str]]:
    """SQLite's version, and how it is set."""
    found = {name: str(await tx.scalar(sa.text(f"PRAGMA {name}"))).lower() for name in PRAGMAS}
    return str(await tx.scalar(sa.text("SELECT sqlite_version()"))), found


def _place(database: Database) -> tuple[Path, str | None]:
    """Where the file is, and on what share, if on one."""
    path = Path(str(make_url(database.url).database)).resolve()
    return path, network_share(PurePosixPath(path), _mounts())


def _kept(found: Mapping[str, str]) -> list[Fault]:
    # Why: 2xx promises durability; without these a crash or a power cut takes back what was accepted.
    wrong = [name for name, value in PRAGMAS.items() if found[name] != value]
    if not wrong:
        return []
    text = f"{', '.join(wrong)} is not as it must be; a crash could lose what was accepted"
    return [Fault(text, "Put the file on a local disk: network shares cannot do it.")]


def _mounts() -> str:
    try:
        return MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:  # no Linux: then the pragmas must tell
        return ""


async def _postgresql(database: Database) -> list[Fault]:
    async with database.snapshot() as tx:
        version = int(await tx.scalar(sa.text("SHOW server_version_num")) or 0)
    if version < OLDEST_POSTGRESQL:
        return [Fault("PostgreSQL is older than 13", "Upgrade PostgreSQL.")]
    return []


async def _other_host(database: Database, clock: Clock, known: Mapping[str, datetime]) -> list[Fault]:
    """Does another host say that it works on this file while we look?

    Why not by time: clocks of hosts differ, and a host that was started again is another one. One
    that is gone costs a wait, of a few seconds, once.
    """
    others = {host: at for host, at in known.items() if host != this_host()}
    until = clock.now() + (2 * SEEN_EVERY if _lately(others, clock.now()) else timedelta())
    while clock.now() < until:
        await clock.sleep_until(clock.now() + ASK_AGAIN)
        seen = await _seen(database)
        if any(seen.get(host, at) != at for host, at in others.items()):
            text = "another host works on this SQLite file"
            return [Fault(text, "Stop Midwatch there first, or use PostgreSQL for several hosts.")]
    if others:
        await database.write(lambda tx: hosts.forget(tx, ORG, others))
    return []


def _lately(others: Mapping[str, datetime], now: datetime) -> bool:
    return any(now - at < GONE_FOR for at in others.values())


async def _seen(database: Database) -> dict[str, datetime]:
    async with database.snapshot() as tx:
        there = await tx.run_sync(lambda connection: sa.inspect(connection).has_table(counters.name))
        return await hosts.seen(tx, ORG) if there else {}


def _go_on(clock: Clock, last: datetime | None) -> None:
    """Timers were armed by the time that was seen last: set back while we were down, the clock goes on
    from there, or what is due now would wait until the wall clock has caught up."""
    if last is None or not isinstance(clock, SystemClock) or isinstance(clock, MovableClock):
        return
    ahead = last - clock.now()
    if ahead > MOST_AHEAD:
        log.error("clock.was_wrong", ahead_s=round(ahead.total_seconds()))
    elif ahead > timedelta():
        log.warning("clock.goes_on", ahead_s=round(ahead.total_seconds()))
        clock.go_on_from(last)
