"""A schedule that hands over from alice to bob on Mondays, and what is done with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from bot.app import App
from engine.models import ORG, Page, TimerKind, Via
from engine.rota.handoff import HandoffAnswer, Handoffs
from engine.store.timers import disarm
from tests.fakes import FakeClock
from tests.scenario.harness import Pager

CONFIG = """
people:
  - {name: alice, slack: U0ALICE, timezone: Europe/Berlin, contact: {sms: "+12025550101"},
     rules: {high: [slack], low: [slack]}}
  - {name: bob, slack: U0BOB, timezone: America/New_York, rules: {high: [slack], low: [slack]}}
  - {name: carol, slack: U0CAROL, timezone: UTC, admin: true, rules: {high: [slack], low: [slack]}}
  - {name: dan, contact: {email: dan@example.com}, rules: {high: [email], low: [email]}}
schedules:
  - name: primary
    timezone: UTC
    %s
    layers:
      - {name: week, users: [alice, bob], start: "2026-01-05T09:00", rotation: {every: 1, unit: week}}
policies:
  - {name: payments, levels: [{targets: [{schedule: primary}], timeout: 5m}]}
services:
  - {name: checkout, policy: payments}
fallback: [{person: carol}]
"""


CHANNEL = 'channel: "#payments"'


MONDAY = datetime(2026, 3, 9, 9, 0, tzinfo=UTC)  # alice hands over to bob


@asynccontextmanager
async def with_channel(url: str, clock: FakeClock) -> AsyncIterator[Pager]:
    """A schedule with a channel, looked at once; at the end nothing is left that was not heard."""
    made = await begun(url, clock, CHANNEL)
    yield made
    await made.close()
    made.expect_silence()


async def begun(url: str, clock: FakeClock, channel: str = "") -> Pager:
    made = await Pager(url, clock, CONFIG % channel).start()
    await rounds(made)
    made.expect_silence()
    return made


async def rounds(pager: Pager) -> None:
    """What a sweep does each two seconds, and what that makes due."""
    await pager.app.sweeps.abreast.go()
    await only_shifts(pager)
    await pager.advance(seconds=2)  # one message a second to each


async def only_shifts(pager: Pager) -> None:
    """Without the look ahead of each morning, whose messages have tests of their own."""
    ids = list((await pager.app.roster.directory()).schedules)
    await pager.app.database.write(lambda tx: disarm(tx, ORG, [TimerKind.COVERAGE], ids))


def handing(app: App) -> Handoffs:
    return Handoffs(app.database, app.clock, app.roster, app.nudge)


async def to(pager: Pager, when: datetime) -> None:
    await pager.advance(seconds=(when - pager.clock.now()).total_seconds())


async def accept(pager: Pager, page: Page, by: str) -> HandoffAnswer:
    number = int(page.body["buttons"][0]["value"])
    answer = await handing(pager.app).accept(number, await pager.person(by, Via.SLACK_BUTTON))
    await pager.advance(seconds=2)
    return answer


async def carol_stands_in(
    pager: Pager, lasting: timedelta, start: datetime | None = None, kind: str = "replace_all"
) -> None:
    carol, start = await pager.person("carol"), start or pager.clock.now()
    assert carol.person_id is not None
    await pager.app.roster.overrides.set(
        schedule_id=None,
        person_id=carol.person_id,
        start_at=start,
        end_at=start + lasting,
        actor=carol,
        kind=kind,
    )
    await pager.app.worker.run_due()
    pager._collect().clear()  # what an override itself tells


async def taken_over(pager: Pager) -> Page:
    """The handoff of Monday, told; the reminders before it are taken as heard."""
    await to(pager, MONDAY)
    for _ in range(3):
        pager.expect_page("bob", kind="notice")
    pager.expect_page("alice", kind="notice")
    return pager.expect_message("channel", "#payments")
