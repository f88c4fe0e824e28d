"""A whole Midwatch in the test's hand: alerts go in, time passes, phones ring.

`advance` goes from one due timer to the next, as time would have passed; `outage` jumps at once,
as after a restart. `expect_*` consume what was sent; what nobody expected fails the test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import SecretStr

from bot.app import App, build
from bot.settings import Settings
from engine.config.parse import parse_config
from engine.models import (
    ORG,
    Action,
    Actor,
    Body,
    Event,
    GroupResolve,
    IncidentView,
    Method,
    Page,
    Receipt,
    Severity,
    Via,
)
from engine.pager.respond import Answer
from tests.fakes import FakeClock, FakeTransport, fake_transports

CONFIG = """
people:
  - {name: alice, slack: U0ALICE, timezone: Europe/Berlin,
     contact: {sms: "+12025550101", voice: "+12025550101"},
     rules: {high: [slack, sms after 1m, voice after 3m], low: [slack]}}
  - {name: bob, slack: U0BOB, timezone: America/New_York,
     contact: {sms: "+12025550102"}, rules: {high: [slack, sms after 1m], low: [slack]}}
  - {name: carol, slack: U0CAROL, timezone: UTC, contact: {sms: "+12025550103"},
     rules: {high: [sms], low: [slack]}}
schedules:
  - name: primary
    timezone: UTC
    layers:
      - {name: week, users: [alice], start: "2026-01-05T09:00", rotation: {every: 1, unit: week}}
policies:
  - name: payments
    levels:
      - {targets: [{schedule: primary}], timeout: 5m}
      - {targets: [{person: bob}], timeout: 10m}
services:
  - {name: checkout, policy: payments, channel: "#payments"}
  - {name: quiet, policy: payments, urgency: {info: none}}
