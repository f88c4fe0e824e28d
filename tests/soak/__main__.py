"""make soak: SECONDS=600 by default. Ends with 1 if anything was lost, stuck or sent twice without reason."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.servers import database_url, new_database, throwaway_postgresql
from tests.soak.checks import Report
from tests.soak.story import ALERTS, SECONDS, Plan, soak


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


async def run(seconds: float, alerts: int, kind: str, directory: Path) -> Report:
    if kind == "sqlite":
        url = f"sqlite:///{directory / 'soak.sqlite3'}"
        return await soak(url, directory, Plan(seconds, 1, alerts), say)
    with throwaway_postgresql() as server:
        url = database_url(server, await new_database(server))
        return await soak(url, directory, Plan(seconds, 2, alerts), say)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--alerts", type=int, help=f"{ALERTS:,} in ten minutes, by default")
    parser.add_argument("--on", choices=("postgresql", "sqlite", "both"), default="both")
    parser.add_argument("--logs", type=Path, help="where the processes' logs are kept")
    arguments = parser.parse_args()
    alerts = arguments.alerts or int(ALERTS * arguments.seconds / SECONDS)
    failed = False
    for kind in ("postgresql", "sqlite") if arguments.on == "both" else (arguments.on,):
        plan = "two processes on PostgreSQL" if kind == "postgresql" else "one process on SQLite"
        say(f"\n{plan}, {alerts:,} alerts in {arguments.seconds:.0f} s")
        with tempfile.TemporaryDirectory() as directory:
            logs = arguments.logs / kind if arguments.logs else Path(directory)
            logs.mkdir(parents=True, exist_ok=True)
            report = asyncio.run(run(arguments.seconds, alerts, kind, logs))
        for line in report.lines():
            say(line)
        failed = failed or bool(report.broken)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
