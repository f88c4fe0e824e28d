"""Whatever sources, people, providers and machine rooms do, in whatever order: the promises hold."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.conftest import database_url, run_on_server
from tests.model.machine import Machine

STEPS = int(os.environ.get("MIDWATCH_MODEL_STEPS", "12"))
RUNS = int(os.environ.get("MIDWATCH_MODEL_RUNS", "0"))  # 0: short, and the same each time


def how_long(usual: int) -> settings:
    return settings(
        max_examples=RUNS or usual,
        stateful_step_count=STEPS,
        derandomize=not RUNS,
        phases=tuple(Phase) if RUNS else (Phase.generate,),  # few steps are short enough as they are
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),  # a whole pager is slow, and that is no news
    )


def test_the_promises_hold_on_sqlite(sqlite_template: Path, tmp_path: Path) -> None:
    """No order of events leaves an incident without a timer, pages after an answer, or sends twice."""

    async def make_url() -> str:
        path = tmp_path / f"{uuid.uuid4().hex}.sqlite3"
        shutil.copy(sqlite_template, path)
        return f"sqlite:///{path}"

    run_state_machine_as_test(lambda: Machine(make_url), settings=how_long(5))


def test_the_promises_hold_on_postgresql(postgresql_server: str, postgresql_template: str) -> None:
    """The same, in one run."""
    made: list[str] = []

    async def make_url() -> str:
        name = f"model_{uuid.uuid4().hex[:12]}"
        await run_on_server(postgresql_server, f'CREATE DATABASE "{name}" TEMPLATE "{postgresql_template}"')
        made.append(name)
        return database_url(postgresql_server, name)

    run_state_machine_as_test(lambda: Machine(make_url), settings=how_long(1))
    assert made
