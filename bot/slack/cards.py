"""Makes every card show its incident: the handler of `card` timers.

Always through the timer, never from a click itself, so an older state cannot overwrite a newer
one. Never touches Slack inside a transaction, and never drops a timer: what cannot be shown now is
due later, and what cannot be shown at all is said once in the ops channel. A card that an earlier try
may have posted is looked for first: two cards of one incident would soon disagree.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from bot.slack import blocks, notices
from bot.slack.client import Placed, SlackClient, card_metadata
from bot.slack.earlier import Earlier
from bot.slack.errors import Kind, Trouble, trouble_of
from bot.slack.health import SlackHealth
from bot.slack.pacing import CardPace
from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.models import ORG, Card, IncidentStatus, IncidentView, Rank, Timer, TimerKind
from engine.pager.alarm import channel_cause, raise_alarm
from engine.pager.views import Views
from engine.store import cards as store
from engine.store import timers
from engine.store.timers import Arming

log = structlog.get_logger(__name__)

AT_ONCE: Final = 8
AGAIN_FIRST: Final = timedelta(seconds=10)
AGAIN_LAST: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Job:
    timer: Timer
    card: Card
    view: IncidentView


@dataclass(frozen=True, slots=True)
class Shown:
    """It stands there: `at` is where, when that is new."""

    at: Placed | None = None


@dataclass(frozen=True, slots=True)
class Later:
    """Not now. `lost`: the message is gone, and the next try posts anew."""

    due_at: datetime
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Broken:
    code: str


Result = Shown | Later | Broken


class Cards:
    def __init__(
        self,
        client: SlackClient,
        health: SlackHealth,
        database: Database,
        views: Views,
        clock: Clock,
        nudge: Callable[[], None],
    ) -> None:
        self._client = client
        self._health = health
        self._database = database
        self._views = views
        self._clock = clock
        self._nudge = nudge
        self._pace = CardPace()
        self._earlier = Earlier(client)

    async def handle(self, claimed: Sequence[Timer]) -> None:
        """Show the cards of these claimed timers, newest open incidents first."""
        jobs, without = await self._read(claimed)
        jobs.sort(key=lambda job: (job.view.status is IncidentStatus.RESOLVED, -job.view.id, job.card.id))
        if without:
            await self._forget(without)
        for start in range(0, len(jobs), AT_ONCE):
            batch = jobs[start : start + AT_ONCE]
            results = await asyncio.gather(*(self._show(job) for job in batch))
            await self._record(list(zip(batch, results, strict=True)))

    async def show_all_open(self) -> None:
        """Make the card of every open incident due: after an outage Slack may show old states."""
        async with self._database.snapshot() as tx:
            found = [card_id for card_id, _ in await store.of_open_incidents(tx, ORG)]
        await self._arm(found)
        log.info("cards.all_due", cards=len(found))

    async def show(self, incident_id: int) -> None:
        """Make the cards of one incident due: somebody saw an old state."""
        async with self._database.snapshot() as tx:
            found = await store.of_incidents(tx, ORG, [incident_id])
        await self._arm([card.id for card in found])

    async def _arm(self, card_ids: Sequence[int]) -> None:
        now = self._clock.now()
        armings = [Arming(TimerKind.CARD, card_id, now, rank=Rank.CARD) for card_id in card_ids]
        if armings:
            await self._database.write(lambda tx: timers.arm(tx, ORG, armings), rank=Writer.CARD)
            self._nudge()

    async def _read(self, claimed: Sequence[Timer]) -> tuple[list[Job], list[Timer]]:
        """Timers with their card and incident; and those whose card is no more."""
        async with self._database.snapshot() as tx:
            found = {card.id: card for card in await store.read(tx, [t.subject_id for t in claimed])}
        ids = sorted({card.incident_id for card in found.values()})
        views = {view.id: view for view in await self._views.incidents(ids)}
        jobs, without = [], []
        for timer in claimed:
            known = found.get(timer.subject_id)
            view = views.get(known.incident_id) if known else None
            if known and view:
                jobs.append(Job(timer, known, view))
            else:
                without.append(timer)
        return jobs, without

    async def _forget(self, without: Sequence[Timer]) -> None:
        async def unit(tx: Tx) -> None:
            for timer in sorted(without, key=lambda one: one.subject_id):
                await timers.finish(tx, timer)

        await self._database.write(unit, rank=Writer.CARD)

    async def _show(self, job: Job) -> Result:
        now = self._clock.now()
        try:
            if job.card.channel_id and job.card.ts:
                return await self._update(job, Placed(job.card.channel_id, job.card.ts), now)
            return await self._post(job, now)
        except Exception as error:  # whatever Slack does, the card is tried again or said to be broken
            trouble = trouble_of(error)
            self._health.failed(trouble)
            return self._after(job, trouble, now)

    async def _update(self, job: Job, at: Placed, now: datetime) -> Result:
        ready = self._pace.update(now)
        if ready > now:
            return Later(ready)
        try:
            await self._client.update(at, blocks.card(job.view), plain=blocks.plain(job.view))
        except Exception as error:
            trouble = trouble_of(error)
            if trouble.kind is Kind.THROTTLED:
                self._pace.throttled("update", now + trouble.retry_after)
            if trouble.kind is not Kind.GONE:
                raise
            log.info("card.lost", card=job.card.id, incident=job.view.number, code=trouble.code)
            return await self._replace(job, now)
        self._health.works()
        return Shown()

    async def _replace(self, job: Job, now: datetime) -> Result:
        """The message was deleted: an open incident gets a new one, a closed one needs none."""
        if job.view.status is IncidentStatus.RESOLVED:
            return Shown()
        result = await self._post(job, now)
        return Later(result.due_at, lost=True) if isinstance(result, Later) else result

    async def _post(self, job: Job, now: datetime) -> Result:
        ready = self._pace.post(job.card.channel, job.card.id, now)
        may_stand = self._earlier.may_stand(job.timer)
        if ready > now:
            if not may_stand:
                self._earlier.put_off(job.timer)
            return Later(ready)
        channel = job.card.channel
        if channel[:1] in {"U", "W"}:
            channel = await self._client.direct(channel)
        found = await self._earlier.find(channel, job.card) if may_stand else None
        if found is not None:
            return await self._adopt(job, found, now)
        try:
            placed = await self._client.post(
                channel,
                blocks.card(job.view),
                plain=blocks.plain(job.view),
                metadata=card_metadata(job.card.id),
            )
        except Exception as error:
            trouble = trouble_of(error)
            if trouble.kind is Kind.THROTTLED:
                self._pace.throttled("post", now + trouble.retry_after, job.card.channel)
                self._earlier.put_off(job.timer)
            raise
        self._health.works()
        return Shown(placed)

    async def _adopt(self, job: Job, at: Placed, now: datetime) -> Result:
        """An earlier try posted it and could not write down where: from now on it is this message."""
        log.info("card.adopted", card=job.card.id, incident=job.view.number)
        card = replace(job.card, channel_id=at.channel_id, ts=at.ts)
        result = await self._update(replace(job, card=card), at, now)
        return Shown(at) if result == Shown() else result

    def _after(self, job: Job, trouble: Trouble, now: datetime) -> Result:
        """What becomes of a card whose call failed."""
        log.warning("card.not_shown", card=job.card.id, incident=job.view.number, code=trouble.code)
        match trouble.kind:
            case Kind.THROTTLED:
                return Later(now + trouble.retry_after)
            case Kind.DEAD | Kind.SCOPE | Kind.FORMAT:
                return Broken(trouble.code)
            case _:
                delay: timedelta = min(AGAIN_FIRST * 2 ** min(job.timer.attempt - 1, 10), AGAIN_LAST)
                return Later(now + delay)

    async def _record(self, done: Sequence[tuple[Job, Result]]) -> None:
        now = self._clock.now()

        async def unit(tx: Tx) -> bool:
            armed = False
            # Why first, and in this order: whoever sends a page writes its card and then arms the card's
            # timer, many at once.
            await store.lock(tx, [job.card.id for job, _ in done])
            for job, result in sorted(done, key=lambda one: one[0].card.id):
                armed |= await self._write(tx, job, result, now)
            return armed

        if await self._database.write(unit, rank=Writer.CARD):
            self._nudge()

    async def _write(self, tx: Tx, job: Job, result: Result, now: datetime) -> bool:
        """Record one result, fenced by the attempt; True if something will be due."""
        if isinstance(result, Later):
            if await timers.postpone(tx, job.timer, result.due_at) and result.lost:
                await store.lost(tx, job.card.id)
            return True
        if not await timers.finish(tx, job.timer):
            log.info("card.lease_lost", card=job.card.id)
            return False
        if isinstance(result, Broken):
            if await store.broken(tx, job.card.id, result.code):
                channel = job.card.channel
                text = notices.broken_channel(channel, result.code, job.view)
                cause = channel_cause(channel, f"Slack: {result.code}")
                await raise_alarm(tx, ORG, cause, text, now)
            return True
        if result.at is not None:
            await store.placed(tx, job.card.id, result.at.channel_id, result.at.ts, now)
        else:
            await store.shown(tx, job.card.id, now)
        return False
