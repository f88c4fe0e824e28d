"""Workers as processes of their own, forked from one that has loaded everything: a restart takes
milliseconds, not the second of its imports."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from typing import Final

import structlog

from bot.collector import calm_the_collector
from tests.bench.peers.peer import load

READY_WITHIN_S: Final = 20.0
ENDED_WITHIN_S: Final = 5.0
_CONTEXT: Final = multiprocessing.get_context("forkserver")


def preload(names: Iterable[str]) -> None:
    """Before the first worker: what each of them would have to load."""
    _CONTEXT.set_forkserver_preload([f"tests.bench.peers.{name}" for name in names])


def _work(name: str, url: str, parent: Connection) -> None:
    # Into nowhere: peers log each job that fails when its database goes, and the table goes to stdout.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    peer = load(name)
    calm_the_collector()  # as Midwatch does once it is wired; none of the peers is worse off for it
    peer.work(url, lambda: parent.send(True))


class Worker:
    """One process, ready."""

    def __init__(self, name: str, url: str) -> None:
        self._here, there = _CONTEXT.Pipe(duplex=False)
        self._process = _CONTEXT.Process(target=_work, args=(name, url, there), daemon=True)
        self._process.start()
        there.close()

    async def ready(self) -> Worker:
        if not await asyncio.to_thread(self._here.poll, READY_WITHIN_S):
            raise RuntimeError("a worker did not start")
        self._here.recv()
        return self

    def stop(self) -> None:
        self._process.terminate()
        self._process.join(ENDED_WITHIN_S)
        self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._here.close()


@asynccontextmanager
async def workers(name: str, url: str, count: int) -> AsyncIterator[list[Worker]]:
    """So many of them; whoever is in the list at the end is stopped, as an init system would."""
    running = [Worker(name, url) for _ in range(count)]
    try:
        for worker in running:
            await worker.ready()
        yield running
    finally:
        for worker in running:
            worker.stop()
