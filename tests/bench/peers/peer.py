"""What the bench asks of each project: tables, arming, and a worker process with a countable effect.

Never measures: that is the same for all, in `measure`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Final, Protocol

NAMES: Final = ("midwatch", "pgqueuer", "procrastinate", "apscheduler")

# The effect of a timer is this insert, each project in its own way: a timer that fires twice is two
# rows. Without a unique index, which would hide it.
EFFECTS: Final = "CREATE TABLE effects (id bigint NOT NULL)"
EFFECT: Final = "INSERT INTO effects (id) VALUES "


@dataclass(frozen=True, slots=True)
class Due:
    """A timer to arm: its number, and when it is due in seconds since 1970."""

    id: int
    at: float


class Peer(Protocol):
    """One project. `work` runs in a process of its own until that is killed."""

    name: str
    settings: str  # how it is set up, for whoever reads the table
    pending: int  # the most timers beside which it still fires some
    steady: int  # timers a second that it can fire, for the runs with kills
    in_batches: bool  # can it arm many at once?
    shares: bool  # may several workers use one database, by its documentation?
    heals_s: float  # how long after a kill what the dead worker held is taken up, by its documentation
    armed: str  # SQL: the id and the due time of what is armed
    copy: str  # SQL: $1 more timers like one that is armed already, due in 30 days

    async def install(self, url: str) -> None:
        """Make the tables, tuned as its documentation says, and be ready to arm."""

    async def arm(self, due: Sequence[Due], batch: int) -> None:
        """Arm them, `batch` at a time; 1 is one call and one commit for each."""

    async def close(self) -> None:
        """Nothing more will be armed."""

    def work(self, url: str, ready: Callable[[], None]) -> None:
        """Work what is due; call `ready` first. Never returns."""


def load(name: str) -> Peer:
    """ImportError: the extra `peers` is not installed."""
    peer: Peer = import_module(f"tests.bench.peers.{name}").PEER
    return peer


def chunks(due: Sequence[Due], size: int) -> list[Sequence[Due]]:
    return [due[start : start + size] for start in range(0, len(due), size)]
