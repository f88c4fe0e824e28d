"""What is true of every answer: errors become problems, headers are safe, the log shows no key.

Never answers 4xx to what may be a real alert because something here went wrong: that is a 503.
"""

from __future__ import annotations

import secrets
import traceback
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

import structlog
from aiohttp import web
from aiohttp.abc import AbstractAccessLogger

from bot.web.keys import masked
from bot.web.problems import RETRY_AFTER, Problem, unavailable
from engine.errors import BadInput, NotFound, Refused, TooMany, Unavailable

log = structlog.get_logger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# One place for all: the few pages we have are plain text, so nothing may be loaded or framed.
SAFE_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
INNERMOST: Final = 5
INGEST: Final = ("/webhooks/", "/v1/events", "/v2/")
COUNTED: Final = (*INGEST, "/healthz", "/readyz", "/metrics")
LONGEST_PATH: Final = 200


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        response = await handler(request)
    except Exception as error:  # the one place where a request's errors end
        response = _answer(request, error)
    if not response.prepared:
        for name, value in SAFE_HEADERS.items():
            response.headers.setdefault(name, value)
    return response


def _answer(request: web.Request, error: Exception) -> web.Response:
    match error:
        case Problem():
            return error.response()
        case web.HTTPException():
            return _translated(error)
        case Unavailable():
            return unavailable().response()
        case NotFound():
            return Problem(404, str(error)).response()
        case TooMany():
            return Problem(429, str(error)).response()
        case Refused():
            return Problem(403, str(error)).response()
        case BadInput():
            return Problem(400, str(error)).response()
        case ConnectionError():
            return Problem(400, "The connection ended before the body did.").response()
        case _:
            return _unexpected(request, error)


def _unexpected(request: web.Request, error: Exception) -> web.Response:
    ref = secrets.token_hex(4)
    # Why no text: that of an error may hold what was sent, and so a secret.
    path = masked(request.path)
    log.error("web.failed", ref=ref, error=type(error).__name__, at=_places(error), path=path)
    if request.path.startswith(INGEST):
        detail = f"Midwatch failed (reference {ref}); send this again."
        return Problem(503, detail, headers=RETRY_AFTER).response()
    return Problem(500, f"Midwatch failed; the log says why under reference {ref}.").response()


def _places(error: Exception) -> list[str]:
    """File, line and function of the innermost frames."""
    frames = traceback.extract_tb(error.__traceback__)[-INNERMOST:]
    return [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}" for frame in frames]


def _translated(error: web.HTTPException) -> web.Response:
    """aiohttp's own errors (no such path, wrong method) as problems."""
    headers = {name: error.headers[name] for name in ("Allow", "Location") if name in error.headers}
    detail = {
        404: "There is nothing at this address.",
        405: f"Use {headers.get('Allow', 'another method')} here.",
        413: "The body is too long.",
    }.get(error.status, HTTPStatus(error.status).phrase)
    return Problem(error.status, detail, headers=headers).response()


class AccessLog(AbstractAccessLogger):
    """One event per answer, with keys masked; accepted alerts and probes are metrics instead."""

    def log(self, request: web.BaseRequest, response: web.StreamResponse, time: float) -> None:
        path = request.path_qs
        if response.status < 400 and path.startswith(COUNTED):
            return
        log.info(
            "web.answered",
            method=request.method,
            path=masked(path)[:LONGEST_PATH],
            status=response.status,
            ms=round(time * 1000),
        )
