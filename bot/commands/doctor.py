"""doctor: is this install sound, and what to do if not.

Never changes anything. Exits with 1 when there is a problem.
"""

from __future__ import annotations

import logging
import os
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from bot.commands.say import say, say_json
from bot.doctor import Finding, Level, examine
from bot.secret_key import missing_file, to_look_only
from bot.settings import load
from engine.clock import SystemClock
from engine.db import Database
from engine.vault import Vault


async def doctor(*, as_json: Annotated[bool, Parameter("--json", negative=())] = False) -> int:
    """Check the database, Slack, the phones and who would be paged, and say what to do."""
    settings = to_look_only(load(os.environ))
    assert settings.secret_key is not None  # noqa: S101  # to_look_only saw to it
    if "MIDWATCH_DEBUG" not in os.environ:
        # Why: each finding is said once, by its line; the log of what met it is for who has no report.
        logging.getLogger().setLevel(logging.CRITICAL)
    database = None if missing_file(settings) else Database(settings.database_url)
    try:
        vault = Vault(settings.secret_key.get_secret_value())
        found = await examine(settings, database, SystemClock(), vault)
    finally:
        if database is not None:
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
