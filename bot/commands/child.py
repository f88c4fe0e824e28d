"""The sandbox as a process of the demo: started, waited for, stopped.

Never outlives the demo: the sandbox ends when the other end of its standard input does.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import aiohttp

from engine.errors import MidwatchError

READY_WITHIN_S: Final = 60.0  # a first start on a slow machine compiles every module
STOP_WITHIN_S: Final = 5.0
LOOK_EVERY_S: Final = 0.05


@asynccontextmanager
async def sandbox_process(arguments: Sequence[str], log: Path) -> AsyncIterator[asyncio.Task[int]]:
    """The task ends when the process does."""
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bot", "sandbox", "--parent", "stdin", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C is the demo's alone: Midwatch stops first, then the sandbox
        )
    ended = asyncio.create_task(process.wait())
    try:
        yield ended
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait({ended}, timeout=STOP_WITHIN_S)
        if not ended.done():
            process.kill()
            await ended


async def answering(url: str, ended: asyncio.Task[int], log: Path) -> None:
    """Return when `url` answers 200; raise when it does not, or when the sandbox is gone."""
    try:
        async with asyncio.timeout(READY_WITHIN_S), aiohttp.ClientSession() as session:
            while not await _answers(session, url):
                if ended.done():
                    raise MidwatchError(f"The sandbox stopped by itself; {log} says why.")
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        raise MidwatchError(f"{url} does not answer; {log} may say why.") from None


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url, timeout=aiohttp.ClientTimeout(total=2)) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False
