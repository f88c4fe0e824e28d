"""What can go wrong at a boundary of the pager, and which boundary the Nth one is.

A boundary is where the world outside meets the process: a statement, a commit (before and after), a
message (before, and after the provider took it). Counts only; what a fault does is done elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

LEASE: Final = timedelta(seconds=30)
STALL: Final = timedelta(seconds=60)  # twice a lease
RESTART: Final = timedelta(seconds=1)


class Point(StrEnum):
    READ = "read"  # a statement of a snapshot
    STATEMENT = "statement"  # of a unit of work
    COMMIT = "commit"
    COMMITTED = "committed"
    SEND = "send"
    TAKEN = "taken"  # by the provider, and we have not heard of it yet


class Kind(StrEnum):
    NOTHING = "nothing"
    REFUSED = "refused"  # an error before: nothing of it was done, and the process lives on
    LOST = "lost"  # the connection is gone before; PostgreSQL only
    UNHEARD = "unheard"  # an error after: it was committed, and whoever asked hears an error
    KILL_BEFORE = "kill before"
    KILL_AFTER = "kill after"
    HANG = "hang"  # for a minute, in which another worker goes on
    RIVAL = "rival"  # another worker is just as far, and its messages are on their way
    UNREACHABLE = "unreachable"  # no connection to the provider: the message never left
    NO_ANSWER = "no answer"  # the provider took it, and nobody hears so: ambiguous


DATABASE_BEFORE: Final = frozenset({Point.STATEMENT, Point.COMMIT})

APPLIES: Final[Mapping[Kind, frozenset[Point]]] = {
    Kind.NOTHING: frozenset(Point),
    Kind.REFUSED: DATABASE_BEFORE | {Point.READ},
    Kind.LOST: DATABASE_BEFORE,
    Kind.UNHEARD: frozenset({Point.COMMITTED}),
    Kind.KILL_BEFORE: DATABASE_BEFORE | {Point.SEND},
    Kind.KILL_AFTER: frozenset({Point.COMMITTED, Point.TAKEN}),
    Kind.HANG: frozenset(Point),
    Kind.RIVAL: frozenset(Point),
    Kind.UNREACHABLE: frozenset({Point.SEND}),
    Kind.NO_ANSWER: frozenset({Point.TAKEN}),
}
KILLS: Final = frozenset({Kind.KILL_BEFORE, Kind.KILL_AFTER})
OTHERS: Final = frozenset({Kind.HANG, Kind.RIVAL})  # in which another worker takes part
ON_POSTGRESQL: Final = frozenset({Kind.LOST})

# How much later than planned a page may begin because of one fault: what was claimed waits for the end
# of its lease, and whoever hangs comes back before that begins.
COSTS: Final[Mapping[Kind, timedelta]] = {
    Kind.NOTHING: timedelta(seconds=1),
    Kind.RIVAL: timedelta(seconds=1),
    Kind.UNREACHABLE: timedelta(seconds=75),  # it is tried again after the usual waits
    Kind.HANG: STALL + LEASE + timedelta(seconds=5),
}
# The try that was lost counts, so what Slack refuses then waits for the second delay and its jitter, not for
# the first: 30 + 66 seconds after the alert, where a minute was planned.
COST: Final = LEASE + timedelta(seconds=10)


class Killed(BaseException):
    """The process ends here."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of one run; `nth` 0: none."""

    kind: Kind = Kind.NOTHING
    nth: int = 0
    also: timedelta = timedelta()  # what else may cost time in that run

    @property
    def costs(self) -> timedelta:
        return COSTS.get(self.kind, COST) + self.also

    def __str__(self) -> str:
        return f"{self.kind} {self.nth}"


@dataclass(slots=True)
class Boundaries:
    """Counts the boundaries at which the fault can happen, and says when it is its turn."""

    fault: Fault = field(default_factory=Fault)
    seen: int = 0
    at: str = ""  # where it happened
    log: list[str] = field(default_factory=list)

    def reached(self, point: Point, what: str) -> bool:
        """Is it here? Once."""
        if point not in APPLIES[self.fault.kind]:
            return False
        self.seen += 1
        self.log.append(f"{point} {what}")
        if self.seen != self.fault.nth:
            return False
        self.at = self.log[-1]
        return True
