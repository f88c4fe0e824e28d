"""doctor: is this install sound, and what to do if not.

Never changes anything. Exits with 1 when there is a problem.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from bot.commands.say import note, say, say_json
from bot.doctor import Finding, Level, examine
from bot.secret_key import with_secret_key
from bot.settings import load
from engine.clock import SystemClock
from engine.db import Database
from engine.vault import Vault


async def doctor(*, as_json: Annotated[bool, Parameter("--json", negative=())] = False) -> int:
    """Check the database, Slack, the phones and who would be paged, and say what to do."""
    settings = with_secret_key(load(os.environ), note)
    assert settings.secret_key is not None  # noqa: S101  # with_secret_key saw to it
    database = Database(settings.database_url)
    try:
        vault = Vault(settings.secret_key.get_secret_value())
        found = await examine(settings, database, SystemClock(), vault)
    finally:
        await database.close()
    if as_json:
        say_json([asdict(finding) for finding in found])
    else:
        say(*(_line(finding) for finding in found), "", _summary(found))
    return 1 if any(finding.level is Level.PROBLEM for finding in found) else 0


def _line(finding: Finding) -> str:
    advice = f"\n         -> {finding.advice}" if finding.advice else ""
    return f"{finding.level:<8} {finding.about}: {finding.text}{advice}"


def _summary(found: list[Finding]) -> str:
    problems = sum(finding.level is Level.PROBLEM for finding in found)
    warnings = sum(finding.level is Level.WARNING for finding in found)
    if not problems:
        return "No problems." if not warnings else f"No problems, {warnings} worth knowing."
    return f"{problems} to repair, {warnings} worth knowing."
