"""make bench: every figure that is promised, in one run, beside what the machine and the peers can do.

Prints one table. Only ratios of one run mean anything; see docs/operations.md. Parts can be named:
`python -m tests.bench timers peers`. `--short` runs a little of each part, to see that all still
work: its figures say nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from tests.bench import deliveries, escalations, ingest, limits, pages, schedules, timers
from tests.bench.peers import measure, report
from tests.bench.peers import run as peers
from tests.servers import database_url, new_database, throwaway_postgresql

PARTS = ("limits", "ingest", "pages", "timers", "escalations", "deliveries", "schedules", "peers")


@dataclass(frozen=True, slots=True)
class Bench:
    """Where the parts run, and how much of each."""

    server: str
    directory: Path
    short: bool

    async def databases(self, name: str) -> tuple[tuple[str, str], ...]:
        """A fresh one of each kind."""
        postgresql = database_url(self.server, await new_database(self.server))
        return ("SQLite", f"sqlite:///{self.directory / name}.sqlite3"), ("PostgreSQL", postgresql)


def quantile(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def line(*cells: str) -> None:
    sys.stdout.write("| " + " | ".join(cells) + " |\n")
    sys.stdout.flush()


def head(*cells: str) -> None:
    line(*cells)
    line(*(["---"] * len(cells)))


def milliseconds(values: Sequence[float]) -> tuple[str, str]:
    return f"{quantile(values, 0.5) * 1000:.1f} ms", f"{quantile(values, 0.99) * 1000:.1f} ms"


def span(seconds: float) -> str:
    """In the unit that fits."""
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds * 1e6:.1f} µs"


async def _limits(bench: Bench) -> None:
    _, (_, postgresql) = await bench.databases("limits")
    head("What the machine can do, one connection", "")
    amount = (0.1, 5_000) if bench.short else (limits.SECONDS, limits.ROWS)
    for what, how_much in await limits.run(postgresql, bench.directory, *amount):
        line(what, how_much)


async def _ingest(bench: Bench) -> None:
    (_, sqlite), (_, postgresql) = await bench.databases("ingest")
    head(f"Ingest, {ingest.CONNECTIONS} connections", "requests/s", "p50", "p99", "of bare")
    amount = (0.5, 0.2) if bench.short else (ingest.SECONDS, ingest.WARM)
    for name, result, share in await ingest.run(postgresql, sqlite, *amount):
        p50, p99 = milliseconds(result.durations)
        line(name, f"{result.rate:,.0f}", p50, p99, f"{share:.2f}")


async def _pages(bench: Bench) -> None:
    head("POST to card and DM", "p50", "p99")
    for name, url in await bench.databases("pages"):
        incidents = 2 if bench.short else pages.INCIDENTS
        for when, latencies in await pages.run(bench.directory, url, incidents):
            line(f"{name}, {when}", *milliseconds(latencies))


async def _timers(bench: Bench) -> None:
    if bench.short:
        timers.PENDING, timers.ARMED, timers.RATES = 5_000, 2_000, (100, 200)
        timers.SECONDS, timers.NEAR, timers.IDLE_S = 1, 20, 2.0
    rates = [f"{rate:,} due/s: p50 / p99" for rate in timers.RATES]
    head(
        f"Timers, {timers.PENDING:,} pending",
        *(*rates, "armed elsewhere for now: p50 / p99"),
        *("armed/s in batches", "statements/s when idle", "memory for all that"),
    )
    for name, url in await bench.databases("timers"):
        result = await timers.run(url)
        late = [" / ".join(milliseconds(result.lateness[rate])) for rate in timers.RATES]
        near = " / ".join(milliseconds(result.near)) if result.near else "–"
        line(name, *late, near, f"{result.arming:,.0f}", f"{result.idle:.1f}", f"{result.grown_mb:.0f} MB")


async def _escalations(bench: Bench) -> None:
    if bench.short:
        escalations.AT_ONCE, escalations.RATE, escalations.SECONDS = 200, 100, 1
    head(f"Escalations, {escalations.RATE}/s due", "p50", "p99", "drained per second")
    for name, url in await bench.databases("escalations"):
        result = await escalations.run(url)
        line(name, *milliseconds(result.lateness), f"{result.rate:,.0f}")


async def _deliveries(bench: Bench) -> None:
    if bench.short:
        deliveries.SECONDS, deliveries.QUEUED = 1, 300
    queued, paced = f"{deliveries.QUEUED:,} queued", f"{deliveries.PACE:.0f}/s"
    head(
        f"Deliveries, {deliveries.RATE}/s due: until the provider has the request",
        *("it takes 300 ms and fails 5 %: p50 / p99", "the first provider dead: p50 / p99"),
        *(f"{queued}: of the pace of {paced}", "a page of high urgency that passes them"),
    )
    for name, url in await bench.databases("deliveries"):
        result = await deliveries.run(url)
        late = [" / ".join(milliseconds(values)) for values in (result.slow, result.dead)]
        line(name, *late, f"{result.drained:.3f}", span(result.urgent))


async def _schedules(bench: Bench) -> None:
    head(
        f"Who is on call: three layers, {schedules.OVERRIDES} overrides",
        *("Midwatch", "icalendar + recurring-ical-events", "times faster"),
    )
    for row in schedules.run(short=bench.short):
        theirs = "–" if row.theirs is None else span(row.theirs)
        line(row.what, span(row.ours), theirs, f"{row.theirs / row.ours:,.0f}" if row.theirs else "–")


async def _peers(bench: Bench) -> None:
    # Without the extra `peers`, which only `make bench` installs, the short form runs Midwatch alone.
    size, names = (measure.SHORT, ("midwatch",)) if bench.short else (measure.Size(), peers.NAMES)
    columns = await peers.run(bench.server, size, names)
    for row in report.rows(columns):
        line(*row)
    for note in report.notes(columns):
        sys.stdout.write(f"\n{note}\n")


def machine() -> str:
    """What the figures were measured on."""
    model = next(
        (
            row.partition(":")[2].strip()
            for row in Path("/proc/cpuinfo").read_text().splitlines()
            if row.startswith("model name")
        ),
        platform.machine(),
    )
    load = os.getloadavg()[0]
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release().partition('-')[0]}, "
        f"Python {platform.python_version()}, load {load:.1f} at the start"
    )


WORK: dict[str, Callable[[Bench], Awaitable[None]]] = {
    "limits": _limits,
    "ingest": _ingest,
    "pages": _pages,
    "timers": _timers,
    "escalations": _escalations,
    "deliveries": _deliveries,
    "schedules": _schedules,
    "peers": _peers,
}


async def main(parts: Sequence[str], *, short: bool) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    sys.stdout.write(f"{machine()}\n\n")
    # Why commit timestamps: a timer's lateness is measured by PostgreSQL, the same for all peers.
    settings = ("track_commit_timestamp = on", "max_connections = 200")
    with throwaway_postgresql(*settings) as server, tempfile.TemporaryDirectory() as directory:
        for part in parts:
            began = time.perf_counter()
            await WORK[part](Bench(server, Path(directory), short))
            sys.stdout.write(f"\n{part}: {time.perf_counter() - began:.0f} s\n\n")


if __name__ == "__main__":
    if unknown := set(sys.argv[1:]) - {*PARTS, "--short"}:
        sys.exit(f"no such part: {' '.join(sorted(unknown))}; there are {' '.join(PARTS)}, and --short")
    wanted = [part for part in sys.argv[1:] if part in PARTS]
    asyncio.run(main(wanted or PARTS, short="--short" in sys.argv))
