"""Replies by SMS for an install that the phone company cannot reach: looked for every few seconds.

Never runs beside the webhook. Every process looks, and one of them acts on a message; if it dies in
that, another does, so that a reply may be answered twice and is never lost.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Final

import structlog

from bot.inbox import Inbox
from engine.clock import Clock, monotonic
from engine.db import Database, Tx, Writer
from engine.models import ORG
from engine.notify.twilio import InboundText, TwilioTransport
from engine.store.journal import acted_on, begin_inbound, first_time

log = structlog.get_logger(__name__)

EVERY: Final = timedelta(seconds=5)
LOOKS_BACK: Final = timedelta(minutes=10)  # what was texted while we were away; an older reply is stale
GRACE: Final = timedelta(seconds=5)  # at the end, for a reply that is being worked
PATIENCE: Final = timedelta(seconds=30)  # with whoever began to act on a message
SOURCE: Final = "twilio_sms"


class SmsPoll:
    """`start` begins the loop; `once` is one look."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        transport: TwilioTransport,
        inbox: Inbox,
        *,
        every: timedelta = EVERY,
    ) -> None:
        self._database = database
        self._clock = clock
        self._transport = transport
        self._inbox = inbox
        self._every = every
        self._seen: set[str] = set()  # acted on: of these the database is not asked again
        self._cause: str | None = None  # of the failure that was logged
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.ticked_at = monotonic()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="sms replies")

    async def stop(self) -> None:
        """Let a look that is under way finish, for a while: a reply that was taken comes only once."""
        self._stopping.set()
        if self._task is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE.total_seconds()):
                    await self._task

    async def once(self) -> int:
        """Take what is new; how many replies that was."""
        texts = await self._transport.inbound(self._clock.now() - LOOKS_BACK)
        self._seen &= {text.sid for text in texts}
        new = [text for text in texts if text.sid not in self._seen]
        if not new:
            return 0
        async with self._database.look() as tx:
            self._seen |= await acted_on(tx, ORG, SOURCE, [text.sid for text in new])
        return sum([await self._take(text) for text in new if text.sid not in self._seen])

    async def _take(self, text: InboundText) -> bool:
        now = self._clock.now()

        async def begin(tx: Tx) -> bool:
            return await begin_inbound(tx, ORG, SOURCE, text.sid, now, PATIENCE)

        async def done(tx: Tx) -> bool:
            return await first_time(tx, ORG, SOURCE, text.sid, now)

        if not await self._database.write(begin, rank=Writer.RESPOND):
            return False
        answer = await self._inbox.answer(text.from_number, text.body)
        await self._database.write(done, rank=Writer.RESPOND)
        self._seen.add(text.sid)
        if answer is not None:
            await self._transport.reply(text.from_number, answer)
        return True

    async def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                await self.once()
                self._cause = None
            except Exception as error:
                self._failed(type(error).__name__)
            self.ticked_at = monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every.total_seconds()):
                    await self._stopping.wait()

    def _failed(self, cause: str) -> None:
        """Once per cause: an outage is one line, not one every five seconds."""
        if cause != self._cause:
            log.exception("sms_poll.failed", error=cause)
        self._cause = cause
