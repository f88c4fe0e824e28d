"""Replies that are fetched: each has one effect, and whatever fails, the loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from structlog.testing import capture_logs

from bot.inbox import Inbox
from bot.sms_poll import LOOKS_BACK, PATIENCE, SmsPoll
from engine.notify.twilio import InboundText
from tests.fakes import START, FakeClock
from tests.web.conftest import PHONE, World
from tests.web.fakes import incident
from tests.web.test_phone import texted

STRANGER = "+12025550199"


@dataclass
class FakePhones:
    """`failures` are raised by the next looks; `looked` grows with each of them."""

    texts: list[InboundText] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    replies: list[tuple[str, str]] = field(default_factory=list)
    looked: list[datetime] = field(default_factory=list)
    change: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def inbound(self, since: datetime) -> list[InboundText]:
        async with self.change:
            self.looked.append(since)
            self.change.notify_all()
        if self.failures:
            raise self.failures.pop(0)
        return list(self.texts)

    async def reply(self, to: str, body: str) -> bool:
        async with self.change:
            self.replies.append((to, body))
            self.change.notify_all()
        return True

    async def until(self, met: Callable[[], bool]) -> None:
        async with asyncio.timeout(10), self.change:
            await self.change.wait_for(met)


def polling(world: World, phones: FakePhones) -> SmsPoll:
    parts = world.parts
    inbox = Inbox(parts.database, parts.clock, parts.vault, parts.roster, parts.responder, parts.views)
    every = timedelta(milliseconds=1)
    return SmsPoll(parts.database, parts.clock, phones, inbox, every=every)  # type: ignore[arg-type]  # a fake


async def test_a_reply_is_taken_once_by_whoever_looks(world: World) -> None:
    """A second look, and a second process, find nothing new; only a known number is answered."""
    texted(world, incident(42))
    phones = FakePhones([InboundText("SM1", STRANGER, "4", START), InboundText("SM2", PHONE, "4", START)])
    first, second = polling(world, phones), polling(world, phones)
    assert [await first.once(), await first.once(), await second.once()] == [2, 0, 0]
    assert len(world.pager.acts) == 1
    assert phones.replies == [(PHONE, "#42 acknowledged: db-42 is down")]
    assert phones.looked[0] == world.parts.clock.now() - LOOKS_BACK


class Killed(BaseException):
    """The process ends here."""


async def test_what_a_process_began_that_died_is_taken_up(
    world: World, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply whose taker died before it acted is acted on by the next, once that may not be at it still."""
    texted(world, incident(42))
    phones = FakePhones([InboundText("SM1", PHONE, "4", START)])
    dying, next_one = polling(world, phones), polling(world, phones)

    async def die(*_: str) -> str:
        raise Killed

    monkeypatch.setattr(dying._inbox, "answer", die)
    with pytest.raises(Killed):
        await dying.once()
    assert await next_one.once() == 0
    clock.move_to(clock.now() + PATIENCE)
    assert [await next_one.once(), await polling(world, phones).once()] == [1, 0]
    assert len(world.pager.acts) == 1


async def test_the_loop_outlives_failures_and_names_each_once(world: World) -> None:
    """The same cause twice is one line; a reply that comes afterwards is taken."""
    texted(world, incident(42))
    phones = FakePhones(failures=[OSError(), OSError(), ValueError()])
    poll = polling(world, phones)
    with capture_logs() as logs:
        poll.start()
        await phones.until(lambda: len(phones.looked) > 3)
        phones.texts.append(InboundText("SM1", PHONE, "4", START))
        await phones.until(lambda: bool(phones.replies))
        await poll.stop()
    failed = [entry["error"] for entry in logs if entry["event"] == "sms_poll.failed"]
    assert failed == ["OSError", "ValueError"]
