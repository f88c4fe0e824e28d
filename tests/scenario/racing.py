"""Two processes race about incident #1, from a state that is told once and put back before each race;
and what must be true whoever was first.

Never restarts what it need not: a race costs milliseconds.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
import sqlalchemy as sa

from engine import schema
from engine.db import Tx
from engine.models import (
    DeliveryKind,
    IncidentStatus,
    IncidentView,
    LaneName,
    Page,
    Severity,
    TimerKind,
    Urgency,
)
from engine.store.timers import FATE_KINDS
from tests.fakes import FakeClock
from tests.scenario.fates import broken
from tests.scenario.harness import Pager
from tests.scenario.interleave import Ended, Gated, Point, interleave
from tests.scenario.locks import unwatched
from tests.scenario.moves import CLOSED_ONLY, MOVES, OPEN_ONLY, answers, event, lane

CONFIG: Final = """
people:
  - {name: alice, slack: U0ALICE, timezone: UTC, contact: {sms: "+12025550101"},
     rules: {high: [slack, sms after 1m], low: [slack, sms after 1m]}}
  - {name: bob, timezone: UTC, contact: {sms: "+12025550102", voice: "+12025550102"},
     rules: {high: [sms, voice after 6m], low: [sms]}}
  - {name: carol, slack: U0CAROL, timezone: UTC, contact: {sms: "+12025550103"},
     rules: {high: [slack, sms after 2m], low: [slack]}}
policies:
  - name: payments
    levels: [{targets: [{person: alice}], timeout: 5m}, {targets: [{person: bob}], timeout: 5m}]
    ack_timeout: 20m
  - {name: plain, levels: [{targets: [{person: carol}], timeout: 5m}]}
services:
  - {name: checkout, policy: payments, channel: "#payments", urgency: {info: low}}
  - {name: search, policy: plain}
fallback: [{person: carol}]
"""
HAPPENED: Final = (  # everything that is not the directory, in an order in which it can be deleted
    "attempts", "cards", "deliveries", "timers", "timeline", "events", "alerts", "dedup_keys", "incidents",
    "maintenance_windows", "counters",
)  # fmt: skip
OF_AN_EPOCH: Final = frozenset(FATE_KINDS) - {TimerKind.RAISE_URGENCY}
SILENCE: Final = timedelta(hours=2)
TRIGGERED: Final = frozenset({IncidentStatus.TRIGGERED, IncidentStatus.UNANSWERED})

Told = Callable[[Pager], Awaitable[None]]


# --- states ------------------------------------------------------------------------------------------


async def fresh(pager: Pager) -> None:
    """Just fired: nobody was told yet, and no policy is stored."""
    await pager.receive(event())
    await _second(pager)
    pager.clock.move(seconds=1)


async def level_due(pager: Pager) -> None:
    """alice was told; her SMS and the next level are due."""
    await _opened(pager)
    pager.clock.move(minutes=5)


async def low_due(pager: Pager) -> None:
    """The same, of low urgency."""
    await _opened(pager, severity=Severity.INFO)
    pager.clock.move(minutes=5)


async def pass_due(pager: Pager) -> None:
    """bob was told; his call and the end of the pass are due."""
    await _opened(pager)
    await pager.advance(minutes=6)
    pager.clock.move(minutes=5)


async def exhaust_due(pager: Pager) -> None:
    """The pass is over; bob's call and the fallback are due."""
    await pass_due(pager)
    await lane(LaneName.FATE)(pager)
    pager.clock.move(minutes=5)


async def unanswered(pager: Pager) -> None:
    """Nobody answered; the second message to the fallback and its next round are due."""
    await exhaust_due(pager)
    await pager.app.worker.run_due()
    pager.clock.move(minutes=30)


async def acked(pager: Pager) -> None:
    """alice has it for too long; bob's call, who was asked to help, is due too."""
    await _opened(pager)
    await answers("add_responder", "alice", person_id=_bob)(pager)
    await answers("acknowledge")(pager)
    await pager.app.worker.run_due()
    pager.clock.move(minutes=20)


