"""One `midwatch run` per SQLite file; and a process that a newer release has made too old."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from engine import schema
from engine.migrate import generation
from tests.e2e.fleet import SECRET, Fleet, Process, fleet
from tests.processes import midwatch


@pytest.fixture
async def install(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with fleet(f"sqlite:///{tmp_path / 'midwatch.sqlite3'}", tmp_path) as made:
        yield made


async def typed(install: Fleet, *arguments: str) -> tuple[int, str]:
    """A command beside the processes that run."""
    env = {"MIDWATCH_DATABASE_URL": install.url, "MIDWATCH_SECRET_KEY": SECRET}
    async with midwatch(*arguments, cwd=install.directory, env=env) as command:
        return await command.end(), command.written


async def test_a_second_one_on_the_same_file_is_refused(install: Fleet) -> None:
    """It names the first and says what to do; commands go on beside it; killed with -9, the first leaves
    no lock behind."""
    first = await install.run()
    await install.fire(first, 0, "disk full")
    await install.exchange.until(lambda: install.exchange.messages)
    code, said = await typed(install, "run")
    assert code == 1
    assert f"Another Midwatch (process {first.pid}) runs on" in said
    assert "Traceback" not in said
    code, said = await typed(install, "ack", "1")
    assert code == 0, said
    assert await first.command.end(signal.SIGKILL) == -signal.SIGKILL
    second = await install.run()
    assert await install.ready(second) == 200
    assert await second.command.end(signal.SIGTERM) == 0
    assert "Traceback" not in second.command.written


async def made_newer(install: Fleet, oldest: int) -> None:
    async with install.door.database.writer_engine.begin() as tx:
        await tx.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
        await tx.execute(sa.update(schema.schema_mark).values(revision="9999", oldest=oldest))


@pytest.mark.slow
async def test_an_older_release_goes_on_above_the_mark_and_ends_below(install: Fleet) -> None:
    """A newer release migrates under a running one: above the mark it works, starts and takes commands;
    when the mark rises it claims nothing more, is unready, says why, and does not start again (F-20)."""
    await made_newer(install, generation())
    running = await install.run()
    await install.fire(running, 0, "disk full")
    await install.exchange.until(lambda: install.exchange.messages)
    code, said = await typed(install, "incidents")
    assert code == 0, said
    await made_newer(install, generation() + 1)
    await becomes_unready(install, running)
    assert "Upgrade Midwatch here" in (await install.health(running))["retired"]
    assert running.command.process.returncode is None
    for command in ("incidents", "migrate"):
        code, said = await typed(install, command)
        assert (code, "Upgrade Midwatch here" in said, "Traceback" in said) == (1, True, False)
    assert await running.command.end(signal.SIGTERM) == 0
    assert "Traceback" not in running.command.written
    code, said = await typed(install, "run")
    assert (code, "Upgrade Midwatch here" in said) == (1, True)


async def becomes_unready(install: Fleet, process: Process) -> None:
    async with asyncio.timeout(60):
        while await install.ready(process) == 200:  # noqa: ASYNC110  # another process sets no event of ours
            await asyncio.sleep(0.2)
