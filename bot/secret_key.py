"""The key that encrypts addresses: from the settings, or from a file beside the SQLite database.

Never makes a second key for a database that was written with a first one.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pydantic import SecretStr
from sqlalchemy.engine import make_url

from bot.settings import SHORTEST_SECRET, Settings
from engine.errors import BadConfig

FILE: Final = "secret.key"


def with_secret_key(settings: Settings, say: Callable[[str], None]) -> Settings:
    """The settings with a key: theirs, the file's, or a new one for a database that is not there yet."""
    if settings.secret_key is not None:
        return settings
    database = sqlite_file(settings)
    path = (database.parent if database else Path("data")) / FILE
    if not path.exists():
        _refuse_without(database)
        _make(path)
        say(f"Made a secret key in {path}. Keep a copy: without it phone numbers cannot be read.")
    key = path.read_text(encoding="ascii").strip()
    if len(key) < SHORTEST_SECRET:
        raise BadConfig([f"{path}: must hold at least {SHORTEST_SECRET} characters"])
    return settings.model_copy(update={"secret_key": SecretStr(key)})


def sqlite_file(settings: Settings) -> Path | None:
    url = make_url(settings.database_url)
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def _refuse_without(database: Path | None) -> None:
    if database is None:
        raise BadConfig(
            [
                "MIDWATCH_SECRET_KEY: is missing; every process needs the same one. "
                "Make one with: openssl rand -base64 32"
            ]
        )
    if database.exists():
        raise BadConfig(
            [
                f"MIDWATCH_SECRET_KEY: is missing, and {database} was written with one; "
                f"set it, or restore {FILE}"
            ]
        )


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:  # another process was first; its key is the key
        return
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
