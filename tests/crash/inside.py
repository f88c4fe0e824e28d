"""A pager inside this process, which can be killed at a boundary: nothing of it runs on, and another
one is started on the same database.

Exact and quick; what only the death of a real process shows is in `child`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import structlog

from bot.app import App
from engine.clock import Clock
from engine.errors import Unavailable
from tests.crash.faults import Fault, Killed
from tests.crash.ledger import Give
from tests.crash.orders import ORDERS, built
from tests.crash.watched import Meet, Trap, Watched

log = structlog.get_logger(__name__)


class Inside:
    """`do` an order; raises Killed when the process died of it, Unavailable when it was told so."""

    def __init__(self, database: Watched, clock: Clock, give: Give, fault: Fault, meet: Meet) -> None:
        self._database = database
        self._clock = clock
        self._give = give
        self._died = asyncio.Event()
        self.trap = Trap(fault, kill=self._died.set, meet=meet)
        asyncio.get_running_loop().set_exception_handler(_but_for_the_dead)
        self._app = self._started()

    def _started(self) -> App:
        self._database.trap = self.trap
        return built(self._database, self._clock, self._give, self.trap)

    @property
    def app(self) -> App:
        return self._app

    async def do(self, order: str) -> int:
        doing = asyncio.ensure_future(ORDERS[order](self._app))
        died = asyncio.ensure_future(self._died.wait())
        await asyncio.wait({doing, died}, return_when=asyncio.FIRST_COMPLETED)
        died.cancel()
        doing.cancel()  # whoever waited for the dead process hears nothing more; a no-op if it is done
        await asyncio.wait({doing, died})
        if self._died.is_set():
            _heard(doing)
            raise Killed(order)
        return doing.result()

    async def restart(self) -> None:
        await self._end()
        self.trap.dead = False
        self._died.clear()
        self._app = self._started()

    async def close(self) -> None:
        await self._end()

    async def _end(self) -> None:
        """Its tasks meet a boundary and end there; then its connections close."""
        for task in list(self._app.pipeline._flying):
            await asyncio.wait({task})
            _heard(task)
        if (task_of_receiver := self._app.receiver._task) is not None:
            await asyncio.wait({task_of_receiver})
            _heard(task_of_receiver)
        self._database.trap = None
        await self._database.close()  # its connections; the engines go on


def _but_for_the_dead(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Nobody asks how a task of a dead process ended."""
    if not isinstance(context.get("exception"), Killed):
        loop.default_exception_handler(context)


def _heard(task: asyncio.Future[Any]) -> None:
    """Take its end, so that nobody complains that it was never asked for."""
    if task.cancelled():
        return
    error = task.exception()
    if error is not None and not isinstance(error, (Killed, Unavailable)):
        log.error("crash.ended_otherwise", error=repr(error))
