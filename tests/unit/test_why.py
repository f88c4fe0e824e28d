"""Why something cannot be reached: in words, without what the error itself says."""

from __future__ import annotations

import re
import socket
import sqlite3
import ssl

import aiohttp
import asyncpg
import pytest
from sqlalchemy.exc import OperationalError

from bot.why import database_away, why
from engine.errors import NotFound, Unavailable

SECRET = "hunter2"


def unavailable(cause: Exception) -> Unavailable:
    error = Unavailable()
    error.__cause__ = cause
    return error


CAUSES = [
    (ConnectionRefusedError(111, SECRET), "nobody listens"),
    (OSError(f"Multiple exceptions: Connect call failed {SECRET}"), "nobody listens"),
    (socket.gaierror(-2, SECRET), "no host of that name"),
    (TimeoutError(SECRET), "does not answer in time"),
    (ConnectionResetError(SECRET), "closes the connection"),
    (ssl.SSLCertVerificationError(SECRET), "certificate is not trusted"),
    (aiohttp.ServerDisconnectedError(SECRET), "closes the connection"),
    (asyncpg.InvalidPasswordError(SECRET), "refuses this user or this password"),
    (asyncpg.InvalidCatalogNameError(SECRET), "no database of that name"),
    (asyncpg.CannotConnectNowError(SECRET), "starting or stopping"),
    (RuntimeError(SECRET), "the connection failed"),
]


@pytest.mark.parametrize(("cause", "words"), CAUSES, ids=lambda each: type(each).__name__)
def test_a_cause_is_put_into_words(cause: Exception, words: str) -> None:
    """Itself or behind Unavailable, it is a half sentence without a class's name and without its own text."""
    for error in (cause, unavailable(cause)):
        said = why(error)
        assert words in said
        assert SECRET not in said
        assert not re.search(r"[a-z][A-Z]|Error", said)


def test_sqlite_says_it_itself() -> None:
    """Its own words hold neither address nor password."""
    error = OperationalError("SELECT 1", {}, sqlite3.OperationalError("unable to open database file"))
    assert why(unavailable(error)) == "unable to open database file"


def test_only_what_is_about_the_way_there_is_the_database_away() -> None:
    """A refused password is; what went wrong in a statement or was not found is not."""
    assert database_away(Unavailable())
    assert database_away(asyncpg.InvalidPasswordError(SECRET))
    assert not database_away(asyncpg.UniqueViolationError(SECRET))
    assert not database_away(NotFound())
