"""Shows in Slack who is on call, by user group and topic: the work of `shown` timers.

Never decides who is on call. Whatever keeps it from showing is told once, to the schedule's channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from bot.slack.client import SlackClient
from bot.slack.errors import Kind, trouble_of
from bot.slack.rota.groups import Groups, GroupTrouble, bare, members, same_group
from bot.slack.rota.topics import Topics, TopicTrouble, parts, same_topic
from engine.clock import Clock
from engine.coverage import Membership
from engine.db import Database, Tx, Writer
from engine.directory import Directory, NamedSchedule
from engine.models import ORG, Rank, Timer, TimerKind
from engine.rota import notice
from engine.rota.coverage import to_whom
from engine.rota.roster import Roster
from engine.schedule import next_change
from engine.store import shown, timers
from engine.store.shown import Shown, What
from engine.store.timers import Arming

log = structlog.get_logger(__name__)

REPAIR: Final = timedelta(minutes=5)  # so long at most stands what somebody changed by hand
AGAIN: Final = timedelta(minutes=1)  # after Slack did not answer
ASKED_FOR: Final = timedelta(hours=1)
KEPT_MOST: Final = 5_000
SOON: Final = timedelta(seconds=1)
ILL: Final = frozenset(
    {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "timeout", "unknown"}
)
OVER: Final = frozenset({Kind.THROTTLED, Kind.TRANSIENT, Kind.DOWN})  # by itself, sooner or later


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of one try. `again` only where Slack said when, or did not answer."""

    value: str | None = None
    trouble: str | None = None
    empty: bool = False  # nobody to show, so that it was left as it is
    again: datetime | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """Which schedules were last written into the topic of which channel."""

    channel: str = ""
    names: frozenset[str] = frozenset()

    @classmethod
    def read(cls, text: str | None) -> Written:
        channel, *names = (text or "").split("\n")
        return cls(channel, frozenset(names))

    @property
    def text(self) -> str:
        return "\n".join([self.channel, *sorted(self.names)])


