"""What happened to time between two looks at the machine's clocks.

Pure: compares readings, and never takes one. A clock that is disciplined bit by bit (NTP, a leap
smear) makes no jump.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from engine.clock import Reading

STEP: Final = timedelta(seconds=2)
STALL: Final = timedelta(seconds=5)  # looks are a second apart


class JumpKind(StrEnum):
    FORWARD = "forward"  # somebody set the wall clock
    BACK = "back"
    SUSPENDED = "suspended"  # the host slept
    STALLED = "stalled"  # this process did not run: stopped, starved, or blocked


@dataclass(frozen=True, slots=True)
class Jump:
    kind: JumpKind
    by: timedelta


def between(before: Reading, after: Reading) -> tuple[Jump, ...]:
    """The jumps of the time between; mostly there are none."""
    ran = timedelta(seconds=after.monotonic - before.monotonic)
    passed = max(ran, timedelta(seconds=after.up - before.up))
    step = (after.wall - before.wall) - passed
    found = (
        Jump(JumpKind.FORWARD, step) if step > STEP else None,
        Jump(JumpKind.BACK, -step) if step < -STEP else None,
        Jump(JumpKind.SUSPENDED, passed - ran) if passed - ran > STEP else None,
        Jump(JumpKind.STALLED, ran) if ran > STALL else None,
    )
    return tuple(jump for jump in found if jump is not None)


def told(jump: Jump) -> str:
    """For whoever runs Midwatch: what it was, and what it means."""
    seconds = f"{jump.by.total_seconds():.0f} s"
    return {
        JumpKind.FORWARD: f"The clock of this host moved forward by {seconds}: what that made due is late.",
        JumpKind.BACK: f"The clock of this host moved back by {seconds}. Midwatch's time goes on from the"
        " last instant it saw, so nothing waits and nothing repeats; see that the host keeps time by NTP.",
        JumpKind.SUSPENDED: f"This host was suspended for {seconds}: what came due meanwhile is late.",
        JumpKind.STALLED: f"Midwatch did not run for {seconds}: what came due meanwhile is late.",
    }[jump.kind]
