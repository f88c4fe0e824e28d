"""A lean HTTP/1.1 load: some keep-alive connections, one request at a time on each.

Never parses more than it must: the load must not be what is measured.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Result:
    """What a run saw: requests a second, and how long each took, in seconds."""

    seconds: float
    durations: list[float]
    statuses: dict[int, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        return len(self.durations) / self.seconds

    def quantile(self, q: float) -> float:
        ordered = sorted(self.durations)
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


class _Connection(asyncio.Protocol):
    def __init__(self, run: _Run) -> None:
        self._run = run
        self._transport: asyncio.Transport | None = None
        self._begun = 0.0
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def _next(self) -> None:
        request = self._run.take()
        assert self._transport is not None
        if request is None:
            self._transport.close()
            return
        self._begun = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        lower = head.lower()
        start = lower.index(b"content-length:") + 15
        length = int(lower[start : lower.find(b"\r\n", start) if b"\r\n" in lower[start:] else None])
        if len(rest) < length:
            return
        self._buffer = b""
        self._run.ended(int(head[9:12]), time.perf_counter() - self._begun)
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        self._run.closed()


class _Run:
    def __init__(self, connections: int, seconds: float, make: Callable[[], bytes]) -> None:
        self._left = connections
        self._make = make
        self._until = time.perf_counter() + seconds
        self.result = Result(seconds, [])
        self.done = asyncio.get_running_loop().create_future()

    def take(self) -> bytes | None:
        return self._make() if time.perf_counter() < self._until else None

    def ended(self, status: int, duration: float) -> None:
        self.result.durations.append(duration)
        self.result.statuses[status] = self.result.statuses.get(status, 0) + 1

    def closed(self) -> None:
        self._left -= 1
        if self._left == 0 and not self.done.done():
            self.done.set_result(None)


async def load(port: int, connections: int, seconds: float, make: Callable[[], bytes]) -> Result:
    """Send what `make` gives, as fast as the server answers."""
    run = _Run(connections, seconds, make)
    began = time.perf_counter()
    loop = asyncio.get_running_loop()
    for _ in range(connections):
        await loop.create_connection(lambda: _Connection(run), "127.0.0.1", port)
    await run.done
    run.result.seconds = time.perf_counter() - began
    return run.result


def request(path: str, body: bytes, key: str = "bench") -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
