"""Why something could not be reached, in words for whoever runs Midwatch.

Never repeats what an error says of itself, except of SQLite: it may hold an address or a password.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Final

import aiohttp
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from engine.db import sqlstate
from engine.errors import Unavailable

# By the beginning of PostgreSQL's code.
CODES: Final = {
    "28": "it refuses this user or this password",
    "3D": "there is no database of that name",
    "42501": "this user may not do that",
    "53": "it has no room or no connection left",
    "55P03": "something holds its tables",
    "57P03": "it is starting or stopping",
    "57": "it took too long, or is stopping",
    "25006": "it is read-only",
}


def why(error: BaseException) -> str:
    """A half sentence."""
    for each in _chain(error):
        if words := _words(each):
            return words
    return "the connection failed"


def database_away(error: BaseException) -> bool:
    """Is this about the way to the database, and not about what was done there?"""
    return isinstance(error, Unavailable) or sqlstate(error).startswith(("28", "3D", "53"))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it came from."""
    link: BaseException | None = error
    while link is not None:
        yield link
        if isinstance(link, DBAPIError) and link.orig is not None:
            yield link.orig
        link = link.__cause__


def _words(error: BaseException) -> str:
    code = sqlstate(error)
    for beginning, words in CODES.items():
        if code.startswith(beginning):
            return words
    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError() | ssl.SSLError():
            return "its certificate is not trusted, or it does not speak TLS"
        case aiohttp.ClientConnectorDNSError() | socket.gaierror():
            return "there is no host of that name"
        case PoolTimeout() | TimeoutError():
            return "it does not answer in time"
        case ConnectionRefusedError():
            return "nobody listens at its address"
        case aiohttp.ClientConnectorError():
            return _words(error.os_error)
        case DBAPIError() if "sqlite" in type(error.orig).__module__:
            return str(error.orig)
        case ConnectionError() | aiohttp.ServerDisconnectedError():
            return "it closes the connection"
        case FileNotFoundError():
            return "its socket is not there"
        case OSError() if "Connect call failed" in str(error):  # to each address of the host
            return "nobody listens at its address"
    return ""
