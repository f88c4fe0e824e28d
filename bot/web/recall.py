"""Bodies read lately, by their bytes: Alertmanager repeats itself to the last byte, and reading is pure.

Never remembers a body that was given a key of our making, and never grows beyond a few megabytes.
"""

from __future__ import annotations

import secrets
from typing import Final

from engine.models import Body
from engine.sources import Parser, decode

LONGEST: Final = 64 * 1024  # longer ones are rare, and their commit costs more than their reading
ROOM: Final = 8 * 1024 * 1024  # bytes as sent; what is made of them takes a few times that


class Recall:
    def __init__(self) -> None:
        self._bodies: dict[tuple[Parser, bytes], Body] = {}  # the oldest first
        self._size = 0

    def read(self, parse: Parser, raw: bytes) -> Body:
        """What `parse` makes of the bytes, now or before."""
        known = self._bodies.get((parse, raw))
        if known is not None:
            return known
        made: list[str] = []

        def new_key() -> str:
            made.append(secrets.token_hex(16))
            return made[-1]

        body = parse(decode(raw), new_key)
        if not made and len(raw) <= LONGEST:
            self._keep((parse, raw), body)
        return body

    def _keep(self, key: tuple[Parser, bytes], body: Body) -> None:
        self._bodies[key] = body
        self._size += len(key[1])
        while self._size > ROOM:
            oldest = next(iter(self._bodies))
            del self._bodies[oldest]
            self._size -= len(oldest[1])
