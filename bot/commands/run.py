"""run and migrate: the process that pages, and the tables it needs.

Never waits for Slack or a provider to be up: only the database must be.
"""

from __future__ import annotations

import os
from typing import Annotated

from cyclopts import Parameter

from bot.app import Role, build
from bot.commands.say import note, say
from bot.commands.stopping import stop_signal
from bot.logs import set_up_logs
from bot.secret_key import missing_file, with_secret_key
from bot.settings import Settings, load
from bot.sole import sole_process
from engine.checks import start_checks
from engine.clock import SystemClock
from engine.db import Database
from engine.errors import MidwatchError
from engine.migrate import look, upgrade


async def run(*, only: Role | None = None) -> None:
    """Run Midwatch until Ctrl-C or SIGTERM, by the settings of the environment and midwatch.toml.

    Parameters
    ----------
    only
        One part of the work, where several processes share it on PostgreSQL.
    """
    settings = with_secret_key(load(os.environ), note)
    set_up_logs()
    app = build(settings, SystemClock(), only=only)
    with stop_signal() as stop, sole_process(app.database):
        try:
            await start_checks(app.database, app.clock)
            await upgrade(app.database)
            await app.setup.mark_admins()
            await app.start()
            does = f"listens on {settings.bind}" if only in {None, Role.WEB} else f"runs as {only}"
            note(f"Midwatch {does}{_without(settings)}.")
            await stop.wait()
        finally:
            await app.stop()


async def migrate(*, check: Annotated[bool, Parameter(negative=())] = False) -> None:
    """Make the tables, or bring them up to date; `run` does it too.

    Parameters
    ----------
    check
        Change nothing; exit with 1 when there is something to do.
    """
    settings = load(os.environ)
    if check and (file := missing_file(settings)):
        raise MidwatchError(f"There is no database yet: {file} is not there. Run: midwatch migrate")
    database = Database(settings.database_url)
    try:
        if not check:
            await start_checks(database, SystemClock())
            await upgrade(database)
            return say("The database is up to date.")
        found = await look(database)
        if not found.allowed:
            raise MidwatchError(found.refusal)
        if not found.current:
            raise MidwatchError("The database is not up to date. Run: midwatch migrate")
        return say("The database is up to date.")
    finally:
        await database.close()


def _without(settings: Settings) -> str:
    missing = [
        name
        for name, there in (("Slack", settings.slack_bot_token), ("SMS and calls", settings.twilio_from))
        if there is None
    ]
    return f", without {' and without '.join(missing)}: not set up" if missing else ""
