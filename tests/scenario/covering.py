"""A team of five on two schedules, who ask each other for cover."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from bot.app import App
from engine.models import Page, Via
from engine.parts import Part
from engine.rota.cover import Asked, Cover, CoverAnswer
from engine.schema import cover_requests, overrides
from tests.fakes import FakeClock
from tests.scenario.harness import Pager

CONFIG = """
people:
  - {name: alice, slack: U0ALICE, timezone: Europe/Berlin, rules: {high: [slack], low: [slack]}}
  - {name: bob, slack: U0BOB, timezone: UTC, rules: {high: [slack], low: [slack]}}
  - {name: carol, slack: U0CAROL, timezone: UTC, admin: true, rules: {high: [slack], low: [slack]}}
  - {name: dan, contact: {email: dan@example.com}, rules: {high: [email], low: [email]}}
  - {name: erin, slack: U0ERIN, timezone: UTC, rules: {high: [slack], low: [slack]}}
schedules:
  - name: primary
    timezone: UTC
    channel: "#payments"
    layers:
      - name: week
        users: [alice, bob, carol, dan]
        start: "2026-01-05T09:00"
        rotation: {every: 1, unit: week}
  - name: night
    timezone: UTC
    layers:
      - {name: all, users: [bob], start: "2026-01-05T09:00", rotation: {every: 1, unit: week}}
policies:
  - {name: payments, levels: [{targets: [{schedule: primary}], timeout: 5m}]}
services:
  - {name: checkout, policy: payments}
fallback: [{person: carol}]
"""

FRIDAY = datetime(2026, 3, 6, 18, 0, tzinfo=UTC)  # in the week of alice
HOUR = timedelta(hours=1)
EVENING = Part(FRIDAY, FRIDAY + 4 * HOUR)


def covering(app: App) -> Cover:
    return Cover(app.database, app.clock, app.roster, app.nudge)


class Team:
    """The people of a pager, and what they say to each other."""

    def __init__(self, pager: Pager) -> None:
        self.pager = pager
        self.cover = covering(pager.app)

    @classmethod
    async def start(cls, url: str, clock: FakeClock) -> Team:
        return cls(await Pager(url, clock, CONFIG).start())

    async def asks(self, by: str = "alice", part: Part = EVENING, schedule: str | None = None) -> Asked:
        schedules = (await self.pager.app.roster.directory()).schedules.values()
        wanted = next((one.id for one in schedules if one.name == schedule), None)
        asked = await self.cover.ask(
            wanted, part.start, part.end, await self.pager.person(by, Via.SLACK_COMMAND)
        )
        await self.pager.advance(seconds=2)  # one message a second to each
        return asked

    async def accepts(self, by: str, part: Part | None = None, number: int = 1) -> CoverAnswer:
        answer = await self.cover.accept(number, part, await self.pager.person(by, Via.SLACK_BUTTON))
        await self.pager.advance(seconds=2)  # one message a second to each
        return answer

    async def declines(self, by: str, number: int = 1) -> CoverAnswer:
        answer = await self.cover.decline(number, await self.pager.person(by, Via.SLACK_BUTTON))
        await self.pager.advance(seconds=2)  # one message a second to each
        return answer

    async def withdraws(self, by: str = "alice", number: int = 1) -> CoverAnswer:
        answer = await self.cover.withdraw(number, await self.pager.person(by, Via.SLACK_COMMAND))
        await self.pager.advance(seconds=2)  # one message a second to each
        return answer

    def hears(self, name: str) -> Page:
        """The next direct message to this person, in the order in which they came."""
        return self.pager.expect_page(name, kind="notice")

    def channel(self) -> str:
        return self.pager.expect_message("channel", "#payments").text

    async def overrides(self) -> list[tuple[str, str, datetime, datetime]]:
        """Who covers whom from when to when."""
        people = (await self.pager.app.roster.directory()).people
        async with self.pager.app.database.snapshot() as tx:
            rows: Any = await tx.execute(sa.select(overrides).order_by(overrides.c.start_at))
            return [
                (people[row.person_id].name, people[row.covers_id].name, row.start_at, row.end_at)
                for row in rows
            ]

    async def status(self, number: int = 1) -> str:
        async with self.pager.app.database.snapshot() as tx:
            found = await tx.scalar(sa.select(cover_requests.c.status).where(cover_requests.c.id == number))
        return str(found)

    async def on_call(self, at: datetime) -> list[str]:
        (row,) = [one for one in await self.pager.app.roster.who(at) if one.schedule == "primary"]
        return [person.name for person in row.people]
