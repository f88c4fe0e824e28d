"""What is said once Slack is back: one digest of the outage, and what of the waiting messages still goes.

Pure: never sends, never reads a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from engine.clockwords import length
from engine.models import Delivery, DeliveryKind, Via
from engine.notify.plain import one_line, shorten
from engine.store.waiting import Meanwhile

APART: Final = timedelta(seconds=1)  # Slack: one message per second and channel
WORTH_TELLING: Final = timedelta(minutes=1)
LISTED: Final = 10
ABOUT_SLACK: Final = "ops:slack:"  # alarms that the digest makes good
TITLE: Final = 60
STALE: Final = frozenset({DeliveryKind.STATUS, DeliveryKind.NOTICE})
WORDS: Final = {"sms": "SMS", "voice": "call", "push": "push message", "email": "mail"}
BY: Final = {
    Via.SMS: "by SMS",
    Via.VOICE: "by phone",
    Via.WEB: "by link",
    Via.CLI: "by the command line",
    Via.API: "by the API",
}


@dataclass(frozen=True, slots=True)
class Sorted:
    """What is not sent any more, and when each of the others goes."""

    stale: tuple[int, ...]
    due: dict[int, datetime]


def sort(waiting: Iterable[Delivery], now: datetime) -> Sorted:
    """Pages go first. Lines about incidents tell what their cards show by now; of alarms of one cause the
    newest is enough."""
    kept: list[Delivery] = []
    stale: list[int] = []
    alarms: dict[str, Delivery] = {}
    for one in waiting:
        cause = _cause(one)
        if cause.startswith(ABOUT_SLACK):
            stale.append(one.id)
        elif one.kind is DeliveryKind.OPS:
            stale += [alarms[cause].id] if cause in alarms else []
            alarms[cause] = one
        elif one.kind in STALE and one.incident_id is not None:
            stale.append(one.id)
        else:
            kept.append(one)
    places: dict[str, int] = {}
    due: dict[int, datetime] = {}
    for one in [*kept, *alarms.values()]:
        line = f"{one.method}:{one.person_id or one.address or one.incident_id}"
        places[line] = places.get(line, -1) + 1
        due[one.id] = now + places[line] * APART
    return Sorted(tuple(stale), due)


def _cause(alarm: Delivery) -> str:
    """An alarm's key is its cause, a window of time, and where it goes (see `alarm`)."""
    return f"{alarm.idem_key.rsplit(':', 2)[0]}:{alarm.address or alarm.person_id}"


def digest(start: datetime, end: datetime, seen: Meanwhile) -> str | None:
    """The outage in a few lines; None when it was short and nothing happened in it."""
    if end - start < WORTH_TELLING and not (seen.opened or seen.pages):
        return None
    until = f"{end:%H:%M}" if end.date() == start.date() else f"{end:%Y-%m-%d %H:%M}"
    happened = [
        _count(len(seen.opened), "incident", "opened") if seen.opened else "no incident opened",
        *_acknowledged(seen.acknowledged),
        *([f"{len(seen.resolved)} resolved"] if seen.resolved else []),
    ]
    lines = [
        f"Slack was down {start:%Y-%m-%d %H:%M}–{until} UTC ({length(end - start)}): {', '.join(happened)}."
    ]
    if seen.pages:
        ways = [f"{count} by {WORDS.get(way, way)}" for way, count in sorted(seen.pages.items())]
        lines.append(f"{_count(sum(seen.pages.values()), 'page', 'went')} the other way: {', '.join(ways)}.")
    if seen.still_open:
        lines.append(f"Still open: {_named(seen.still_open)}.")
    elif seen.opened:
        lines.append("None is open any more.")
    return "\n".join(lines)


def _acknowledged(acked: Sequence[tuple[int, str]]) -> list[str]:
    ways = {via: sum(other == via for _, other in acked) for _, via in acked}
    return [f"{count} acknowledged {BY.get(Via(via), '')}".rstrip() for via, count in ways.items()]


def _named(still_open: Sequence[tuple[int, str]]) -> str:
    said = [f"#{number} {shorten(one_line(title), TITLE)}" for number, title in still_open[:LISTED]]
    more = len(still_open) - LISTED
    return "; ".join(said) + (f" and {more} more" if more > 0 else "")


def _count(count: int, noun: str, verb: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'} {verb}"