fallback: [{person: carol}]
"""


class Pager:
    """One Midwatch on one database; `restart` makes a new one on the same."""

    fallback_urls: tuple[str, ...] = ("json://localhost/last-resort",)
    more: Mapping[str, Any] = {}  # settings besides these

    def __init__(self, url: str, clock: FakeClock, config: str = CONFIG) -> None:
        self.url = url
        self.clock = clock
        self.config = config
        self.transports: dict[Method, FakeTransport] = fake_transports()
        self.app: App = self._build()
        self._heard: list[Page] = []

    def _build(self) -> App:
        settings = Settings(
            database_url=self.url,
            secret_key=SecretStr("a secret for tests only"),
            ops_channel="#ops",
            fallback_urls=self.fallback_urls,
            **self.more,
        )
        unique = {id(one): one for one in self.transports.values()}
        return build(settings, self.clock, list(unique.values()))

    async def start(self) -> Pager:
        if not (await self.app.roster.directory()).people:
            await self.configure(self.config)
        return self

    async def configure(self, config: str) -> None:
        await self.app.setup.apply(parse_config(config))
        self.app.receiver.known.forget()  # the second in which it would be noticed does not pass here

    async def restart(self) -> None:
        """The process dies, and another starts on the same database."""
        await self.close()
        self.app = self._build()

    async def close(self) -> None:
        await self.app.pipeline.drain()
        await self.app.database.close()

    # --- what happens ------------------------------------------------------------------------------------

    async def receive(self, *events: Event, service: str = "checkout", **body: Any) -> list[Receipt]:
        """What a source sends, stored; nothing is worked yet."""
        service_id = await self.service_id(service)
        return await self.app.receiver.accept(ORG, service_id, Body("test", events, **body))

    async def alert(self, summary: str = "db-1 is down", **event: Any) -> Receipt:
        """A source fires; what that makes due at once is done."""
        service = event.pop("service", "checkout")
        (receipt,) = await self.receive(fire(summary, **event), service=service)
        await self.app.worker.run_due()
        return receipt

    async def resolved_by_source(self, summary: str = "db-1 is down", **event: Any) -> Receipt:
        service = event.pop("service", "checkout")
        made = fire(summary, **event)
        ended = Event(Action.RESOLVE, made.dedup_key, summary, made.group_key, started_at=made.started_at)
        (receipt,) = await self.receive(ended, service=service)
        await self.app.worker.run_due()
        return receipt

    async def advance(self, **delta: float) -> None:
        end = self.clock.now() + timedelta(**delta)
        while True:
            await self.app.worker.run_due()
            due = await self.app.next_due()
            if due is None or due > end:
                break
            # What is due and was not worked (somebody holds its incident) is worked a moment later.
            self.clock.move_to(max(due, self.clock.now() + timedelta(milliseconds=10)))
        self.clock.move_to(end)
        await self.app.worker.run_due()

    async def outage(self, **delta: float) -> None:
        """Nothing ran for a while: the clock jumps, then everything late is worked."""
        self.clock.move(**delta)
        await self.app.worker.run_due()

    async def ack(self, number: int = 1, by: str = "alice", via: Via = Via.SLACK_BUTTON) -> Answer:
        return await self._answer(self.app.responder.acknowledge, number, by, via)

    async def resolve(self, number: int = 1, by: str = "alice", via: Via = Via.SLACK_BUTTON) -> Answer:
        return await self._answer(self.app.responder.resolve, number, by, via)

    async def answer(self, command: str, number: int = 1, by: str = "alice", **more: Any) -> Answer:
        """Any other command of the Responder, by name."""
        function: Callable[..., Any] = getattr(self.app.responder, command)
        return await self._answer(function, number, by, Via.SLACK_COMMAND, **more)

    async def _answer(
        self, command: Callable[..., Any], number: int, by: str, via: Via, **more: Any
    ) -> Answer:
        incident_id = await self.app.responder.find(number)
        assert incident_id is not None, f"there is no #{number}"
        answer: Answer = await command(incident_id, await self.person(by, via), **more)
        await self.app.worker.run_due()
        return answer

    # --- what is seen ------------------------------------------------------------------------------------

    async def incident(self, number: int = 1) -> IncidentView:
        view = await self.app.views.by_number(number)
        assert view is not None, f"there is no #{number}"
        return view

    async def open_incidents(self) -> list[IncidentView]:
        return [view for view in await self.app.views.list() if view.status != "resolved"]

    def _collect(self) -> list[Page]:
        for transport in {id(one): one for one in self.transports.values()}.values():
            self._heard += transport.sent
            transport.sent.clear()
        return self._heard

    def expect_page(self, person: str, via: str = "slack", *, kind: str = "page") -> Page:
        """Exactly this person was told by this method; consumed."""
        heard = self._collect()
        for page in heard:
            if (page.person, page.method.value, page.kind.value) == (person, via, kind):
                heard.remove(page)
                return page
        raise AssertionError(f"{person} was not told by {via}; heard: {_said(heard)}")

    def expect_pages(self, *expected: tuple[str, str]) -> None:
        for person, via in expected:
            self.expect_page(person, via)

    def expect_message(self, method: str, address: str) -> Page:
        """A message to a channel or URL; consumed."""
        heard = self._collect()
        for page in heard:
            if (page.method.value, page.address) == (method, address):
                heard.remove(page)
                return page
        raise AssertionError(f"nothing went to {address}; heard: {_said(heard)}")

    def expect_silence(self) -> None:
        heard = self._collect()
        assert not heard, f"nobody should be told anything; heard: {_said(heard)}"

    def pages(self) -> list[Page]:
        """Everything sent and not expected yet; stays to be expected."""
        return list(self._collect())

    def silence_ops(self) -> list[Page]:
        """Take the alarms to whoever runs Midwatch out of what was heard."""
        alarms = [page for page in self._collect() if page.kind.value == "ops"]
        self._heard = [page for page in self._heard if page.kind.value != "ops"]
        return alarms

    async def service_id(self, name: str) -> int:
        services = (await self.app.roster.directory()).services.values()
        return next(service.id for service in services if service.name == name)

    async def person(self, name: str, via: Via = Via.SLACK_BUTTON) -> Actor:
        people = (await self.app.roster.directory()).people.values()
        person = next(person for person in people if person.name == name)
        return Actor(person.name, via, person.id, person.slack_user_id)


def fire(summary: str = "db-1 is down", **event: Any) -> Event:
    event.setdefault("dedup_key", summary)
    event.setdefault("severity", Severity.CRITICAL)
    event.setdefault("raw_severity", event["severity"].value if event["severity"] else "")
    return Event(Action.TRIGGER, summary=summary, **event)


def group_over(group_key: str, before: datetime | None = None) -> GroupResolve:
    return GroupResolve(group_key, before)


def _said(heard: Sequence[Page]) -> str:
    return ", ".join(f"{p.kind}→{p.person or p.address} by {p.method}" for p in heard) or "nothing"
