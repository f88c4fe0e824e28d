"""Bodies of requests: read within a size and a time, decoded from JSON, nesting bounded.

Never knows what a body means. A body that can be used after cleaning is cleaned, not refused,
since it may be a real alert.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Final, TypeVar

from aiohttp import web

from bot.web.problems import Problem

T = TypeVar("T")
MIB: Final = 1024 * 1024
INGEST_LIMIT: Final = 16 * MIB  # about 60,000 alerts; a 413 is sent again by Alertmanager for ever
LIMIT: Final = MIB
BODY_TIMEOUT: Final = timedelta(seconds=30)
THREAD_ABOVE: Final = 256 * 1024  # decoding longer ones would hold up every other request
DEEPEST_KEPT: Final = 32
DEEPEST_READ: Final = 500  # well below what the JSON scanner can take on any Python
CUT: Final = "… (nested too deeply)"


async def read(request: web.Request, limit: int) -> bytes:
    """The bytes of the body, or a Problem before more than `limit` of them are held."""
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in {"", "identity"}:
        raise Problem(415, "Send the body without a Content-Encoding.")
    length = request.content_length
    if length is not None and length > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(BODY_TIMEOUT.total_seconds()):
            return await _read(request, limit)
    except TimeoutError:
        raise Problem(408, "The body did not arrive in time.") from None


async def _read(request: web.Request, limit: int) -> bytes:
    content = request.content
    chunk = await content.readany()
    if content.at_eof():
        return chunk  # the whole of most bodies is there at once
    chunks, size = [chunk], len(chunk)
    while chunk := await content.readany():
        size += len(chunk)
        if size > limit:  # without a Content-Length this is the first we hear of it
            raise _too_large(limit)
        chunks.append(chunk)
    return b"".join(chunks)


def _too_large(limit: int) -> Problem:
    return Problem(413, f"The body is longer than {limit // MIB} MiB.")


async def read_json(request: web.Request, limit: int) -> Any:
    return await aside(decode, await read(request, limit))


async def aside(work: Callable[[bytes], T], raw: bytes) -> T:
    """Do `work` on a body: here if that is quick, else in a thread."""
    return await asyncio.to_thread(work, raw) if len(raw) > THREAD_ABOVE else work(raw)


def decode(raw: bytes) -> Any:
    """Any JSON, in any of its encodings; what is not JSON is a Problem with the place."""
    text = raw.decode(json.detect_encoding(raw), "replace").removeprefix("\ufeff")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise Problem(400, f"The body is not JSON: {error.msg} at {place}.") from None
    except RecursionError:
        raise _too_deep() from None
    _bound_depth(value)
    return value


def _bound_depth(value: Any) -> None:
    """Replace what lies below DEEPEST_KEPT by a mark; refuse what no sender means."""
    level = lowest = _containers([value])
    for depth in range(1, DEEPEST_READ + 1):
        if depth == DEEPEST_KEPT:
            lowest = level
        level = [child for container in level for child in _containers(_values(container))]
        if not level:
            break
    else:
        raise _too_deep()
    if depth > DEEPEST_KEPT:
        _cut_below(lowest)


def _values(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, (dict, list))]


def _cut_below(containers: list[Any]) -> None:
    for container in containers:
        places = container.items() if isinstance(container, dict) else enumerate(container)
        for place, child in list(places):
            if isinstance(child, (dict, list)):
                container[place] = CUT


def _too_deep() -> Problem:
    return Problem(400, f"The body is nested more than {DEEPEST_READ} deep.")


def _float(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text  # 1e999: no database's JSON holds infinity


def _int(text: str) -> int | str:
    return int(text) if len(text) <= 40 else text  # Python itself refuses more than 4300 digits


# strict=False takes control characters inside strings; NaN and Infinity stay as their words.
_DECODER: Final = json.JSONDecoder(strict=False, parse_constant=str, parse_float=_float, parse_int=_int)