class Showing:
    def __init__(self, client: SlackClient, database: Database, clock: Clock, roster: Roster) -> None:
        self._client = client
        self._groups = Groups(client)
        self._topics = Topics(client)
        self._database = database
        self._clock = clock
        self._roster = roster
        self._left: dict[str, tuple[datetime, bool]] = {}  # by Slack id: when it was asked, and the answer

    async def show(self, timer: Timer, now: datetime) -> datetime | None:
        """Show what is so now; due again at the next change, and in five minutes to see that it stands."""
        directory = await self._roster.directory()
        named = directory.schedules.get(timer.subject_id)
        due = [await self._take_out(directory, timer.subject_id, now)]
        if named is not None and named.user_group:
            due.append(await self._own(directory, named, What.USER_GROUP, now))
        if named is not None and named.topic:
            due.append(await self._own(directory, named, What.TOPIC, now))
        return min((at for at in due if at is not None), default=None)

    async def _own(
        self, directory: Directory, named: NamedSchedule, what: What, now: datetime
    ) -> datetime | None:
        """The first of those that share a group or a topic works for all; the others tell it to."""
        if what is What.USER_GROUP:
            called = await self._groups.names(named.user_group or "", now)
            shared = same_group(directory, called)
        else:
            shared = same_topic(directory, named)
        if shared[0].id != named.id:
            armed = [Arming(TimerKind.SHOWN, shared[0].id, now, rank=Rank.NOTICE)]
            await self._database.write(lambda tx: timers.arm(tx, ORG, armed), rank=Writer.CARD)
            return None
        seen = await (self._group if what is What.USER_GROUP else self._topic)(directory, shared, now)
        if seen.again is not None:
            return max(seen.again, now + SOON)
        await self._keep(named, what, seen, now)
        changes = (next_change(one.schedule, now) for one in shared)
        return min([now + REPAIR, *(change for change in changes if change is not None)])

    async def _group(self, directory: Directory, shared: Sequence[NamedSchedule], now: datetime) -> Seen:
        group = shared[0].user_group or ""
        wanted = members(directory, shared, now)
        handle = f"@{bare(group)}"
        if not wanted.users:
            who = f"{', '.join(wanted.unlinked)} cannot be in it" if wanted.unlinked else "nobody is on call"
            return Seen(None, f"{handle} was left as it is: {who}.", empty=True)
        try:
            missing = await self._groups.show(group, wanted, now)
        except GroupTrouble as trouble:
            return Seen(None, f"{handle} does not show who is on call: {trouble}.")
        except Exception as error:
            return self._unshown(error, handle, now)
        value = ",".join(wanted.users)
        if missing:
            return Seen(value, f"{handle} misses {', '.join(missing)}: not linked to a full member of Slack.")
        return Seen(value)

    async def _topic(self, directory: Directory, shared: Sequence[NamedSchedule], now: datetime) -> Seen:
        channel = shared[0].channel
        if channel is None:
            return Seen(None, "The topic cannot show who is on call: the schedule has no channel.")
        wanted = parts(directory, shared, now)
        written = await self._written(shared[0].id)
        try:
            await self._topics.show(channel, wanted, over=written.names - wanted.keys())
        except TopicTrouble as trouble:
            return Seen(None, f"The topic of {channel} does not show who is on call: {trouble}.")
        except Exception as error:
            return self._unshown(error, f"The topic of {channel}", now)
        return Seen(Written(channel, frozenset(wanted)).text)

    def _unshown(self, error: Exception, what: str, now: datetime) -> Seen:
        """Slack was not there, or said something nobody here knows."""
        trouble = trouble_of(error)
        log.warning("slack.not_shown", code=trouble.code, kind=trouble.kind.value)
        if trouble.kind in OVER and (trouble.kind is not Kind.TRANSIENT or _passes(trouble.code)):
            return Seen(again=now + max(trouble.retry_after, AGAIN))
        return Seen(None, f"{what} does not show who is on call: Slack says {trouble.code}.")

    async def _written(self, schedule_id: int) -> Written:
        async with self._database.snapshot() as tx:
            return Written.read((await shown.read_shown(tx, ORG, schedule_id, What.TOPIC)).value)

    async def _take_out(self, directory: Directory, schedule_id: int, now: datetime) -> datetime | None:
        """A schedule that is gone, or shown elsewhere or nowhere by now, leaves nobody's name behind."""
        written, named = await self._written(schedule_id), directory.schedules.get(schedule_id)
        here = named is not None and named.topic and named.channel == written.channel
        if not written.channel or here:
            return None
        others = [one for one in directory.schedules.values() if one.topic and one.channel == written.channel]
        wanted = parts(directory, others, now)
        try:
            await self._topics.show(written.channel, wanted, over=written.names - wanted.keys())
        except TopicTrouble:
            log.info("slack.topic_left", schedule=schedule_id)
        except Exception as error:
            if trouble_of(error).kind in OVER:
                return now + AGAIN
        await self._database.write(
            lambda tx: shown.save_shown(tx, ORG, schedule_id, What.TOPIC, Shown(), now), rank=Writer.CARD
        )
        return None

    async def _keep(self, named: NamedSchedule, what: What, seen: Seen, now: datetime) -> None:
        """Remember it, and tell a trouble that is new. An empty shift is told once a week: it may come
        every night."""

        async def unit(tx: Tx) -> None:
            before = await shown.read_shown(tx, ORG, named.id, what)
            after = Shown(seen.value if seen.value is not None else before.value, seen.trouble)
            if seen.trouble is not None and seen.trouble != before.trouble:
                year, week, _ = now.isocalendar()
                once = f"{year}-{week}" if seen.empty else now.isoformat()
                key = f"shown:{named.id}:{what}:{once}"
                text = f"⚠️ {named.name}: {seen.trouble}"
                await notice.tell(tx, ORG, [to_whom(named, key, text, now)], now)
            if after != before:
                await shown.save_shown(tx, ORG, named.id, what, after, now)

        await self._database.write(unit, rank=Writer.CARD)

    async def who_left(self, directory: Directory, people: Sequence[int]) -> Membership:
        """Who of these was deactivated in Slack; whoever Slack says nothing of is unknown."""
        left, unknown = set[int](), set[int]()
        for one in people:
            person = directory.people.get(one)
            if person is None or person.slack_user_id is None:
                continue
            # Why not asked on: Slack did not answer for the last one, and will not for a hundred more.
            gone = None if unknown else await self._has_left(person.slack_user_id)
            if gone is None:
                unknown.add(one)
            elif gone:
                left.add(one)
        return Membership(frozenset(left), frozenset(unknown))

    async def _has_left(self, user_id: str) -> bool | None:
        """None: Slack does not say. Asked once an hour: many schedules have the same people."""
        now = self._clock.now()
        asked_at, gone = self._left.get(user_id, (now - ASKED_FOR, False))
        if timedelta() <= now - asked_at < ASKED_FOR:
            return gone
        try:
            gone = bool((await self._client.user(user_id)).get("deleted"))
        except Exception as error:
            if trouble_of(error).code not in {"user_not_found", "user_not_visible"}:
                return None
            gone = True
        if len(self._left) >= KEPT_MOST:
            self._left.clear()
        self._left[user_id] = (now, gone)
        return gone


def _passes(code: str) -> bool:
    """Slack is ill or was not reached. Its other words are lower case too, and stand for something that
    stays as it is until a person changes it."""
    return code in ILL or code.startswith("http_") or not code.islower()
