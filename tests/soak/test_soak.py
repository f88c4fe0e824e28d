"""The soak in half a minute: processes killed at random, providers that fail, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers import database_url, new_database, run_on_server
from tests.soak.story import Plan, soak

SECONDS = 30.0
ALERTS = 100


@pytest.mark.slow
async def test_two_processes_on_postgresql(postgresql_server: str, tmp_path: Path) -> None:
    """Alerts arrive, one process after the other is killed, a tenth of what is sent fails: each alert is
    on one incident, each first page arrived or was answered before, none twice without a reason."""
    name = await new_database(postgresql_server)
    url = database_url(postgresql_server, name)
    report = await soak(url, tmp_path, Plan(SECONDS, 2, ALERTS), lambda _: None)
    await run_on_server(postgresql_server, f'DROP DATABASE "{name}" WITH (FORCE)')
    assert not report.broken, "\n".join(report.lines())
    assert report.lost == 0
    assert report.kills > 0


@pytest.mark.slow
async def test_one_process_on_sqlite(tmp_path: Path) -> None:
    """The same on one file, with nobody there between a kill and the start."""
    url = f"sqlite:///{tmp_path / 'soak.sqlite3'}"
    report = await soak(url, tmp_path, Plan(SECONDS, 1, ALERTS), lambda _: None)
    assert not report.broken, "\n".join(report.lines())
    assert report.lost == 0
    assert report.kills > 0
