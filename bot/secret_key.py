"""The key that encrypts addresses: from the settings, or from a file beside the SQLite database.

Never makes a second key for a database that holds what a first one encrypted.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from pydantic import SecretStr
from sqlalchemy.engine import make_url

from bot.settings import MAKE_A_KEY, SHORTEST_SECRET, Settings
from engine.errors import BadConfig
from engine.schema import contact_methods

FILE: Final = "secret.key"


def with_secret_key(settings: Settings, say: Callable[[str], None]) -> Settings:
    """The settings with a key: theirs, the file's, or a new one where nothing is encrypted yet."""
    path = _path(settings)
    if settings.secret_key is None and not path.exists():
        _refuse_without(settings)
        _make(path)
        say(f"Made a secret key in {path}. Keep a copy: without it phone numbers cannot be read.")
    return _known(settings, path)


def to_look_only(settings: Settings) -> Settings:
    """The same for who stores nothing: a new key is one for this process, and leaves no file."""
    path = _path(settings)
    if settings.secret_key is None and not path.exists():
        _refuse_without(settings)
        return _with(settings, secrets.token_urlsafe(32))
    return _known(settings, path)


def sqlite_file(settings: Settings) -> Path | None:
    url = make_url(settings.database_url)
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def missing_file(settings: Settings) -> Path | None:
    """The SQLite file that would be made, if it is not there; to connect would make it."""
    file = sqlite_file(settings)
    return None if file is None or file.exists() else file


def _path(settings: Settings) -> Path:
    database = sqlite_file(settings)
    return (database.parent if database else Path("data")) / FILE


def _known(settings: Settings, path: Path) -> Settings:
    if settings.secret_key is not None:
        return settings
    key = path.read_text(encoding="ascii").strip()
    if len(key) < SHORTEST_SECRET:
        raise BadConfig([f"{path}: must hold at least {SHORTEST_SECRET} characters. {MAKE_A_KEY}"])
    return _with(settings, key)


def _with(settings: Settings, key: str) -> Settings:
    return settings.model_copy(update={"secret_key": SecretStr(key)})


def _refuse_without(settings: Settings) -> None:
    database = sqlite_file(settings)
    if database is None:
        raise BadConfig([f"MIDWATCH_SECRET_KEY: is missing; every process needs the same one. {MAKE_A_KEY}"])
    if _encrypted(database):
        raise BadConfig(
            [
                f"MIDWATCH_SECRET_KEY: is missing, and {database} was written with one; "
                f"set it, or restore {_path(settings)}"
            ]
        )


def _encrypted(database: Path) -> bool:
    """Does this file hold an address? Nothing else is stored with the key."""
    if not database.exists():
        return False
    there = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as file:
            if not file.execute(there, [contact_methods.name]).fetchone()[0]:
                return False
            rows = f"SELECT count(*) FROM {contact_methods.name}"  # noqa: S608  # a name of our own
            return bool(file.execute(rows).fetchone()[0])
    except sqlite3.Error:  # it cannot be read, so it may: a second key could do harm
        return True


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:  # another process was first; its key is the key
        return
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
