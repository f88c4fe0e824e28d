"""How Slack is, for all processes: each tells what it sees, one row says what they go by.

Never calls Slack. What a change brings with it (pages that fail over, a digest, an alarm) is done from
the rows, once over all processes, and again after a crash.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from engine import metrics, outage
from engine.clock import Clock
from engine.db import Database, Tx, Writer
from engine.directory import Directory
from engine.models import ORG, DeliveryKind, IncidentView, Method, NewDelivery, Rank, TimerKind
from engine.notify.digest import digest, sort
from engine.outage import Figures, Report, Standing, State
from engine.pager.alarm import OPS_CHANNEL, raise_alarm
from engine.store import cards, deliveries, incidents, notices, rehearsals, slack_state, timers, waiting
from engine.store.timers import Arming

log = structlog.get_logger(__name__)

WRITTEN_EVERY: Final = timedelta(seconds=10)
KEPT: Final = timedelta(hours=1)  # reports of processes that are gone
TOLD_BY_DIGEST: Final = "Slack was down; the digest says what happened"


class SlackWatch:
    """`standing` is what this process knew at its last look; None: nobody has looked yet."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        directory_now: Callable[[], Awaitable[Directory]],
        nudge: Callable[[], None],
        owner: str,
    ) -> None:
        self._database = database
        self._clock = clock
        self._directory_now = directory_now
        self._nudge = nudge
        self.owner = owner
        self.standing: Standing | None = None
        self.figures = Figures()
        self._written: Report | None = None
        self._off = False  # the clock, when it was last compared with Slack's

    @property
    def down(self) -> bool:
        return self.standing is not None and self.standing.down

    async def away_for(self, view: IncidentView | None) -> str | None:
        """Why Slack counts as away for a message about this incident; None while it does not."""
        if self.standing is not None and self.standing.down:
            return f"{outage.WAITS}: {self.standing.reason}"
        keys = [] if view is None else [one.dedup_key for one in view.alerts]
        suspects = [key for key in keys if key.startswith(rehearsals.PREFIX)]
        if not suspects:
            return None
        # Why asked anew each time: the row is written before the incident, so nobody comes too early.
        async with self._database.look() as tx:
            return f"{outage.WAITS}: a rehearsal" if await rehearsals.known(tx, ORG, suspects) else None

    async def look(self, own: Report | None = None) -> Standing:
        """Tell what this process sees, learn what the others do, and do what follows."""
        now = self._clock.now()
        async with self._database.look() as tx:
            before, found = await slack_state.standing(tx, ORG), await slack_state.reports(tx, ORG)
        reports = [one for one in found if own is None or one.owner != own.owner]
        reports += [own] if own is not None else []
        after = outage.decide(before or _first(now), reports, now)
        if before is None or self._must_write(before, after, own, reports, now):
            after = await self._write(own, now)
        self._know(after, reports, now)
        await self._look_at_clock(now)
        if after.down:
            await self._fail_over(now)
        elif after.down_until is not None:
            await self._come_back(now)
        return after

    def _must_write(
        self, before: Standing, after: Standing, own: Report | None, reports: Sequence[Report], now: datetime
    ) -> bool:
        if outage.to_tell(after, reports, now) is not None:
            return True
        if _gist(before) != _gist(after):
            return True
        if own is None:
            return False
        old = self._written
        return old is None or now - old.at >= WRITTEN_EVERY or now < old.at or _seen(old) != _seen(own)

    async def _write(self, own: Report | None, now: datetime) -> Standing:
        directory = await self._directory_now()

        async def unit(tx: Tx) -> tuple[Standing, str | None]:
            await slack_state.begin(tx, ORG, _first(now))
            before = await slack_state.standing(tx, ORG, lock=True)
            assert before is not None  # noqa: S101  # begun just now
            if own is not None:
                await slack_state.report(tx, ORG, own)
                await slack_state.forget_reports(tx, ORG, now - KEPT)
            reports = await slack_state.reports(tx, ORG)
            after = outage.decide(before, reports, now)
            text = outage.to_tell(after, reports, now)
            if text is not None:
                cause = f"slack:{after.state}:{after.since.isoformat()}"
                await raise_alarm(tx, ORG, cause, text, now, phones=directory)
                after = replace(after, told=after.state.value)
            await slack_state.save(tx, ORG, after)
            return after, text

        after, told = await self._database.write(unit, rank=Writer.OUTCOME)
        self._written = own or self._written
        if told is not None:
            self._nudge()
        return after

    def _know(self, after: Standing, reports: Sequence[Report], now: datetime) -> None:
        if self.standing is None or self.standing.state is not after.state:
            log.info("slack.standing", state=after.state.value, reason=after.reason)
        unexpected = self.figures.unexpected
        self.standing, self.figures = after, outage.figures(reports, now)
        if self.figures.unexpected > unexpected:
            log.warning("slack.strange_connections", more=self.figures.unexpected)
        metrics.slack_up.set(after.state is State.UP)
        for state in State:
            metrics.slack_state.labels(state.value).set(after.state is state)
        metrics.slack_unexpected_connections.set(self.figures.unexpected)
        metrics.slack_clock_skew_seconds.set(self.figures.skew.total_seconds())
        if after.heard_at is not None:
            metrics.slack_silent_seconds.set(max(0.0, (now - after.heard_at).total_seconds()))

    async def _look_at_clock(self, now: datetime) -> None:
        """Said once when it is found: whoever sets the clock does not need it every quarter of an hour."""
        before, self._off = self._off, abs(self.figures.skew) >= outage.SKEW_ALARM
        if not self._off or before:
            return
        minutes = abs(self.figures.skew).total_seconds() / 60
        text = f"The clock here is {minutes:.0f} min off Slack's: signatures fail. Set it by NTP."
        await self._database.write(lambda tx: raise_alarm(tx, ORG, "slack:clock", text, now))
        self._nudge()

    async def _fail_over(self, now: datetime) -> None:
        """Pages that wait for their next try by Slack are judged now, and go by the next method."""
        async with self._database.look() as tx:
            found = await waiting.between_tries(tx, ORG)
        if not found:
            return

        async def unit(tx: Tx) -> int:
            held = await incidents.lock(tx, sorted({*found.values()}), skip_locked=True)
            ours = {one.id for one in held}  # the others are taken with the next look
            these = sorted(one for one, incident in found.items() if incident in ours)
            return await timers.pull(tx, ORG, TimerKind.DELIVER, these, now) if these else 0

        if await self._database.write(unit, rank=Writer.ESCALATE):
            self._nudge()

    async def _come_back(self, now: datetime) -> None:
        """Cards are shown, what still has a sense is sent, and the ops channel reads what happened."""

        async def unit(tx: Tx) -> bool:
            standing = await slack_state.standing(tx, ORG, lock=True)
            if standing is None or standing.down or standing.down_until is None:
                return False  # another process has done it, or Slack is down again
            start, end = standing.down_from or standing.down_until, standing.down_until
            text = digest(start, end, await waiting.meanwhile(tx, ORG, start, end))
            await _let_go(tx, now)
            put_off = await waiting.cards_put_off(tx, ORG, now)
            await cards.lock(tx, put_off)
            await timers.arm(tx, ORG, [Arming(TimerKind.CARD, one, now, rank=Rank.CARD) for one in put_off])
            if text is not None:
                await _post(tx, text, start, now)
            await slack_state.save(tx, ORG, replace(standing, down_from=None, down_until=None))
            return True

        if await self._database.write(unit, rank=Writer.CARD):
            log.info("slack.caught_up")
            self._nudge()


