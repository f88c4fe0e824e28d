"""The bench still runs: every part, a little of each. Its figures say nothing here, and none is asserted."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tests.bench.__main__ import PARTS
from tests.processes import ROOT

WITHIN_S = 400  # a minute on a machine of its own


@pytest.mark.slow
async def test_the_short_form_runs_every_part() -> None:
    """Every part ends, and prints its lines; no figure is compared with a promise."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench", "--short"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(WITHIN_S):
        said = (await process.communicate())[0].decode()
    assert process.returncode == 0, said
    for part in PARTS:
        assert f"\n{part}: " in said
    assert "Traceback" not in said
