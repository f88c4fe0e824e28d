"""Watches over this process: does time go evenly, do commits work, does every loop tick.

Never works a timer and never repairs: it says so, in the log, as a metric, and as an alarm. An alarm
that cannot be stored goes straight out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

import structlog

from engine import jumps, metrics
from engine.checks import SEEN_EVERY, SKEW_BAD, SKEW_NOTED, skew, this_host
from engine.clock import Clock, Reading, monotonic, read
from engine.db import Database, Tx, Writer
from engine.errors import Unavailable
from engine.models import ORG
from engine.pager.alarm import raise_alarm
from engine.pulse import Pulse
from engine.store import counts, hosts

log = structlog.get_logger(__name__)

LOOK_EVERY: Final = timedelta(seconds=1)
MEASURE_EVERY: Final = timedelta(minutes=1)
FAILED_ALARMED: Final = 2  # commits in a row: one may be a restart of the database
NAME: Final = "watch"

Say = Callable[[str, str], Awaitable[bool]]  # cause, text: without the database


class Watch:
    """`start` begins two loops: one looks at the clocks each second, one asks the database."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        nudge: Callable[[], None],
        pulse: Pulse,
        say: Say,
        *,
        clocks: Callable[[], Reading] = read,
    ) -> None:
        self._database = database
        self._clock = clock
        self._nudge = nudge
        self.pulse = pulse
        self._say = say
        self._clocks = clocks
        self._read = clocks()
        self._unsaid: dict[str, str] = {}  # alarms by their cause, until they are stored
        self._failed = 0  # commits in a row
        self._measured_at: float | None = None
        self.skew = timedelta()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._read = self._clocks()
        self.pulse.expect(NAME)
        self._tasks = [
            asyncio.create_task(self._every(LOOK_EVERY, self._look), name="watch-clocks"),
            asyncio.create_task(self._every(SEEN_EVERY, self.ask), name="watch-database"),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._tasks and self._database.is_sqlite:
            with suppress(Unavailable):  # then the next host waits a little
                await self._database.write(lambda tx: hosts.forget(tx, ORG, [this_host()]))

    def unready(self) -> str | None:
        """Why no alert should be sent here, though commits work."""
        if abs(self.skew) > SKEW_BAD:
            return f"This host's clock and the database's are {abs(self.skew).total_seconds():.0f} s apart."
        return None

    # --- the clocks, each second, without the database ------------------------------------------------

    async def _look(self) -> None:
        self.look()

    def look(self) -> tuple[jumps.Jump, ...]:
        """Compare the clocks with the last look."""
        before, self._read = self._read, self._clocks()
        found = jumps.between(before, self._read)
        for jump in found:
            log.error("clock.jumped", kind=jump.kind.value, by_s=round(jump.by.total_seconds(), 1))
            metrics.clock_jumps.labels(jump.kind.value).inc()
            self._unsaid[f"clock:{jump.kind}"] = jumps.told(jump)
            if jump.kind is jumps.JumpKind.STALLED:
                self.pulse.paused(jump.by)
        if found:
            self._nudge()
        self.pulse.export(self._clock.now())
        return found

    # --- the database, every few seconds --------------------------------------------------------------

    async def ask(self) -> bool:
        """Commit something; say what is to be said. False: the database takes nothing."""
        try:
            await self._database.write(self._seen, rank=Writer.CARD)
        except Exception as error:  # whatever it is, every other unit meets it too
            await self._failing(error)
            return False
        if self._failed:
            log.info("db.works_again", failed=self._failed)
        self._failed = 0
        metrics.database_up.set(1)
        await self._measure()
        await self.alarm_silent()
        await self._store_unsaid()
        self.pulse.tick(NAME)
        return True

    async def _seen(self, tx: Tx) -> None:
        # Why a write: reading alone finds no full disk and no standby.
        if self._database.is_sqlite:
            await hosts.see(tx, ORG, this_host(), self._clock.now())
        else:
            await counts.touch(tx, ORG, NAME)

    async def _failing(self, error: Exception) -> None:
        self._failed += 1
        metrics.database_up.set(0)
        cause = type(error.__cause__ or error).__name__
        if self._failed == 1:
            log.error("db.fails", error=cause)
        if self._failed >= FAILED_ALARMED:
            await self._say(
                "database",
                f"Midwatch cannot store anything ({cause}): senders are told to come back, and nobody is "
                "paged. See that the database runs, is not read-only, and has room on its disk.",
            )

    async def _measure(self) -> None:
        now = monotonic()
        if self._measured_at is not None and now - self._measured_at < MEASURE_EVERY.total_seconds():
            return
        self._measured_at = now
        self.skew = await skew(self._database, self._clock)
        metrics.clock_skew_seconds.set(self.skew.total_seconds())
        if abs(self.skew) > SKEW_NOTED:
            log.warning("clock.skewed", by_s=round(self.skew.total_seconds(), 1))
        if (reason := self.unready()) is not None:
            self._unsaid["clock:skew"] = f"{reason} Set both by NTP; until then this process is not ready."

    async def alarm_silent(self) -> list[str]:
        """Say which loops have stopped; each once per quarter of an hour."""
        silent = self.pulse.silent()
        metrics.audit_findings.labels("loop_silent").set(len(silent))
        for name in silent:
            self._unsaid[f"loop:{name}"] = (
                f"The loop {name} has not ticked for too long: it stopped or fails."
            )
        await self._store_unsaid()
        return silent

    async def _store_unsaid(self) -> None:
        if not self._unsaid:
            return
        said, now = dict(self._unsaid), self._clock.now()

        async def unit(tx: Tx) -> None:
            for cause, text in sorted(said.items()):
                await raise_alarm(tx, ORG, cause, text, now)

        await self._database.write(unit)
        for cause in said:
            self._unsaid.pop(cause, None)
        self._nudge()

    async def _every(self, pause: timedelta, once: Callable[[], Awaitable[object]]) -> None:
        while True:
            try:
                await once()
            except Unavailable:  # the next look says so, if it lasts
                pass
            except Exception:
                log.exception("watch.failed")
            await asyncio.sleep(pause.total_seconds())
