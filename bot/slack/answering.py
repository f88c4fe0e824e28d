"""Runs what somebody asked for, acks in time, and says how it ended.

Commit first, then ack: Slack never repeats a click or a command, so an ack before the commit could
lose one. What takes longer than two seconds is acked "working…", goes on, and is answered
afterwards. Never lets an exception pass: a failure is answered "NOT applied" with a ref of the log.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import structlog
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.slack import answers
from bot.slack.client import SlackClient
from bot.slack.lint import lint_message
from bot.slack.message import Message
from engine.errors import MidwatchError, Unavailable

log = structlog.get_logger(__name__)

SOON: Final = timedelta(seconds=2)  # Slack gives three
LAST: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Ended:
    message: Message | None
    well: bool
    final: bool = True  # nothing more follows


Unit = Awaitable[Message | None]
Submission = Coroutine[Any, Any, dict[str, Any]]
Say = Callable[[Ended], Awaitable[object]]


class Answering:
    def __init__(self, client: SlackClient, soon: timedelta = SOON) -> None:
        self._client = client
        self._soon = soon.total_seconds()
        # Why kept: Bolt and the event loop hold no reference to work that goes on after an ack.
        self._tasks: set[asyncio.Task[Any]] = set()

    async def command(self, ack: AsyncAck, response_url: str, unit: Unit) -> None:
        """The answer is in the ack itself where it comes in time."""
        task = self._keep(ended(unit))
        if await self._in_time(task):
            answer = task.result().message
            await (ack() if answer is None else ack(_ephemeral(answer)))  # None: a modal stands open
            return
        await ack(_ephemeral(answers.working()))

        async def say(outcome: Ended) -> None:
            if outcome.message is not None:
                await self._client.respond(response_url, outcome.message)

        self._keep(self._follow(task, say))

    async def click(self, ack: AsyncAck, unit: Unit, say: Say) -> None:
        """The card shows what changed; `say` gets to know how it ended, and that it goes on."""
        task = self._keep(ended(unit))
        in_time = await self._in_time(task)
        await ack()
        if not in_time:
            self._keep(_said(say, Ended(answers.working(), well=True, final=False)))
        self._keep(self._follow(task, say))

    async def submission(
        self, ack: AsyncAck, unit: Submission, working: dict[str, Any], late: Callable[[Any], Awaitable[None]]
    ) -> bool:
        """The answer to a modal is its ack; what comes too late for that goes to `late`, and is False."""
        task = self._keep(unit)
        done, _ = await asyncio.wait({task}, timeout=self._soon)
        if done:
            await ack(task.result())
            return True
        await ack(working)

        async def follow() -> None:
            await late(await task)

        self._keep(follow())
        return False

    async def event(self, unit: Unit, say: Say) -> None:
        """A message or mention: Slack has its ack already, the answer is a message."""
        await asyncio.wait({self._keep(self._follow(self._keep(ended(unit)), say))})

    async def stop(self) -> None:
        """Let what is going on end, for a while."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=LAST.total_seconds())
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _in_time(self, task: asyncio.Task[Ended]) -> bool:
        done, _ = await asyncio.wait({task}, timeout=self._soon)
        return bool(done)

    async def _follow(self, task: asyncio.Task[Ended], say: Say) -> None:
        await _said(say, await task)

    def _keep(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _said(say: Say, outcome: Ended) -> None:
    try:
        await say(outcome)
    except Exception as error:  # what was done is done, whether or not it can be told
        log.warning("slack.not_answered", error=type(error).__name__)


async def ended(unit: Unit) -> Ended:
    """Run it; every failure becomes a sentence."""
    try:
        message = await unit
    except Unavailable:
        return Ended(failed("slack.unavailable"), well=False)
    except MidwatchError as error:
        return Ended(answers.refusal(error), well=False)
    except Exception:
        return Ended(failed("slack.listener_failed"), well=False)
    if message is not None and (faults := lint_message(message)):
        log.error("slack.answer_faulty", faults=faults[:5])
        return Ended(Message(message.text), well=True)
    return Ended(message, well=True)


def failed(event: str) -> Message:
    """What people are told of a failure that is ours; the ref finds it in the log."""
    ref = secrets.token_hex(3)
    log.exception(event, ref=ref)
    return answers.not_applied(ref)


def _ephemeral(message: Message) -> dict[str, Any]:
    return {"response_type": "ephemeral", **message.payload()}
