"""Links to calendars, of a person's shifts or of a schedule's: made, revoked, and what they open.

Never shows a link twice: it is handed out when it is made, and stored as a hash. Never says why a link
opens nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine.calendar import Entry, entries_of_person, entries_of_schedule, whole_shifts, write_calendar
from engine.calendar.feed import Version
from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Directory, NamedSchedule
from engine.errors import BadInput, NotFound
from engine.models import ORG
from engine.rota.roster import Roster
from engine.schedule import Schedule
from engine.store import calendars as store
from engine.store.calendars import Feed
from engine.store.history import read_history
from engine.vault import hash_key, new_key

log = structlog.get_logger(__name__)

PREFIX: Final = "mwc"
BACK: Final = timedelta(days=31)
AHEAD: Final = timedelta(days=366)
KEPT_MOST: Final = 256


@dataclass(frozen=True, slots=True)
class Content:
    """What a link opens. `etag` is the same as long as the bytes are."""

    name: str
    body: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose shifts: exactly one of them."""

    person_id: int | None = None
    schedule_id: int | None = None


class Calendars:
    """`public_url` is what links begin with: where calendar programs reach this Midwatch."""

    def __init__(self, database: Database, clock: Clock, roster: Roster, public_url: str | None) -> None:
        self._database = database
        self._clock = clock
        self._roster = roster
        self._public_url = public_url
        self._kept: dict[tuple[int, int, datetime], Content] = {}

    # --- links

    async def existing(self, subject: Subject, made_by: int | None) -> Feed | None:
        """The link that this person has to it already."""
        async with self._database.snapshot() as tx:
            return _of(await store.open_feeds(tx, ORG), subject, made_by)

    async def make(self, subject: Subject, made_by: int | None, *, beside: bool = False) -> str:
        """A new link; the one that this person had to the same shifts opens nothing any more, unless the
        new one is to stand `beside` it."""
        if self._public_url is None:
            raise BadInput(
                "A calendar program must be able to reach Midwatch: set MIDWATCH_PUBLIC_URL, then ask again."
            )
        token, now = new_key(PREFIX), self._clock.now()

        async def unit(tx: Tx) -> None:
            old = None if beside else _of(await store.open_feeds(tx, ORG), subject, made_by)
            await store.revoke_feeds(tx, ORG, [old.id] if old else [], now)
            new = Feed(0, subject.person_id, subject.schedule_id, made_by, now)
            await store.insert_feed(tx, ORG, hash_key(token), new)

        await self._database.write(unit, rank=Writer.RESPOND)
        log.info("calendar.linked", person=subject.person_id, schedule=subject.schedule_id)
        return f"{self._public_url}/calendar/{token}.ics"

    async def revoke(self, subject: Subject, made_by: int | None) -> bool:
        """False: this person had none."""
        old = await self.existing(subject, made_by)
        return old is not None and await self.revoke_by_id(old.id)

    async def revoke_by_id(self, feed_id: int) -> bool:
        now = self._clock.now()
        done = await self._database.write(
            lambda tx: store.revoke_feeds(tx, ORG, [feed_id], now), rank=Writer.RESPOND
        )
        return done == 1

    async def links(self) -> Sequence[Feed]:
        async with self._database.snapshot() as tx:
            return await store.open_feeds(tx, ORG)

    # --- what they open

    async def open(self, token: str) -> Content:
        """NotFound alike for a link that never was and for one that opens nothing any more."""
        async with self._database.look() as tx:
            feed = await store.feed_by_hash(tx, ORG, hash_key(token))
        if feed is None:
            raise NotFound("There is no calendar at this address.")
        directory = await self._roster.directory()
        a, b = window(self._clock.now())
        key = (feed.id, directory.rev, a)
        if key not in self._kept:
            content = await self._content(feed, directory, a, b)
            if len(self._kept) >= KEPT_MOST:
                self._kept.clear()
            self._kept[key] = content
        return self._kept[key]

    async def _content(self, feed: Feed, directory: Directory, a: datetime, b: datetime) -> Content:
        meant = _schedules(feed, directory)
        ids = [named.id for named in meant]
        async with self._database.snapshot() as tx:
            versions = await _versions(tx, a, b)
            changed = await store.changed_at(tx, ORG, ids)
        names = {str(person.id): person.name for person in directory.people.values()}

        def written() -> Content:
            entries = [
                entry
                for named in meant
                for entry in _entries(feed, named, versions.get(named.id, ()), names, a, b)
            ]
            title = _title(feed, directory)
            entries.sort(key=lambda entry: (entry.start, entry.uid))
            body = write_calendar(title, entries, max(a, changed or a))
            return Content(title, body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')

        # Why a thread: a year of many schedules takes longer than a page may wait for the loop.
        return await asyncio.to_thread(written)


def window(now: datetime) -> tuple[datetime, datetime]:
    """A month back and a year ahead, by whole days: between two midnights nothing changes by itself."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return today - BACK, today + AHEAD


def _of(feeds: Sequence[Feed], subject: Subject, made_by: int | None) -> Feed | None:
    mine = (
        each
        for each in feeds
        if (each.person_id, each.schedule_id, each.made_by)
        == (subject.person_id, subject.schedule_id, made_by)
    )
    return next(mine, None)


def _schedules(feed: Feed, directory: Directory) -> list[NamedSchedule]:
    if feed.schedule_id is not None:
        found = directory.schedules.get(feed.schedule_id)
        return [found] if found is not None else []
    return list(directory.schedules.values())


def _title(feed: Feed, directory: Directory) -> str:
    if feed.schedule_id is not None:
        named = directory.schedules.get(feed.schedule_id)
        return f"On call: {named.name}" if named else "On call"
    person = directory.people.get(feed.person_id or 0)
    return f"On call: {person.name}" if person else "On call"


def _entries(
    feed: Feed,
    named: NamedSchedule,
    versions: Sequence[Version],
    names: dict[str, str],
    a: datetime,
    b: datetime,
) -> list[Entry]:
    if feed.schedule_id is not None:
        return entries_of_schedule(named.id, named.name, whole_shifts(versions, a, b), names)
    person = str(feed.person_id)
    if not any(_mentions(schedule, person) for _, schedule in versions):
        return []
    return entries_of_person(person, named.id, named.name, whole_shifts(versions, a, b), names)


def _mentions(schedule: Schedule, person: str) -> bool:
    """May this person ever be on call by it? Why asked: a year of a schedule is not free."""
    return (
        schedule.fallback == person
        or any(person in entry for layer in schedule.layers for entry in layer.users)
        or any(override.user == person for override in schedule.overrides)
    )


async def _versions(tx: Tx, a: datetime, b: datetime) -> dict[int, list[Version]]:
    """Which schedule was in force since when, with what was overridden then. Why from a year before: the
    first shift begins where it begins."""
    history = await read_history(tx, ORG, a - AHEAD, b)
    return {one: [(piece.start, piece.schedule) for piece in pieces] for one, pieces in history.items()}