async def _let_go(tx: Tx, now: datetime) -> None:
    """What waited for Slack: the stale ends, the rest goes one after the other."""
    found = await waiting.for_slack(tx, ORG)
    about = sorted({one.incident_id for one in found if one.incident_id is not None})
    held = {one.id for one in await incidents.lock(tx, about, skip_locked=True)}
    # Whatever somebody holds meanwhile is tried at its own time, a few minutes later at most.
    free = [one for one in found if one.incident_id is None or one.incident_id in held]
    sorted_ = sort(free, now)
    await timers.disarm_unsent(tx, ORG, sorted_.stale)
    armings = [Arming(TimerKind.DELIVER, one, at) for one, at in sorted(sorted_.due.items())]
    await timers.arm(tx, ORG, armings)
    await notices.cancel(tx, sorted_.stale, TOLD_BY_DIGEST, now)


async def _post(tx: Tx, text: str, start: datetime, now: datetime) -> None:
    new = NewDelivery(
        incident_id=None,
        kind=DeliveryKind.OPS,
        method=Method.CHANNEL,
        idem_key=f"outage:{start.isoformat()}",
        due_at=now,
        address=OPS_CHANNEL,
        body={"text": text, "calm": True},
    )
    queued = await deliveries.queue(tx, ORG, [new], now)
    await timers.arm(tx, ORG, [Arming(TimerKind.DELIVER, one, at, rank=Rank.NOTICE) for one, at in queued])


def _first(now: datetime) -> Standing:
    return Standing(State.UP, now)


def _gist(standing: Standing) -> tuple[object, ...]:
    """What others must know at once."""
    return standing.state, standing.reason, standing.probe, standing.down_until


def _seen(report: Report) -> tuple[object, ...]:
    """What others must hear of at once."""
    return (
        report.failed,
        report.dead_token,
        report.listening,
        report.rebuilds,
        report.connections,
        report.echo_at,
        report.ok_at is None,
    )
