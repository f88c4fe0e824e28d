"""The engine opened for one command, beside a Midwatch that may be running on the same database.

Never starts a worker: what a command arms is seen by the running one within a second.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bot.commands.say import note
from bot.reach import sends_by
from bot.secret_key import missing_file, to_look_only, with_secret_key
from bot.settings import Settings, load
from engine.clock import Clock, SystemClock
from engine.contacts.contacts import Contacts
from engine.db import Database
from engine.errors import MidwatchError
from engine.migrate import look, upgrade
from engine.models import Actor, Via
from engine.nudge import Nudge
from engine.pager.respond import Calls, Responder
from engine.pager.setup import Setup
from engine.pager.views import Views
from engine.rota.roster import Roster
from engine.vault import Vault


@dataclass(frozen=True, slots=True)
class Opened:
    settings: Settings
    clock: Clock
    database: Database
    roster: Roster
    setup: Setup
    views: Views
    responder: Responder
    contacts: Contacts


@asynccontextmanager
async def opened(*, look_only: bool = False) -> AsyncIterator[Opened]:
    """By the settings of the environment; an empty database gets its tables first."""
    settings = load(os.environ)
    settings = to_look_only(settings) if look_only else with_secret_key(settings, note)
    clock, database = SystemClock(), Database(settings.database_url)
    try:
        await _have_tables(database)
        yield _engine(settings, clock, database)
    finally:
        await database.close()


async def not_there() -> str:
    """That there is no database yet, as the beginning of a sentence; empty if there is. Makes nothing."""
    settings = load(os.environ)
    if file := missing_file(settings):
        return f"There is no database yet ({file})"
    database = Database(settings.database_url)
    try:
        return "" if (await look(database)).revision else "The database has no tables yet"
    finally:
        await database.close()


async def _have_tables(database: Database) -> None:
    """Make them where there are none; old ones are for `migrate`, since others may be working on them."""
    found = await look(database)
    if not found.allowed:
        raise MidwatchError(found.refusal)
    if found.revision is None:
        await upgrade(database)
    elif not found.current:
        raise MidwatchError("The database is of an older version of Midwatch. Run: midwatch migrate")


def _engine(settings: Settings, clock: Clock, database: Database) -> Opened:
    assert settings.secret_key is not None  # noqa: S101  # with_secret_key saw to it
    vault = Vault(settings.secret_key.get_secret_value())
    roster = Roster(database, clock, vault, fallback_urls=settings.fallback_urls)
    nudge = Nudge(database)
    return Opened(
        settings=settings,
        clock=clock,
        database=database,
        roster=roster,
        setup=Setup(database, clock, vault, admins=settings.admins),
        views=Views(database),
        responder=Responder(database, clock, roster.directory, nudge, _let_ring),
        contacts=Contacts(
            database, clock, vault, nudge, countries=settings.sms_countries, ways=sends_by(settings)
        ),
    )


def _let_ring(_calls: Calls) -> None:
    """A call that is ringing ends by itself: a command does not stay for the phone company's answer."""


def me() -> Actor:
    """Whoever types: the name of the system's user."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container's user often has no name
        name = "the command line"
    return Actor(name, Via.CLI)
