"""The whole run: an install, its monitoring, its people, a phone company, and somebody who kills."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Final

import aiohttp
import sqlalchemy as sa
from pydantic import SecretStr

from bot.app import build
from bot.settings import Settings
from engine.clock import SystemClock
from engine.config.parse import parse_config
from engine.db import Database
from engine.migrate import upgrade
from engine.schema import incidents
from tests.notify.phone_company import SID, TOKEN
from tests.product import KEY
from tests.soak.checks import Report, check, read, unfinished
from tests.soak.processes import Fleet, Process, environment
from tests.soak.provider import Provider
from tests.soak.senders import Senders
from tests.soak.tracebacks import tracebacks

SECRET: Final = "a secret for tests only"
SERVICES: Final = 1_000  # at most; each hears of a problem every minute and a half, so none is bundled
ALERTS: Final = 4_000
SECONDS: Final = 600.0
TOLD_S: Final = 120.0  # at least: the timeout of a level, and some leases
DRAIN_S: Final = 120.0  # at least: a lease, and what is yet to be recorded


@dataclass(frozen=True, slots=True)
class Plan:
    """How long, how many processes, how many alerts. All scales with the time but leases and retries."""

    seconds: float = SECONDS
    processes: int = 2
    alerts: int = ALERTS

    @property
    def services(self) -> int:
        return min(SERVICES, self.alerts)

    @property
    def firing_s(self) -> float:
        return self.seconds * 0.6

    @property
    def timeout_s(self) -> int:
        """Of a level: short enough that two levels and the fallback are paged meanwhile."""
        return max(4, int(self.seconds / 10))

    @property
    def kill_every_s(self) -> tuple[float, float]:
        return max(8.0, self.seconds / 30), max(16.0, self.seconds / 10)


def phone(service: int, level: int) -> str:
    return f"+1202{6 + level}{service:06}"


def config(plan: Plan) -> str:
    """Each service has two people of its own, one for each level. Without Slack, whose one message per
    second and channel is all that would be measured."""
    people, policies, services = [], [], []
    rules = f"{{high: [sms, voice after {max(1, plan.timeout_s // 2)}s]}}"
    for n in range(plan.services):
        for level in (0, 1):
            contact = f'{{sms: "{phone(n, level)}", voice: "{phone(n, level)}"}}'
            people.append(f"- {{name: p{n}-{level}, timezone: UTC, contact: {contact}, rules: {rules}}}")
        levels = ", ".join(
            f"{{targets: [{{person: p{n}-{level}}}], timeout: {plan.timeout_s}s}}" for level in (0, 1)
        )
        policies.append(f"- {{name: l{n}, levels: [{levels}]}}")
        services.append(f"- {{name: s{n}, policy: l{n}}}")
    lines = ["people:", *people, "policies:", *policies, "services:", *services, "fallback: [{person: p0-0}]"]
    return "\n".join(lines)


async def soak(url: str, directory: Path, plan: Plan, say: Callable[[str], None]) -> Report:
    provider = Provider()
    database = Database(url)
    async with provider.serving() as provider_url, aiohttp.ClientSession() as http:
        await _set_up(url, plan)
        env = environment(url, provider_url, SECRET, SID, TOKEN)
        fleet = Fleet([Process(env, directory / f"process-{n}.log") for n in range(plan.processes)], http)
        senders = Senders(fleet, database, plan.services, plan.timeout_s)
        try:
            await fleet.start()
            await _live(plan, fleet, senders, provider, say)
            await _drain(database, plan, say)
            codes = await fleet.stop()
        finally:
            await fleet.kill()
    report = check(await read(database, SystemClock().now()), senders, provider, fleet)
    await database.close()
    report.broken += [f"a process ended with {code}" for code in codes if code]
    for process in fleet.processes:
        report.broken += tracebacks(process.log)
    return report


async def _set_up(url: str, plan: Plan) -> None:
    door = build(Settings(database_url=url, secret_key=SecretStr(SECRET)), SystemClock(), [])
    await upgrade(door.database)
    await door.setup.apply(parse_config(config(plan)))
    for n in range(plan.services):
        await door.setup.create_key(f"s{n}", f"{KEY}{n}")
    await door.setup.create_token("people", value=KEY)
    await door.database.close()


async def _live(
    plan: Plan, fleet: Fleet, senders: Senders, provider: Provider, say: Callable[[str], None]
) -> None:
    """Alerts, answers and kills; then the sources resolve what is left, and the kills end."""
    async with asyncio.TaskGroup() as others:
        others.create_task(fleet.kill_now_and_then(*plan.kill_every_s))
        answering = others.create_task(senders.answer(provider.told))
        await senders.fire(plan.alerts, plan.firing_s)
        kills = len(fleet.killed_at)
        say(f"{plan.alerts:,} alerts accepted, {kills} kills, {len(provider.ledger):,} requests")
        senders.untold = await _until_all_are_told(senders.database, provider, plan)
        await senders.resolve_all()
        fleet.peace.set()
        answering.cancel()


async def _until_all_are_told(database: Database, provider: Provider, plan: Plan) -> dict[int, str]:
    """Of each incident that is still open both levels have heard; else who has not, by its number."""
    deadline = time() + max(TOLD_S, plan.seconds * 0.25)
    while (untold := await _untold(database, provider, plan)) and time() < deadline:  # noqa: ASYNC110  # other processes
        await asyncio.sleep(0.5)
    return untold


async def _untold(database: Database, provider: Provider, plan: Plan) -> dict[int, str]:
    reached = {(one.incident, one.to) for one in provider.ledger}
    async with database.snapshot() as tx:
        rows = await tx.execute(
            sa.select(incidents.c.number, incidents.c.title).where(incidents.c.status == "triggered")
        )
    found = {}
    for number, title in rows:
        service = int(title.rpartition("-")[2]) % plan.services
        missing = [level for level in (0, 1) if (number, phone(service, level)) not in reached]
        if missing:
            found[number] = f"level {missing[0]} was never tried"
    return found


async def _drain(database: Database, plan: Plan, say: Callable[[str], None]) -> None:
    """Until nothing is left to do, or it has taken too long: the checker says what."""
    deadline = time() + max(DRAIN_S, plan.seconds * 0.2)
    while (left := await unfinished(database)) and time() < deadline:  # noqa: ASYNC110  # other processes
        await asyncio.sleep(0.5)
    say(f"drained: {left} left")
