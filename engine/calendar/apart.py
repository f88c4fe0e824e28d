"""Reads a calendar in a process of its own, which is stopped when it takes too long or too much memory.

Never lets a calendar hold up a page: a rule that never comes true would be counted for ever, and a thread
that counts it could not be stopped. Never gives that process a secret.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from contextlib import suppress
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from engine.calendar.read import Event, Reading, read_calendar
from engine.errors import BadCalendar

WITHIN_S: Final = 12.0  # with the time to fetch it less than the lease of an errand
MEMORY: Final = 1024**3
GIVEN: Final = ("PYTHONTZPATH", "LANG", "LC_ALL")  # of our own environment
LATE: Final = "It takes too long to read: a rule in it may never come true."


async def read_apart(
    body: bytes, a: datetime, b: datetime, zone: ZoneInfo, *, within_s: float = WITHIN_S
) -> Reading:
    """The same as `read_calendar`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # nothing that happens to lie where Midwatch was started
        "-m",
        __name__,
        *(a.isoformat(), b.isoformat(), zone.key, str(within_s)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_environment(),
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(body), within_s)
    except TimeoutError:
        raise BadCalendar(LATE) from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode != 0:
        raise BadCalendar("It takes too much to read.")
    return _reading(json.loads(out))


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in GIVEN if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _reading(said: dict[str, Any]) -> Reading:
    if "refused" in said:
        raise BadCalendar(said["refused"])
    events = (
        Event(datetime.fromisoformat(start), datetime.fromisoformat(end), summary, tuple(emails))
        for start, end, summary, emails in said["events"]
    )
    return Reading(tuple(events), tuple(said["unread"]))


def _said(body: bytes, a: str, b: str, zone: str) -> dict[str, Any]:
    try:
        found = read_calendar(body, datetime.fromisoformat(a), datetime.fromisoformat(b), ZoneInfo(zone))
    except BadCalendar as error:
        return {"refused": str(error)}
    events = [[one.start.isoformat(), one.end.isoformat(), one.summary, one.emails] for one in found.events]
    return {"events": events, "unread": found.unread}


def _main(a: str, b: str, zone: str, within_s: str) -> None:
    """Why limits of its own too: whoever started it may be killed before it can stop it."""
    seconds = int(float(within_s)) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    with suppress(ValueError, OSError):  # not every system can
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.nice(10)  # pages come first
    sys.stdout.write(json.dumps(_said(sys.stdin.buffer.read(), a, b, zone)))


if __name__ == "__main__":
    _main(*sys.argv[1:])
