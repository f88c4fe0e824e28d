"""Who wants to know that something changed: the page's stream and whoever waits in a test.

Carries only the names of what changed ("messages:C0PAYMENTS"), never the thing itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Subscription:
    def __init__(self) -> None:
        self._topics: set[str] = set()
        self._event = asyncio.Event()

    def mark(self, topics: tuple[str, ...]) -> None:
        self._topics.update(topics)
        self._event.set()

    async def next(self) -> list[str]:
        """Everything that changed since the last call, once there is something."""
        await self._event.wait()
        self._event.clear()
        topics, self._topics = sorted(self._topics), set()
        return topics


class Changes:
    def __init__(self) -> None:
        self._subscriptions: set[Subscription] = set()

    def mark(self, *topics: str) -> None:
        for subscription in self._subscriptions:
            subscription.mark(topics)

    @contextmanager
    def subscribe(self) -> Iterator[Subscription]:
        subscription = Subscription()
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    async def until(self, met: Callable[[], bool], within_s: float) -> bool:
        """Wait until the condition holds; False when the time is up first."""
        with self.subscribe() as subscription:
            try:
                async with asyncio.timeout(within_s):
                    while not met():
                        await subscription.next()
            except TimeoutError:
                return met()
        return True
