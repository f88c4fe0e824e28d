"""What travels together to one person: when a line may be told again, who goes in whose message.

Pure: never sends and never reads the database or the clock. A first page is never held back: it goes at
once and takes along what is due; what comes within the interval after it waits, and goes together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

from engine.backoff import MOST_ATTEMPTS
from engine.models import Delivery, DeliveryKind, Method
from engine.notify.verdict import PAGES

T = TypeVar("T")

# Why shorter for mail and push: they cost nothing.
INTERVALS: Final = {
    Method.SMS: timedelta(seconds=60),
    Method.VOICE: timedelta(seconds=60),
    Method.EMAIL: timedelta(seconds=30),
    Method.PUSH: timedelta(seconds=30),
}
METHODS: Final = tuple(method.value for method in INTERVALS)
LONGEST: Final = max(INTERVALS.values())
FLIGHT: Final = timedelta(seconds=12)  # no send lasts longer, with its record: it ended, or its process did
CLOCK_SLACK: Final = timedelta(seconds=10)
LOOK_AGAIN: Final = timedelta(seconds=1)  # what is on its way will have arrived, or failed
MOST: Final = 200  # of one person in one message: each of them is read for it
UPDATE: Final = "update"  # in the body of a status update: those of a person travel together


def line_of(delivery: Delivery) -> tuple[int, bool] | None:
    """The contact method that it goes to, and whether as a status update; None: it travels alone."""
    if delivery.method not in INTERVALS or delivery.method_id is None:
        return None
    if delivery.kind in PAGES:
        return delivery.method_id, False
    if delivery.kind is DeliveryKind.STATUS and UPDATE in delivery.body:
        return delivery.method_id, True
    return None


def start_at(method: Method, last: datetime | None, now: datetime, *, flying: bool) -> datetime:
    """When a line may be told again that was told `last`; `now`: at once."""
    interval = INTERVALS[method]
    # Why: after the clock is set back an hour, pages would wait for an hour. Telling somebody twice in a
    # minute once is the lesser harm.
    known = last is not None and last <= now + CLOCK_SLACK
    if last is not None and known and last + interval > now:
        return min(last, now) + interval  # the clocks of two hosts may differ
    return now + LOOK_AGAIN if flying else now


def loads(
    begun: Iterable[T], delivery_of: Callable[[T], Delivery], is_high: Callable[[T], bool]
) -> list[list[T]]:
    """Those that go in one message, the carrier first: the most urgent, and of those the oldest."""
    together: dict[Hashable, list[T]] = defaultdict(list)
    for one in begun:
        delivery = delivery_of(one)
        line = line_of(delivery)
        # Why alone: its attempts never ended, which it must not do to others.
        alone = line is None or delivery.attempts >= MOST_ATTEMPTS
        together[("alone", delivery.id) if alone else line].append(one)
    return [
        sorted(load, key=lambda one: _precedence(delivery_of(one), is_high(one)))
        for load in together.values()
    ]


def _precedence(delivery: Delivery, high: bool) -> tuple[bool, datetime, int]:
    return not high, delivery.due_at, delivery.id


def in_words(updates: Sequence[str]) -> str:
    """Several status updates as one text."""
    return ";\n".join(dict.fromkeys(filter(None, updates)))
