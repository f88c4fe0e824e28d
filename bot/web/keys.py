"""Who may come in: integration keys of senders and tokens of the API, looked up by their hash.

Never logs or answers a key, and answers the same to a missing, an unknown and a revoked one.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from aiohttp import web

from bot.web.problems import unauthorized
from engine.clock import monotonic
from engine.db import Database
from engine.store import directory
from engine.store.directory import KeyRow, TokenRow
from engine.vault import hash_key

KEPT: Final = timedelta(seconds=10)  # how long a revoked integration key may go on working
ASKED_AT_ONCE: Final = 2  # however many unknown keys come: pages are read by the same few connections
IN_QUERY: Final = re.compile(r"(?<=[?&]key=)[^&]+")
IN_PATH: Final = re.compile(r"(?<=^/webhooks/)(?!twilio/)([^/?]+)/[^?]+")
IN_LINK: Final = re.compile(r"^(/calendar/|/answer/)[^?]+")


@dataclass(frozen=True, slots=True)
class Door:
    """What an integration key opens."""

    org_id: int
    service_id: int


class Keys:
    """Integration keys, each remembered for 10 s, because ingest must not ask the database per request."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, tuple[float, Door]] = {}  # no more entries than there are keys
        self._asked: dict[str, asyncio.Task[Door]] = {}
        self._few = asyncio.Semaphore(ASKED_AT_ONCE)

    async def door(self, key: str) -> Door:
        """What `key` opens, or Problem 401. An empty key takes the same way as an unknown one."""
        key_hash = hash_key(key)
        known = self._known.get(key_hash)
        if known is not None and monotonic() < known[0]:
            return known[1]
        return await asyncio.shield(self._asking(key_hash))

    def _asking(self, key_hash: str) -> asyncio.Task[Door]:
        """One question at a time for a key, shared by all who wait: when it is forgotten, a storm goes on."""
        task = self._asked.get(key_hash)
        if task is None:
            task = self._asked[key_hash] = asyncio.create_task(self._ask(key_hash))
        return task

    async def _ask(self, key_hash: str) -> Door:
        try:
            async with self._few, self._database.look() as tx:
                row = await directory.service_by_key_hash(tx, key_hash)
        finally:
            del self._asked[key_hash]
        return self._remember(key_hash, row)

    def _remember(self, key_hash: str, row: KeyRow | None) -> Door:
        if row is None or row.revoked:
            self._known.pop(key_hash, None)
            raise unauthorized('Integration-Key realm="midwatch"')
        door = Door(row.org_id, row.service_id)
        self._known[key_hash] = (monotonic() + KEPT.total_seconds(), door)
        return door


class Tokens:
    """API tokens, asked for each time: a revoked one stops at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def bearer(self, request: web.Request) -> TokenRow:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        token_hash = hash_key(token.strip() if scheme.lower() == "bearer" else "")
        async with self._database.snapshot() as tx:
            row = await directory.token_by_hash(tx, token_hash)
        if row is None or row.revoked:
            raise unauthorized('Bearer realm="midwatch"')
        return row


def shown_key(request: web.Request) -> str:
    """The key of a request, or nothing.

    The address goes first: an Authorization header may be meant for a proxy before us.
    """
    return (
        request.match_info.get("key")
        or (request.query.get("key") if request.query_string else None)
        or _from_header(request.headers.get("Authorization", ""))
    )


def _from_header(value: str) -> str:
    scheme, _, rest = value.partition(" ")
    match scheme.lower():
        case "integration-key" | "bearer":
            return rest.strip()
        case "basic":
            return _password(rest.strip())
        case _:
            return ""


def _password(encoded: str) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[2]
    except (binascii.Error, ValueError):
        return ""


def masked(path: str) -> str:
    """A path for the log: keys in it become dots."""
    return IN_LINK.sub(r"\1•••", IN_PATH.sub(r"\1/•••", IN_QUERY.sub("•••", path)))
