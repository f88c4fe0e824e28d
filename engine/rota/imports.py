"""Schedules that follow a calendar of somebody else's: fetched every quarter of an hour.

Never lets a calendar that cannot be fetched or read put nobody on call: the last good copy stays. Never
changes who was on call before now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.calendar import match_events, matcher, spliced
from engine.calendar.apart import read_apart
from engine.calendar.fetch import Fetch, Fetched, calendar_url
from engine.calendar.match import Matched
from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Directory
from engine.errors import BadCalendar, BadInput, MidwatchError, NotFound
from engine.models import ORG, Rank, Timer, TimerKind
from engine.rota.roster import Roster
from engine.schedule import Shift
from engine.store import calendars as store
from engine.store import directory as directories
from engine.store import timers
from engine.store.calendars import Import
from engine.store.timers import Arming
from engine.vault import Vault

log = structlog.get_logger(__name__)

EVERY: Final = timedelta(minutes=15)
AGAIN: Final = timedelta(minutes=1)  # after the first failure: most of them are over by then
BACK: Final = timedelta(days=31)  # of a calendar that is new here
AHEAD: Final = timedelta(days=400)
KEPT: Final = timedelta(days=400)  # of what it said
READERS: Final = 2  # processes at once: a hundred calendars may be due in one moment


class Imports:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        nudge: Callable[[], None],
        roster: Roster,
        vault: Vault,
        fetch: Fetch,
    ) -> None:
        self._database = database
        self._clock = clock
        self._nudge = nudge
        self._roster = roster
        self._vault = vault
        self._fetch = fetch
        self._readers = asyncio.Semaphore(READERS)

    # --- which calendar a schedule follows

    async def follow(self, schedule_id: int, url: str) -> Import:
        """Fetch a calendar now and let a schedule follow it; one that cannot be read changes nothing."""
        now, plain = self._clock.now(), calendar_url(url)
        directory = await self._roster.directory()
        if schedule_id not in directory.schedules:
            raise NotFound("There is no such schedule here.")
        try:
            fetched = await self._fetch(plain, None)
            matched = await self._read(fetched.body or b"", directory, schedule_id, now - BACK, now)
        except BadCalendar as error:
            raise BadInput(f"That calendar was not taken: {_plainly(error)}. Nothing was changed.") from None
        encrypted = self._vault.encrypt(plain)

        async def unit(tx: Tx) -> Import:
            import_id = await store.follow(tx, ORG, schedule_id, encrypted)
            before = await store.read_import(tx, ORG, import_id)
            assert before is not None, "it was stored just now"  # noqa: S101  # in this transaction
            good = _good(before, fetched, matched, now)
            await store.save_import(tx, ORG, good, encrypted)
            await timers.arm(tx, ORG, [_arming(import_id, now + EVERY)])
            await directories.bump(tx, ORG)
            return good

        done = await self._database.write(unit, rank=Writer.RESPOND)
        log.info("calendar.followed", schedule=schedule_id, shifts=len(done.shifts))
        return done

    async def unfollow(self, schedule_id: int) -> bool:
        """From now on the layers alone say who is on call; False if no calendar did."""
        now = self._clock.now()

        async def unit(tx: Tx) -> bool:
            found = (await store.read_imports(tx, ORG)).get(schedule_id)
            if found is None or not found.url:
                return False
            past = tuple(spliced(found.shifts, (), _whole(now)))
            ended = Import(found.id, schedule_id, "", shifts=past, fetched_at=found.fetched_at)
            await store.save_import(tx, ORG, ended, found.url)
            await timers.disarm(tx, ORG, [TimerKind.CALENDAR], [found.id])
            await directories.bump(tx, ORG)
            return True

        return await self._database.write(unit, rank=Writer.RESPOND)

    async def followed(self) -> dict[int, Import]:
        """By schedule: the calendars that are followed."""
        async with self._database.snapshot() as tx:
            found = await store.read_imports(tx, ORG)
        return {schedule_id: one for schedule_id, one in found.items() if one.url}

    # --- fetched again and again

    async def fetch(self, timer: Timer, now: datetime) -> datetime | None:
        """The errand of a `calendar` timer."""
        async with self._database.snapshot() as tx:
            known = await store.read_import(tx, ORG, timer.subject_id)
        directory = await self._roster.directory()
        if known is None or not known.url or known.schedule_id not in directory.schedules:
            return None
        try:
            fetched = await self._fetch(self._vault.decrypt(known.url), known.etag)
            body = (known.body or "").encode() if fetched.body is None else fetched.body
            matched = await self._read(body, directory, known.schedule_id, now, now)
            _check_not_emptied(known, matched, now)
        except MidwatchError as error:  # also a URL that was written with another secret key
            await self._save(_failed(known, _plainly(error), now), known)
            return now + (AGAIN if known.failures == 0 else EVERY)
        await self._save(_good(known, fetched, matched, now), known)
        return now + EVERY

    async def _read(
        self, body: bytes, directory: Directory, schedule_id: int, since: datetime, now: datetime
    ) -> Matched:
        """Who is on call by it. Why apart: a large calendar takes seconds, and a hostile one for ever."""
        zone = directory.schedules[schedule_id].schedule.zone
        match = matcher(directory.people.values())
        # Why whole days: the end of what is read moves once a day, and not with each fetch.
        until = _whole(now).replace(hour=0, minute=0, second=0) + AHEAD
        async with self._readers:
            reading = await read_apart(body, _whole(since), until, zone)
        return await asyncio.to_thread(match_events, reading.events, reading.unread, match)

    async def _save(self, new: Import, known: Import) -> None:
        async def unit(tx: Tx) -> bool:
            kept = await store.save_import(tx, ORG, new, known.url, same_body=new.body == known.body)
            # What was found ahead may be another: a failure that is over, an event that names nobody.
            told = (new.shifts, new.unmatched, new.failures > 1) != (
                known.shifts,
                known.unmatched,
                known.failures > 1,
            )
            if kept and told:
                look = Arming(
                    TimerKind.COVERAGE, new.schedule_id, new.tried_at or self._clock.now(), rank=Rank.NOTICE
                )
                await timers.arm(tx, ORG, [look])
            if kept and new.shifts != known.shifts:
                await directories.bump(tx, ORG)
            return kept

        if await self._database.write(unit, rank=Writer.CARD):
            self._nudge()
        if new.error:
            log.warning("calendar.not_fetched", schedule=new.schedule_id, why=new.error)


def _arming(import_id: int, due_at: datetime) -> Arming:
    return Arming(TimerKind.CALENDAR, import_id, due_at, rank=Rank.NOTICE)


def _check_not_emptied(known: Import, matched: Matched, now: datetime) -> None:
    # Why: one that was emptied by mistake, or whose people were renamed, is more likely than a team that
    # wants nobody of it; whoever does follows it again, or ends it.
    if not matched.shifts and any(one.end > now for one in known.shifts):
        raise BadCalendar("it names nobody any more")


def _good(known: Import, fetched: Fetched, matched: Matched, now: datetime) -> Import:
    shifts: Sequence[Shift] = [_cut(one, now) for one in matched.shifts]
    if known.shifts:
        shifts = spliced(known.shifts, shifts, _whole(now))
    return replace(
        known,
        etag=fetched.etag,
        body=known.body if fetched.body is None else _text(fetched.body),
        shifts=tuple(one for one in shifts if one.end > now - KEPT),
        unmatched=matched.unmatched,
        fetched_at=now,
        tried_at=now,
        error=None,
        failures=0,
    )


def _text(body: bytes) -> str:
    """As it can be stored: PostgreSQL takes no NUL."""
    return body.decode(errors="replace").replace("\0", "")


def _cut(one: Shift, now: datetime) -> Shift:
    """An event "for ever" ends where we stop to read."""
    end = _whole(now).replace(hour=0, minute=0, second=0) + AHEAD
    return Shift(one.start, min(one.end, end), one.people)


def _failed(known: Import, why: str, now: datetime) -> Import:
    return replace(known, error=why, tried_at=now, failures=known.failures + 1)


def _whole(instant: datetime) -> datetime:
    """A calendar knows no parts of a second."""
    return instant.replace(microsecond=0)


def _plainly(error: MidwatchError) -> str:
    return str(error).rstrip(".")
