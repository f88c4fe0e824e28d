"""Whatever sources, people, providers and machine rooms do, in whatever order: the promises hold."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from engine.db import Tx
from engine.models import Method
from engine.store import leases
from tests.model.machine import Machine
from tests.servers import database_url, run_on_server

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


@pytest.fixture
def on_sqlite(sqlite_template: Path, tmp_path: Path) -> Callable[[], Machine]:
    async def make_url() -> str:
        path = tmp_path / f"{uuid.uuid4().hex}.sqlite3"
        shutil.copy(sqlite_template, path)
        return f"sqlite:///{path}"

    return lambda: Machine(make_url)


def test_the_promises_hold_on_sqlite(on_sqlite: Callable[[], Machine]) -> None:
    """No order of events leaves an incident without a timer, pages after an answer, or sends twice."""
    run_state_machine_as_test(on_sqlite, settings=how_long(5))


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


@pytest.mark.parametrize("fenced", [True, False], ids=["as it is", "without the fence"])
def test_a_record_without_its_fence_is_caught(
    on_sqlite: Callable[[], Machine], monkeypatch: pytest.MonkeyPatch, *, fenced: bool
) -> None:
    """A process stalls in a send, the other takes the page over, and then the first wakes up: the only
    step of the machine in which a record that asks for no lease breaks a promise, played by itself."""
    end = leases.end

    async def believe_all(tx: Tx, ends: Sequence[leases.End]) -> list[bool]:
        return [True for _ in await end(tx, ends)]

    monkeypatch.setattr(leases, "end", end if fenced else believe_all)
    machine = on_sqlite()
    try:
        machine.a_send_outlives_its_lease("disk is full", Method.SLACK)
        assert machine.ends, "the first attempt was closed as unknown"
        if fenced:
            machine.an_attempt_ends_once()
        else:
            with pytest.raises(AssertionError, match="ended as"):
                machine.an_attempt_ends_once()
    finally:
        machine.teardown()
