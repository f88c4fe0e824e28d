"""What went wrong, as RFC 9457 problem documents.

Never holds a value that the sender sent, nor anything of the inside: a reason, a place, a reference.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web
from pydantic import ValidationError

CONTENT_TYPE: Final = "application/problem+json"
RETRY_AFTER: Final = {"Retry-After": "5"}
LONGEST_PLACE: Final = 80


class Problem(Exception):
    """Ends a request with a problem document."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        errors: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})

    def response(self) -> web.Response:
        status = HTTPStatus(self.status)
        document: dict[str, Any] = {
            "type": "about:blank",
            "title": status.phrase,
            "status": self.status,
            "detail": self.detail,
        }
        if self.errors:
            document["errors"] = [dict(error) for error in self.errors]
        return web.Response(
            status=self.status,
            body=json.dumps(document).encode(),
            headers={**self.headers, "Content-Type": CONTENT_TYPE},
        )


def unauthorized(scheme: str) -> Problem:
    """One answer for a missing, an unknown and a revoked secret."""
    return Problem(401, "This key is not known here.", headers={"WWW-Authenticate": scheme})


def unavailable() -> Problem:
    return Problem(503, "Midwatch cannot store this right now; try again.", headers=RETRY_AFTER)


def invalid(place: str, error: ValidationError) -> Problem:
    """Where and why, without what: `place` is body, query or path."""
    errors = [
        {"at": ".".join([place, *map(str, each["loc"])])[:LONGEST_PLACE], "reason": each["msg"]}
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return Problem(422, f"The {place} does not have the form that is expected here.", errors=errors)
