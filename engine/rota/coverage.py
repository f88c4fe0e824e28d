"""The look ahead: each morning, and shortly after an edit, what is wrong with the coming two weeks.

Never tells anything twice: a finding is told when it is found, and again only if it was gone meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, time, timedelta
from typing import Final

import structlog

from engine import coverage
from engine.coverage import Finding, Membership
from engine.db import Database, Tx, Writer
from engine.directory import Directory, NamedSchedule
from engine.models import ORG, NewDelivery, Timer
from engine.nudge import Nudge
from engine.pager.alarm import OPS_CHANNEL
from engine.rota import addressed, notice
from engine.rota.roster import Roster
from engine.schedule.walltime import to_instant, to_wall
from engine.store import calendars, findings, shown

log = structlog.get_logger(__name__)

MORNING: Final = time(9)
SHOWN: Final = 20  # of the new findings of one morning
AT_ONCE: Final = 2

AskSlack = Callable[[Directory, Sequence[int]], Awaitable[Membership]]


async def nobody_asked(_directory: Directory, people: Sequence[int]) -> Membership:
    """Without Slack nobody is known to have left it."""
    return Membership(unknown=frozenset(people))


class Coverage:
    def __init__(
        self, database: Database, nudge: Nudge, roster: Roster, ask_slack: AskSlack = nobody_asked
    ) -> None:
        self._database = database
        self._nudge = nudge
        self._roster = roster
        self._ask_slack = ask_slack
        # Why so few: in the same threads the names of hosts are looked up, and a page waits for that.
        self._looking = asyncio.Semaphore(AT_ONCE)

    async def look(self, timer: Timer, now: datetime) -> datetime | None:
        """The errand of a `coverage` timer: look at one schedule, and again the next morning."""
        directory = await self._roster.directory()
        named = directory.schedules.get(timer.subject_id)
        if named is None:
            return None
        membership = await self._ask_slack(directory, coverage.coming_people(named, now))
        async with self._database.snapshot() as tx:
            followed = (await calendars.read_imports(tx, ORG)).get(named.id)
        calendar = None
        if followed is not None and followed.url:
            calendar = coverage.Calendar(
                followed.failures, followed.error, followed.fetched_at, followed.unmatched
            )
        # Why in a thread: at nine all schedules of a zone are looked at, and pages must not wait for that.
        async with self._looking:
            found = await asyncio.to_thread(
                coverage.look_ahead, directory, named, now, membership=membership, calendar=calendar
            )

        async def unit(tx: Tx) -> int:
            return await _keep(tx, named, found, membership, now)

        if told := await self._database.write(unit, rank=Writer.CARD):
            self._nudge()
            log.info("coverage.found", schedule=named.name, new=told, all=len(found))
        return next_morning(named, now)


async def standing(database: Database) -> list[tuple[str, str]]:
    """The name of a schedule and what is wrong with it: found ahead, or with how Slack shows it."""
    async with database.snapshot() as tx:
        found = await findings.read_findings(tx, ORG)
        troubles = await shown.troubles(tx, ORG)
    return [*((one.schedule, one.text) for one in found), *troubles]


def next_morning(named: NamedSchedule, now: datetime) -> datetime:
    """The next 09:00 of the schedule's own zone."""
    zone = named.schedule.zone
    today = to_wall(now, zone).date()
    mornings = (to_instant(datetime.combine(today + timedelta(days=n), MORNING), zone) for n in range(3))
    return next(morning for morning in mornings if morning > now)


async def _keep(
    tx: Tx, named: NamedSchedule, found: Sequence[Finding], membership: Membership, now: datetime
) -> int:
    """Store what is found, forget what is not any more, and tell what is new; how many are new."""
    known = {*await findings.known_keys(tx, ORG, named.id)}
    keys = {finding.key for finding in found}
    gone = {key for key in known - keys if coverage.may_be_gone(key, membership.unknown)}
    new = [finding for finding in found if finding.key not in known]
    await findings.forget(tx, ORG, named.id, gone)
    await findings.reword(tx, ORG, named.id, [finding for finding in found if finding.key in known])
    await findings.add(tx, ORG, named.id, new, now)
    if new:
        key = f"coverage:{named.id}:{now.isoformat()}"
        await notice.tell(tx, ORG, [to_whom(named, key, _text(named, new), now)], now)
    return len(new)


def to_whom(named: NamedSchedule, key: str, text: str, now: datetime) -> NewDelivery:
    """To the schedule's channel, else to whoever runs Midwatch."""
    return addressed.to_channel(named.channel or OPS_CHANNEL, key, {"text": text}, now)


def _text(named: NamedSchedule, new: Sequence[Finding]) -> str:
    lines = [f"🔭 {named.name}, the next {coverage.AHEAD.days} days ({named.schedule.timezone}):"]
    lines += [f"• {finding.text}" for finding in new[:SHOWN]]
    if len(new) > SHOWN:
        lines.append(f"and {len(new) - SHOWN} more: `/oncall status` shows all.")
    return "\n".join(lines)
