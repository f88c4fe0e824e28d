"""What is wrong with this install, and what to do about it.

Never changes anything, and never shows a secret. Each check answers within ten seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from bot.doctor import ahead, database, directory, phones, slack, web
from bot.doctor.finding import Finding, Level, problem
from bot.settings import Settings
from engine.clock import Clock
from engine.db import Database
from engine.vault import Vault

__all__ = ["Finding", "Level", "examine"]

log = structlog.get_logger(__name__)

WITHIN_S: Final = 10.0

Check = Callable[[], Awaitable[Sequence[Finding]]]


async def examine(settings: Settings, store: Database | None, clock: Clock, vault: Vault) -> list[Finding]:
    """Every check, whatever the others find; in the order in which one would repair. Without a store: its
    file is not there, and is not made to look into it."""
    checks: list[tuple[str, Check]] = [
        ("database", lambda: database.examine(settings, store, clock)),
        ("web", lambda: web.examine(settings)),
        ("Slack", lambda: slack.examine(settings, clock)),
        ("phones", lambda: phones.examine(settings)),
    ]
    if store is not None:
        checks.append(("directory", lambda: directory.examine(settings, store, clock, vault)))
        checks.append(("schedules", lambda: ahead.examine(store)))
    found = await asyncio.gather(*(_within(about, check) for about, check in checks))
    # Why once: Slack that is away is so for both of its tokens.
    return list(dict.fromkeys([*_ways_out(settings), *(finding for each in found for finding in each)]))


def _ways_out(settings: Settings) -> Sequence[Finding]:
    if settings.slack_bot_token or settings.twilio_from:
        return []
    paged = "people are paged by email only" if settings.smtp_url else "nobody can be paged"
    return [problem("settings", f"neither Slack nor Twilio is set up: {paged}", "Set up one of them.")]


async def _within(about: str, check: Check) -> Sequence[Finding]:
    try:
        async with asyncio.timeout(WITHIN_S):
            return await check()
    except TimeoutError:
        return [problem(about, "no answer within ten seconds", "See whether it can be reached from here.")]
    except Exception:  # a check that fails must not hide the others
        log.debug("doctor.failed", about=about, exc_info=True)
        return [problem(about, "could not be checked", "See why: MIDWATCH_DEBUG=1 midwatch doctor")]
