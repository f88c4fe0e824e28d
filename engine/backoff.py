"""When an attempt that failed for now is made again, and when that is given up.

Never counts a throttle: being told to wait is no attempt. Never decides what happens after giving
up; a dead delivery is loud elsewhere.
"""

from __future__ import annotations

from datetime import timedelta

from engine.models import Retry

# docs/architecture.md: the path of an alert. Three more tries within four minutes: longer would be
# no help to whoever waits, since by then the next level is paged.
DELAYS = (timedelta(seconds=30), timedelta(seconds=60), timedelta(seconds=120))
MOST_ATTEMPTS = len(DELAYS) + 1

# So that what failed together does not come back together.
JITTER = 0.1


def next_try(attempt: int, outcome: Retry, jitter: float) -> timedelta | None:
    """How long after the `attempt`-th attempt (the first is 1) to try again; None: give up, it is dead.

    `jitter` is a number from -1 to 1. A delay that the provider asks for is never cut short.
    """
    if attempt >= MOST_ATTEMPTS:
        return None
    usual = DELAYS[max(attempt, 1) - 1] * (1 + JITTER * min(max(jitter, -1.0), 1.0))
    return usual if outcome.after is None else max(usual, outcome.after)
