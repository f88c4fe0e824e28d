"""Keeps the timers of schedules abreast of the directory: what changed is looked at, and shown, anew.

Never looks or shows by itself. Why not armed by whoever changes something: a file, a modal, an override, a
calendar and a version that was written ahead all change who is on call, and this finds them all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Directory, NamedSchedule
from engine.models import ORG, Rank, TimerKind
from engine.nudge import Nudge
from engine.rota.coverage import next_morning
from engine.store import calendars, timers
from engine.store.timers import Arming

SETTLED: Final = timedelta(seconds=30)  # after an edit: the next one often follows


class Abreast:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        nudge: Nudge,
        directory_now: Callable[[], Awaitable[Directory]],
    ) -> None:
        self._database = database
        self._clock = clock
        self._nudge = nudge
        self._directory_now = directory_now
        self._seen: Directory | None = None

    async def go(self) -> int:
        """Arm what changed since the last round, and at the first one what has no timer; how many."""
        directory, seen = await self._directory_now(), self._seen
        if directory is seen:
            return 0
        now = self._clock.now()

        async def unit(tx: Tx) -> int:
            return await _arm(tx, seen, directory, now)

        armed = await self._database.write(unit, rank=Writer.CARD)
        self._seen = directory  # only once it is stored: a round that failed is made again
        if armed:
            self._nudge()
        return armed


async def _arm(tx: Tx, seen: Directory | None, directory: Directory, now: datetime) -> int:
    morning = await _unarmed(tx, TimerKind.COVERAGE, directory.schedules)
    fetched = await _unarmed(tx, TimerKind.CALENDAR, await calendars.followed(tx, ORG))
    armings = [_arming(TimerKind.COVERAGE, one, _first_look(directory, one, now)) for one in morning]
    armings += [_arming(TimerKind.CALENDAR, one, now) for one in fetched]
    armings += [_arming(TimerKind.SHOWN, one, now) for one in _shown_anew(seen, directory)]
    armings += [_arming(TimerKind.SHIFT, one, now) for one in _told_anew(seen, directory)]
    await timers.arm(tx, ORG, armings)
    if seen is None:
        return len(armings)
    known = sorted({*_looked_at_anew(seen, directory)} - {*morning})
    return len(armings) + await timers.pull(tx, ORG, TimerKind.COVERAGE, known, now + SETTLED)


def _arming(kind: TimerKind, subject: int, due_at: datetime) -> Arming:
    return Arming(kind, subject, due_at, rank=Rank.NOTICE)


def _first_look(directory: Directory, schedule_id: int, now: datetime) -> datetime:
    """Of a schedule that is new, or that was never looked at: soon, and each morning after that."""
    return min(now + SETTLED, next_morning(directory.schedules[schedule_id], now))


async def _unarmed(tx: Tx, kind: TimerKind, ids: Iterable[int]) -> list[int]:
    wanted = sorted(ids)
    armed = {one.subject_id for one in await timers.of_subjects(tx, ORG, [kind], wanted)}
    return [one for one in wanted if one not in armed]


def _looked_at_anew(seen: Directory, directory: Directory) -> Iterable[int]:
    """What changed; all when people or policies did, which concern every schedule."""
    if seen.people != directory.people or seen.policies != directory.policies:
        return directory.schedules
    return _changed(seen, directory)


def _changed(seen: Directory, directory: Directory) -> Mapping[int, NamedSchedule]:
    return {one: named for one, named in directory.schedules.items() if seen.schedules.get(one) != named}


def _shown_anew(seen: Directory | None, directory: Directory) -> Iterable[int]:
    """Which schedules Slack may have to show otherwise. All of them when one came or went, or is shown
    elsewhere: several may own one group or topic."""
    found: Iterable[int] = directory.schedules
    if seen is not None and seen.people == directory.people and _places(seen) == _places(directory):
        found = _changed(seen, directory)
    return {one for one in found if _is_shown(directory, one) or _is_shown(seen, one)}


def _told_anew(seen: Directory | None, directory: Directory) -> Iterable[int]:
    """Whose shifts may be others. After a start all: something may have changed while nobody worked."""
    if seen is None:
        return directory.schedules
    return [*_changed(seen, directory), *(one for one in seen.schedules if one not in directory.schedules)]


def _places(directory: Directory) -> Mapping[int, tuple[str, str | None, str | None, bool]]:
    return {
        one: (named.name, named.channel, named.user_group, named.topic)
        for one, named in directory.schedules.items()
    }


def _is_shown(directory: Directory | None, schedule_id: int) -> bool:
    named = None if directory is None else directory.schedules.get(schedule_id)
    return named is not None and bool(named.user_group or named.topic)
