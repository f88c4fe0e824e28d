"""make bench: every figure that is promised, in one run, beside what the machine can do.

Prints one table. Only ratios of one run mean anything; see docs/operations.md.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench import ingest, pages, timers
from tests.servers import database_url, new_database, throwaway_postgresql

PARTS = ("ingest", "pages", "timers")


def quantile(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def line(*cells: str) -> None:
    sys.stdout.write("| " + " | ".join(cells) + " |\n")
    sys.stdout.flush()


def milliseconds(values: Sequence[float]) -> tuple[str, str]:
    return f"{quantile(values, 0.5) * 1000:.1f} ms", f"{quantile(values, 0.99) * 1000:.1f} ms"


async def _ingest(postgresql: str, directory: Path) -> None:
    url = f"sqlite:///{directory / 'ingest.sqlite3'}"
    line("Ingest, 64 connections", "requests/s", "p50", "p99", "of bare")
    line("---", "---", "---", "---", "---")
    for name, result, share in await ingest.run(postgresql, url):
        p50, p99 = milliseconds(result.durations)
        line(name, f"{result.rate:,.0f}", p50, p99, f"{share:.2f}")


async def _pages(postgresql: str, directory: Path) -> None:
    line("POST to card and DM", "p50", "p99")
    line("---", "---", "---")
    for name, url in (("SQLite", f"sqlite:///{directory / 'pages.sqlite3'}"), ("PostgreSQL", postgresql)):
        for when, latencies in await pages.run(directory, url):
            line(f"{name}, {when}", *milliseconds(latencies))


async def _timers(postgresql: str, directory: Path) -> None:
    line(f"Timer lateness, {timers.RATE}/s due, {timers.PENDING:,} pending", "p50", "p99")
    line("---", "---", "---")
    for name, url in (("SQLite", f"sqlite:///{directory / 'timers.sqlite3'}"), ("PostgreSQL", postgresql)):
        line(name, *milliseconds(await timers.run(url)))


async def main(parts: Sequence[str]) -> None:
    work = {"ingest": _ingest, "pages": _pages, "timers": _timers}
    sys.stdout.write(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n\n")
    with throwaway_postgresql() as server, tempfile.TemporaryDirectory() as directory:
        for part in parts:
            url = database_url(server, await new_database(server))
            await work[part](url, Path(directory))
            sys.stdout.write("\n")


if __name__ == "__main__":
    wanted = [part for part in sys.argv[1:] if part in PARTS]
    asyncio.run(main(wanted or PARTS))
