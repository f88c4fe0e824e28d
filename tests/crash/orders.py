"""What the world asks of a pager, by name: the same in this process and in one of its own.

Each order is what somebody outside does or waits for. Never looks at the tables.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from pydantic import SecretStr

from bot.app import App, build
from bot.settings import Settings
from engine.clock import Clock
from engine.config.parse import parse_config
from engine.db import Database
from engine.models import ORG, Actor, Body, Via
from engine.schema import EPOCH, MICROSECOND
from tests.crash.ledger import Give, providers
from tests.crash.watched import Trap, instead_of_its_own
from tests.scenario.harness import fire

CONFIG: Final = """
people:
  - {name: alice, slack: U0ALICE, timezone: UTC, contact: {sms: "+12025550101"},
     rules: {high: [slack, sms after 1m]}}
  - {name: bob, timezone: UTC, contact: {sms: "+12025550102"}, rules: {high: [sms]}}
  - {name: carol, timezone: UTC, contact: {sms: "+12025550103"}, rules: {high: [sms]}}
schedules:
  - name: primary
    timezone: UTC
    layers:
      - {name: week, users: [alice, carol], start: "2026-01-05T09:00", rotation: {every: 1, unit: week}}
policies:
  - name: payments
    levels: [{targets: [{schedule: primary}], timeout: 5m}, {targets: [{person: bob}], timeout: 10m}]
services: [{name: checkout, policy: payments}]
fallback: [{person: carol}]
"""


def built(database: Database, clock: Clock, give: Give, trap: Trap | None = None) -> App:
    settings = Settings(
        database_url=database.url,
        secret_key=SecretStr("a secret for tests only"),
        ops_channel="#ops",
    )
    with instead_of_its_own(database):
        return build(settings, clock, providers(give, trap))


async def configure(app: App) -> None:
    if not (await app.roster.directory()).people:
        await app.setup.apply(parse_config(CONFIG))


async def post(app: App) -> int:
    """The source fires; who hears nothing fires again."""
    services = (await app.roster.directory()).services.values()
    checkout = next(service.id for service in services if service.name == "checkout")
    return len(await app.receiver.accept(ORG, checkout, Body("test", (fire(),))))


async def work(app: App) -> int:
    return await app.worker.run_due()


async def next_due(app: App) -> int:
    """In microseconds; 0: nothing is armed."""
    due = await app.next_due()
    return 0 if due is None else (due - EPOCH) // MICROSECOND


def _answer(command: str, name: str = "bob") -> Callable[[App], Awaitable[int]]:
    async def answer(app: App) -> int:
        incident = await app.responder.find(1)
        if incident is None:
            return 0  # nothing to answer: the history will tell
        people = (await app.roster.directory()).people.values()
        person = next(one for one in people if one.name == name)
        actor = Actor(name, Via.SLACK_BUTTON, person.id)
        return int((await getattr(app.responder, command)(incident, actor)).changed)

    return answer


ORDERS: Final[Mapping[str, Callable[[App], Awaitable[int]]]] = {
    "post": post,
    "work": work,
    "next_due": next_due,
    "acknowledge": _answer("acknowledge"),
    "unacknowledge": _answer("unacknowledge"),
    "resolve": _answer("resolve"),
}
