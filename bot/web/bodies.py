"""Bodies of requests: read within a size and a time, then decoded where that holds up nobody.

Never knows what a body means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Final, TypeVar

from aiohttp import web

from bot.web.problems import Problem
from engine.sources.decode import decode

T = TypeVar("T")
MIB: Final = 1024 * 1024
INGEST_LIMIT: Final = 16 * MIB  # about 60,000 alerts; a 413 is sent again by Alertmanager for ever
LIMIT: Final = MIB  # of everything else: it holds one event, or is read before anybody's key is known
BODY_TIMEOUT: Final = timedelta(seconds=30)
THREAD_ABOVE: Final = 256 * 1024  # decoding longer ones would hold up every other request


async def read(request: web.Request, limit: int) -> bytes:
    """The bytes of the body, or a Problem before more than `limit` of them are held."""
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in {"", "identity"}:
        raise Problem(415, "Send the body without a Content-Encoding.")
    length = request.content_length
    if length is not None and length > limit:
        raise _too_large(limit)
    if request.content.is_eof():
        return _whole(request, limit)  # most bodies come with their heads: no clock is needed for those
    try:
        async with asyncio.timeout(BODY_TIMEOUT.total_seconds()):
            return await _arriving(request, limit)
    except TimeoutError:
        raise Problem(408, "The body did not arrive in time.") from None


def _whole(request: web.Request, limit: int) -> bytes:
    raw = request.content.read_nowait()
    if len(raw) > limit:
        raise _too_large(limit)
    return raw


async def _arriving(request: web.Request, limit: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while chunk := await request.content.readany():
        size += len(chunk)
        if size > limit:  # without a Content-Length this is the first we hear of it
            raise _too_large(limit)
        chunks.append(chunk)
    return b"".join(chunks)


def _too_large(limit: int) -> Problem:
    return Problem(413, f"The body is longer than {limit // MIB} MiB.")


async def read_json(request: web.Request, limit: int) -> object:
    return await aside(decode, await read(request, limit))


async def aside(work: Callable[[bytes], T], raw: bytes) -> T:
    """Do `work` on a body: here if that is quick, else in a thread."""
    return await asyncio.to_thread(work, raw) if len(raw) > THREAD_ABOVE else work(raw)
