"""What an outcome means for a delivery: done, again later, or dead, and whether the next rule fires now.

Pure: never reads the clock, never sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from engine import backoff
from engine.models import (
    Delivery,
    DeliveryKind,
    DeliveryStatus,
    Outcome,
    Rejected,
    Retry,
    Sent,
    Throttled,
    Urgency,
)
from engine.outage import WAITS

LONG_WAIT: Final = timedelta(seconds=30)  # a page that is held longer goes by the next rule too

PAGES: Final = frozenset({DeliveryKind.PAGE, DeliveryKind.RESPONDER})


@dataclass(frozen=True, slots=True)
class Verdict:
    """`again_at` is set while the delivery lives on; `next_rule` pulls the person's next step to now."""

    word: str  # of the attempt: sent, retry, rejected, throttled, not_started
    status: DeliveryStatus
    reason: str = ""
    again_at: datetime | None = None
    next_rule: bool = False
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Unstarted:
    """It was begun too long ago to be sent as begun: unsent, and due again now."""


@dataclass(frozen=True, slots=True)
class Waits:
    """The provider is known to be down: unsent and no attempt, and of a page the next rule fires now."""

    until: datetime
    reason: str


def judge(
    delivery: Delivery, outcome: Outcome | Unstarted | Waits, urgency: Urgency, now: datetime, jitter: float
) -> Verdict:
    """The verdict on the attempt that just ended. `jitter` lies in [-1, 1]."""
    page = delivery.kind in PAGES
    if isinstance(outcome, Unstarted):
        return Verdict("not_started", DeliveryStatus.QUEUED, again_at=now, counts=False)
    if isinstance(outcome, Waits):
        # Why once: the rule after the next has a delay of its own.
        pulled = delivery.reason.startswith(WAITS) or (delivery.attempts > 0 and urgency is Urgency.HIGH)
        return Verdict(
            "waits",
            DeliveryStatus.QUEUED,
            outcome.reason,
            again_at=outcome.until,
            next_rule=page and not pulled,
            counts=False,
        )
    if isinstance(outcome, Sent):
        return Verdict("sent", DeliveryStatus.SENT)
    if isinstance(outcome, Rejected) and outcome.quiet:
        return Verdict("rejected", DeliveryStatus.CANCELLED, outcome.reason)
    if isinstance(outcome, Rejected):
        return Verdict("rejected", DeliveryStatus.DEAD, outcome.reason, next_rule=page)
    if isinstance(outcome, Throttled):
        long = page and outcome.until - now > LONG_WAIT
        return Verdict(
            "throttled",
            DeliveryStatus.QUEUED,
            outcome.reason,
            again_at=max(outcome.until, now),
            next_rule=long,
            counts=False,
        )
    return _retry(delivery, outcome, urgency, now, jitter)


def _retry(delivery: Delivery, outcome: Retry, urgency: Urgency, now: datetime, jitter: float) -> Verdict:
    tries = delivery.attempts + 1
    wait = backoff.next_try(tries, outcome, jitter)
    if wait is None:
        next_rule = delivery.kind in PAGES
        return Verdict("retry", DeliveryStatus.DEAD, outcome.reason, next_rule=next_rule)
    first = tries == 1 and delivery.kind in PAGES and urgency is Urgency.HIGH
    return Verdict("retry", DeliveryStatus.QUEUED, outcome.reason, again_at=now + wait, next_rule=first)
