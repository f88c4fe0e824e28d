"""The whole story of an incident, line by line: what happened, who was tried how, and what comes next.

Pure. Never shows an address: a person is a name, and a provider's reason has none in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from engine import skipped
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
from engine.pager.grounds import GROUNDS
from engine.store.cards import Place

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
    """What a story is told of. `timers` are those of the incident itself, `sends` those of its deliveries."""

    view: IncidentView
    entries: Sequence[TimelineEntry]
    deliveries: Sequence[Delivery]
    tries: Sequence[Try]
    timers: Sequence[Timer]
    sends: Sequence[Timer] = ()
    places: Sequence[Place] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """`ahead`: it has not happened yet."""

    at: datetime
    text: str
    ahead: bool = False


def story(tale: Tale, names: Mapping[int, str]) -> list[Line]:
    """In order of time, what is still to come last."""
    lines = [line for entry in tale.entries for line in _entry(entry)]
    tries: dict[int, list[Try]] = defaultdict(list)
    for one in tale.tries:
        tries[one.delivery_id].append(one)
    due = {timer.subject_id: timer.due_at for timer in tale.sends}
    for delivery in tale.deliveries:
        if delivery.kind in TOLD:
            lines += _delivery(delivery, tries[delivery.id], names, due.get(delivery.id))
    lines += [_place(place) for place in tale.places]
    lines += [Line(timer.due_at, NEXT[timer.kind], ahead=True) for timer in tale.timers if timer.kind in NEXT]
    return sorted(lines, key=lambda line: (line.ahead, line.at))


def _entry(entry: TimelineEntry) -> Iterator[Line]:
    who = f" by {entry.actor}" if entry.actor else ""
    via = f" ({entry.via})" if entry.via else ""
    text = f": {entry.text}" if entry.text else ""
    yield Line(entry.at, f"{entry.kind.replace('_', ' ')}{who}{via}{text}")
    for why in entry.detail.get(GROUNDS) or ():
        yield Line(entry.at, f"why: {why}")


def _place(place: Place) -> Line:
    if place.broken:
        return Line(place.created_at, f"card in {place.channel}: cannot stand there, {place.broken}")
    if place.shown_at is None:
        return Line(place.created_at, f"card in {place.channel}: not shown yet", ahead=True)
    return Line(place.shown_at, f"card in {place.channel}: brought up to date")


def _delivery(
    one: Delivery, tries: Sequence[Try], names: Mapping[int, str], due_at: datetime | None
) -> Iterator[Line]:
    what = _what(one, names)
    for method, why in skipped.read(one.body):
        whom = _whom(one, names)
        yield Line(one.created_at, f"{one.kind} by {method} to {whom}: left out, {why}")
    for each in tries:
        yield Line(each.started_at, f"{what}, attempt {each.number}: {_outcome(each)}")
    if one.status is DeliveryStatus.QUEUED:
        yield Line(due_at or one.due_at, f"{what}{_waits(one, due_at)}", ahead=True)
    elif one.status is DeliveryStatus.CANCELLED:
        went_out = any(each.outcome == "sent" for each in tries)  # a call that rang, and was hung up
        why = one.reason or "it was not wanted any more"
        yield Line(one.ended_at or one.due_at, f"{what}: {'' if went_out else 'not sent, '}{why}")
    elif one.status in OVER and one.ended_at is not None:
        why = f", {one.reason}" if one.reason else ""
        yield Line(one.ended_at, f"{what}: {one.status}{why}")


def _waits(one: Delivery, due_at: datetime | None) -> str:
    """Why it is not sent at the time that its contact rule gives it."""
    if due_at is None:
        return ": it has no timer, the audit gives it one"
    if one.reason:
        return f": again, after {one.reason}"
    if due_at > one.due_at:
        return f": held back since {one.due_at:%H:%M:%S} UTC, so that not too much goes there at once"
    return ""


def _what(one: Delivery, names: Mapping[int, str]) -> str:
    level = "" if one.kind is not DeliveryKind.PAGE or one.level < 0 else f" (level {one.level + 1})"
    carried = ", in one message with others" if one.carried_by is not None else ""
    return f"{one.kind} by {one.method} to {_whom(one, names)}{level}{carried}"


def _whom(one: Delivery, names: Mapping[int, str]) -> str:
    if one.method is Method.URL:
        return "the fallback URLs"
    if one.person_id is not None:
        return names.get(one.person_id, "somebody who is gone")
    return one.address or "the channel"


def _outcome(one: Try) -> str:
    if one.ended_at is None:
        return "under way"
    seconds = (one.ended_at - one.started_at).total_seconds()
    by = f" by {one.provider}" if one.provider else ""
    why = f", {one.reason}" if one.reason else ""
    return f"{one.outcome.replace('_', ' ')}{by} after {seconds:.1f} s{why}"