async def snoozed(pager: Pager) -> None:
    """The same, snoozed until now."""
    await _opened(pager)
    await answers("add_responder", "alice", person_id=_bob)(pager)
    await answers("snooze", until=_in_ten_minutes)(pager)
    await pager.app.worker.run_due()
    pager.clock.move(minutes=10)


async def resolved(pager: Pager) -> None:
    """The source ended it a minute ago, while the next level was due in two."""
    await _opened(pager)
    await pager.advance(minutes=3)
    await MOVES["source ends"].act(pager)
    await pager.app.worker.run_due()
    pager.clock.move(minutes=1)


STATES: Final[Mapping[str, Told]] = {
    told.__name__: told
    for told in (fresh, level_due, low_due, pass_due, exhaust_due, unanswered, acked, snoozed, resolved)
}


async def _opened(pager: Pager, severity: Severity = Severity.ERROR) -> None:
    """#1, just paged; #2 of another service, in carol's hands."""
    await pager.receive(event(severity=severity))
    await pager.app.worker.run_due()
    await _second(pager)
    await pager.app.worker.run_due()


async def _second(pager: Pager) -> None:
    await pager.receive(event(key="z", group_key="z"), service="search")
    await answers("acknowledge", "carol", 2)(pager)


async def _bob(pager: Pager) -> int | None:
    return (await pager.person("bob")).person_id


async def _in_ten_minutes(pager: Pager) -> datetime:
    return pager.clock.now() + timedelta(minutes=10)


def moves_in(state: str) -> list[str]:
    """What can race in this state; what would be refused there anyway is left out."""
    closed = state == "resolved"
    return [name for name in MOVES if name not in (OPEN_ONLY if closed else CLOSED_ONLY)]


# --- the world ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scene:
    """What had happened, and when, once a state was reached."""

    now: datetime
    rows: Mapping[str, list[dict[str, Any]]]


