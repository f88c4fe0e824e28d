"""Requests made lately of the very same body: a source that repeats itself is prepared once.

Never compares what bodies say: the same object is the same body, and values do not change.
"""

from __future__ import annotations

from typing import Final

from engine.directory import Service
from engine.intake.fold import Request, prepare
from engine.models import Actor, Body

KEPT: Final = 4_096
FEW: Final = 20  # events; longer bodies are rare, and their commit costs more than this


class Prepared:
    def __init__(self) -> None:
        self._made: dict[int, Request] = {}  # by the identity of its body; the oldest first

    def request(self, service: Service, body: Body, by: Actor | None) -> Request:
        """The body as a request to the service, made now or before."""
        known = self._made.get(id(body))
        if known is not None and known.body is body and known.service is service and by is None:
            return known
        request = prepare(service, body, by)
        if by is None and len(body.events) <= FEW:
            self._made[id(body)] = request
            if len(self._made) > KEPT:
                del self._made[next(iter(self._made))]
        return request
