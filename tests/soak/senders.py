"""Monitoring that fires and resolves, and people that answer: all come back until they hear 2xx."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from time import time
from typing import Any, Final

import aiohttp
import sqlalchemy as sa

from engine.db import Database
from engine.schema import incidents
from tests.product import KEY
from tests.soak.processes import Fleet

AGAIN_S: Final = 0.3
GIVE_UP_S: Final = 120.0
TIMEOUT: Final = aiohttp.ClientTimeout(total=15)
RESOLVED: Final = 0.35  # of the alerts, by their source, while the ladder runs
ANSWERED: Final = 0.35  # of the pages, by whoever got them
REPEATED: Final = 0.2  # of the alerts, once more


@dataclass(slots=True)
class Alert:
    """What the sender knows of one problem."""

    key: str
    service: int
    sent_at: float = 0.0
    accepted_at: float | None = None
    resolved_at: float | None = None  # when the sender began to say so


@dataclass
class Senders:
    fleet: Fleet
    database: Database
    services: int
    timeout_s: float  # of a level
    alerts: list[Alert] = field(default_factory=list)
    answered_at: dict[int, float] = field(default_factory=dict)  # by incident number
    untold: dict[int, str] = field(default_factory=dict)  # open incidents of which somebody never heard
    posts: int = 0
    refused: int = 0  # answers that were no 2xx, and connections that broke

    async def fire(self, count: int, seconds: float) -> None:
        """So many problems, evenly over the time."""
        began = time()
        async with asyncio.TaskGroup() as stories:
            for n in range(count):
                await asyncio.sleep(max(0.0, began + n * seconds / count - time()))
                alert = Alert(f"problem-{n}", n % self.services)
                self.alerts.append(alert)
                stories.create_task(self._story(alert))

    async def _story(self, alert: Alert) -> None:
        alert.sent_at = time()
        await self._say(alert, "trigger")
        alert.accepted_at = time()
        if random.random() < REPEATED:
            await asyncio.sleep(random.uniform(0, 1))
            await self._say(alert, "trigger")
        if random.random() < RESOLVED:
            await asyncio.sleep(random.uniform(0.1, 2.0) * self.timeout_s)
            await self.resolve(alert)

    async def resolve(self, alert: Alert) -> None:
        alert.resolved_at = alert.resolved_at or time()
        await self._say(alert, "resolve")

    async def resolve_all(self) -> None:
        """What is left, a few at a time."""
        turns = asyncio.Semaphore(20)

        async def one(alert: Alert) -> None:
            async with turns:
                await self.resolve(alert)

        await asyncio.gather(*(one(alert) for alert in self.alerts if alert.resolved_at is None))

    async def _say(self, alert: Alert, action: str) -> None:
        body = {"action": action, "dedup_key": alert.key, "summary": alert.key, "severity": "critical"}
        await self._until_taken("/v1/events", body, f"{KEY}{alert.service}")

    async def answer(self, told: asyncio.Queue[int]) -> None:
        """People read what reached them, and some acknowledge; until cancelled."""
        async with asyncio.TaskGroup() as people:
            while True:
                number = await told.get()
                if number not in self.answered_at and random.random() < ANSWERED:
                    people.create_task(self._acknowledge(number))

    async def _acknowledge(self, number: int) -> None:
        await asyncio.sleep(random.uniform(0.05, 0.5) * self.timeout_s)
        async with self.database.snapshot() as tx:
            incident = await tx.scalar(sa.select(incidents.c.id).where(incidents.c.number == number))
        self.answered_at.setdefault(number, time())
        await self._until_taken(f"/v1/incidents/{incident}/acknowledge", {}, KEY)

    async def _until_taken(self, path: str, body: Any, key: str) -> None:
        deadline = time() + GIVE_UP_S
        while not await self._post(path, body, key):
            if time() > deadline:
                raise RuntimeError(f"{path} was not taken within {GIVE_UP_S:.0f} s")
            await asyncio.sleep(AGAIN_S)

    async def _post(self, path: str, body: Any, key: str) -> bool:
        self.posts += 1
        headers = {"Authorization": f"Bearer {key}"}
        try:
            async with self.fleet.http.post(
                f"{self.fleet.any_url}{path}", json=body, headers=headers, timeout=TIMEOUT
            ) as answer:
                if answer.status < 300:
                    return True
                if answer.status < 500:
                    raise RuntimeError(f"{path}: {answer.status} {await answer.text()}")
        except (aiohttp.ClientError, TimeoutError):
            pass  # it may have been taken: the same is said again
        self.refused += 1
        return False
