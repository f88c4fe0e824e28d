"""The whole story of an incident, line by line: what happened, who was tried how, and what comes next.

Pure. Never shows an address: a person is a name, and a provider's reason has none in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from engine.models import (
    Delivery,
    DeliveryKind,
    DeliveryStatus,
    IncidentView,
    Method,
    TimelineEntry,
    Timer,
    Try,
)

TOLD: Final = frozenset({DeliveryKind.PAGE, DeliveryKind.RESPONDER, DeliveryKind.STATUS})
OVER: Final = frozenset({DeliveryStatus.DELIVERED, DeliveryStatus.UNCONFIRMED, DeliveryStatus.DEAD})
NEXT: Final = {
    "escalate": "the next level is paged",
    "exhaust": "the fallback chain is paged",
    "unsnooze": "the snooze ends, and it pages again",
    "ack_timeout": "the acknowledgement runs out, and it pages again",
    "raise_urgency": "its urgency is raised",
}


@dataclass(frozen=True, slots=True)
class Tale:
    """What a story is told of. `timers` are those of the incident itself."""

    view: IncidentView
    entries: Sequence[TimelineEntry]
    deliveries: Sequence[Delivery]
    tries: Sequence[Try]
    timers: Sequence[Timer]


@dataclass(frozen=True, slots=True)
class Line:
    """`ahead`: it has not happened yet."""

    at: datetime
    text: str
    ahead: bool = False


def story(tale: Tale, names: Mapping[int, str]) -> list[Line]:
    """In order of time, what is still to come last."""
    lines = [Line(entry.at, _entry(entry)) for entry in tale.entries]
    tries: dict[int, list[Try]] = defaultdict(list)
    for one in tale.tries:
        tries[one.delivery_id].append(one)
    for delivery in tale.deliveries:
        if delivery.kind in TOLD:
            lines += _delivery(delivery, tries[delivery.id], names)
    lines += [Line(timer.due_at, NEXT[timer.kind], ahead=True) for timer in tale.timers if timer.kind in NEXT]
    return sorted(lines, key=lambda line: (line.ahead, line.at))


def _entry(entry: TimelineEntry) -> str:
    who = f" by {entry.actor}" if entry.actor else ""
    via = f" ({entry.via})" if entry.via else ""
    text = f": {entry.text}" if entry.text else ""
    return f"{entry.kind.replace('_', ' ')}{who}{via}{text}"


def _delivery(one: Delivery, tries: Sequence[Try], names: Mapping[int, str]) -> Iterator[Line]:
    what = _what(one, names)
    for each in tries:
        yield Line(each.started_at, f"{what}, attempt {each.number}: {_outcome(each)}")
    if one.status is DeliveryStatus.QUEUED:
        yield Line(one.due_at, what, ahead=True)
    elif one.status is DeliveryStatus.CANCELLED:
        yield Line(
            one.ended_at or one.due_at, f"{what}: not sent, {one.reason or 'it was not wanted any more'}"
        )
    elif one.status in OVER and one.ended_at is not None:
        why = f", {one.reason}" if one.reason else ""
        yield Line(one.ended_at, f"{what}: {one.status}{why}")


def _what(one: Delivery, names: Mapping[int, str]) -> str:
    if one.method is Method.URL:
        whom = "the fallback URLs"
    elif one.person_id is not None:
        whom = names.get(one.person_id, "somebody who is gone")
    else:
        whom = one.address or "the channel"
    level = "" if one.kind is not DeliveryKind.PAGE or one.level < 0 else f" (level {one.level + 1})"
    return f"{one.kind} by {one.method} to {whom}{level}"


def _outcome(one: Try) -> str:
    if one.ended_at is None:
        return "under way"
    seconds = (one.ended_at - one.started_at).total_seconds()
    by = f" by {one.provider}" if one.provider else ""
    why = f", {one.reason}" if one.reason else ""
    return f"{one.outcome.replace('_', ' ')}{by} after {seconds:.1f} s{why}"