class Arena:
    """Two processes on one database, made anew for each race."""

    def __init__(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url = url
        self.databases = (Gated(url), Gated(url))
        made = itertools.cycle(self.databases)
        monkeypatch.setattr("bot.app.Database", lambda _url: next(made))
        self.pagers: tuple[Pager, Pager]
        self._scenes: dict[str, Scene] = {}

    async def close(self) -> None:
        for database in self.databases:
            await database.close()

    async def enter(self, state: str) -> None:
        """Two new processes, and everything as it was when the state was first reached."""
        scene = self._scenes.get(state)
        if scene is None:
            await self.databases[0].write(forget)
            self._wake(FakeClock())
            await self.pagers[0].start()
            await STATES[state](self.pagers[0])
            await self.pagers[0].app.pipeline.drain()
            async with self.databases[0].snapshot() as tx:
                scene = Scene(self.clock.now(), {name: await _rows(tx, name) for name in HAPPENED})
            self._scenes[state] = scene
        await self.databases[0].write(lambda tx: put_back(tx, scene.rows))
        self._wake(FakeClock(scene.now))

    def _wake(self, clock: FakeClock) -> None:
        self.pagers = (Pager(self.url, clock, CONFIG), Pager(self.url, clock, CONFIG))

    @property
    def clock(self) -> FakeClock:
        return self.pagers[0].clock

    async def race(self, first: str, second: str, point: Point = Point.COMMIT) -> Ended:
        """The first one up to the point, the second as far as it gets, then both."""
        one, other = MOVES[first], MOVES[second]
        if one.before:
            await one.before(self.pagers[0])
        if other.before:
            await other.before(self.pagers[1])
        ended = await interleave(
            self.databases,
            lambda: one.act(self.pagers[0]),
            lambda: other.act(self.pagers[1]),
            point,
            one.rank,
        )
        for pager in self.pagers:
            await pager.app.pipeline.drain()
            for transport in pager.transports.values():
                transport.always = None
        return ended

    async def restore_directory(self) -> None:
        """After somebody has edited it."""
        await self.pagers[0].configure(CONFIG)

    # --- what came of it ---------------------------------------------------------------------------------

    def sent(self) -> list[Page]:
        """By both processes, oldest first in each."""
        return [page for pager in self.pagers for page in pager.pages()]

    def _paged(self, before: set[int]) -> list[Page]:
        return [page for page in self.sent() if page.kind is DeliveryKind.PAGE and page.id not in before]

    async def incidents(self) -> list[IncidentView]:
        return list(await self.pagers[0].app.views.list())

    async def wrong(self) -> list[str]:
        """What should not be so, now and while everybody is silent from now on."""
        before = {page.id for page in self.sent()}
        found = await self._books() + await self._answered_is_left_alone(before)
        self.clock.move(seconds=11)  # older than what the audit takes for under way
        await self.pagers[0].app.worker.run_due()
        found += [f"audit: {one}" for one in await broken(self.pagers[0])]
        found += await self._somebody_hears(before)
        twice = [one for one, times in Counter(page.id for page in self.sent()).items() if times > 1]
        return found + await self._books() + [f"delivery {one} was sent twice" for one in twice]

    async def _books(self) -> list[str]:
        """Alerts are counted right, and what moves a fate is of its epoch."""
        async with self.databases[0].snapshot() as tx:
            alerts, timers = await _rows(tx, "alerts"), await _rows(tx, "timers")
            incidents = await _rows(tx, "incidents")
        found = []
        for one in incidents:
            own = [alert for alert in alerts if alert["incident_id"] == one["id"]]
            firing = sum(alert["status"] == "firing" for alert in own)
            if (one["alert_count"], one["open_alerts"]) != (len(own), firing):
                found.append(f"#{one['number']} miscounts its {len(own)} alerts, {firing} firing")
            armed = [t for t in timers if t["subject_id"] == one["id"] and t["kind"] in OF_AN_EPOCH]
            if any(timer["epoch"] != one["epoch"] for timer in armed):
                found.append(f"#{one['number']} has a timer of another epoch")
            if armed and one["status"] == "resolved":
                found.append(f"#{one['number']} is resolved and has a timer")
        return found

    async def _answered_is_left_alone(self, before: set[int]) -> list[str]:
        """No page begins after an ack has committed."""
        answered = {one.id: one.epoch for one in await self.incidents() if one.status not in TRIGGERED}
        await self.pagers[0].app.worker.run_due()
        still = {one.id for one in await self.incidents() if answered.get(one.id) == one.epoch}
        return [
            f"{page.person} was paged for what had been answered"
            for page in self._paged(before)
            if page.incident is not None and page.incident.id in still
        ]

    async def _somebody_hears(self, before: set[int]) -> list[str]:
        """Whoever should be paged is, within two hours, while nobody answers."""
        end = self.clock.now() + SILENCE
        while waiting := await self._unheard(before):
            due = await self.pagers[0].app.next_due()
            if due is None or due > end:
                return [f"nobody hears of #{number}" for number in waiting]
            self.clock.move_to(max(due, self.clock.now() + timedelta(milliseconds=200)))
            await self.pagers[0].app.worker.run_due()
        return []

    async def _unheard(self, before: set[int]) -> list[int]:
        heard = {page.incident.id for page in self._paged(before) if page.incident is not None}
        return [one.number for one in await self.incidents() if one.id not in heard and _must_be_heard(one)]


def _must_be_heard(one: IncidentView) -> bool:
    """Low urgency ends with a line in the channel; what is answered or over waits for nobody."""
    if one.status is IncidentStatus.UNANSWERED:
        return one.urgency is Urgency.HIGH
    return one.status is IncidentStatus.TRIGGERED and one.urgency is not Urgency.NONE


async def forget(tx: Tx) -> None:
    unwatched(tx)
    for name in HAPPENED:
        if name != "counters":
            await tx.execute(sa.delete(schema.metadata.tables[name]))
    await tx.execute(sa.delete(schema.counters).where(schema.counters.c.name == "incident"))


async def put_back(tx: Tx, rows: Mapping[str, list[dict[str, Any]]]) -> None:
    unwatched(tx)
    for name in HAPPENED:
        await tx.execute(sa.delete(schema.metadata.tables[name]))
    for name in reversed(HAPPENED):
        if rows[name]:
            await tx.execute(sa.insert(schema.metadata.tables[name]), rows[name])


async def _rows(tx: Tx, name: str) -> list[dict[str, Any]]:
    found = await tx.execute(sa.select(schema.metadata.tables[name]))
    return [dict(row._mapping) for row in found]
