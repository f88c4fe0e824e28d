"""When a command that stays should end: Ctrl-C, SIGTERM, or whoever started it is gone.

Never ends anything itself. A second Ctrl-C is not held back: it ends the process at once.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stop_signal() -> Iterator[asyncio.Event]:
    """Set at the first SIGINT or SIGTERM."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def ask(number: int) -> None:
        stop.set()
        loop.remove_signal_handler(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, ask, number)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def parent_gone() -> None:
    """Until standard input ends: whoever started us holds its other end, however it dies."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while await reader.read(1024):
        pass
