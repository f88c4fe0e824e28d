"""The bytes of an iCalendar file as events between two instants.

Pure. Never trusts what it reads: what cannot be read is BadCalendar or an event that is passed over, and
rules that would make a flood of events are refused before anything is made of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import recurring_ical_events
from icalendar import Calendar
from icalendar.cal.component import Component

from engine.errors import BadCalendar
from engine.schedule.walltime import to_instant
from engine.schedule.zones import zone_named

MOST_SERIES: Final = 5_000
MOST_EVENTS: Final = 5_000
TOO_OFTEN: Final = frozenset({"SECONDLY", "MINUTELY"})  # no shift repeats so; a flood of events would
HOURS_BACK: Final = timedelta(days=5 * 366)  # an hourly rule is counted from its start, and that takes time
LONGEST_TEXT: Final = 200
NOT_PEOPLE: Final = frozenset({"ROOM", "RESOURCE"})


@dataclass(frozen=True, slots=True)
class Event:
    """One occurrence, with its times as instants. `emails` are those of its attendees who did not decline."""

    start: datetime
    end: datetime
    summary: str
    emails: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """The events of a calendar, in order, and the summaries of those that cannot be read."""

    events: tuple[Event, ...]
    unread: tuple[str, ...] = ()


def read_calendar(body: bytes, a: datetime, b: datetime, zone: ZoneInfo) -> Reading:
    """Every event that touches [a, b). `zone` is that of times that name none."""
    events: list[Event] = []
    unread: dict[str, None] = {}
    for calendar in _calendars(body):
        own = _own_zone(calendar) or zone
        for series in _series(calendar):
            try:
                found = list(_occurrences(series, a, b, own))
            except BadCalendar:
                raise
            except Exception:  # the library raises what it likes at what people write
                unread[_summary(series[0]) or "an event without a title"] = None
                continue
            events += found
            if len(events) > MOST_EVENTS:
                raise BadCalendar(f"It has more than {MOST_EVENTS} events in the time that is read.")
    ordered = sorted(events, key=lambda event: (event.start, event.end, event.summary))
    return Reading(tuple(ordered), tuple(unread))


def _calendars(body: bytes) -> Sequence[Component]:
    try:
        read = Calendar.from_ical(body.replace(b"\0", b""), multiple=True)
    except Exception:  # of any kind: ValueError, and others where the bytes are no text
        raise BadCalendar from None
    found: Sequence[Component] = [each for each in read if each.name == "VCALENDAR"]
    if not found:
        raise BadCalendar
    return found


def _own_zone(calendar: Component) -> ZoneInfo | None:
    return zone_named(str(calendar.get("X-WR-TIMEZONE", "")))


def _series(calendar: Component) -> Iterable[list[Component]]:
    """The events by their id: a series and the exceptions to it. Each is read alone, so that one that is
    broken costs no other."""
    by_uid: dict[str, list[Component]] = defaultdict(list)
    for number, event in enumerate(calendar.walk("VEVENT")):
        by_uid[str(event.get("UID") or f"#{number}")].append(event)
    if len(by_uid) > MOST_SERIES:
        raise BadCalendar(f"It has more than {MOST_SERIES} events.")
    return by_uid.values()


def _occurrences(series: list[Component], a: datetime, b: datetime, zone: ZoneInfo) -> Iterator[Event]:
    for component in series:
        _check_rules(component, a)
    alone = Calendar()
    for component in series:
        alone.add_component(component)
    # Why a day more to each side: the library takes times without a zone for UTC.
    day = timedelta(days=1)
    for one in recurring_ical_events.of(alone).between(a - day, b + day):
        if str(one.get("STATUS", "")).upper() == "CANCELLED":
            continue
        start, end = _instant(one.start, zone), _instant(one.end, zone)
        if start < end and start < b and end > a:
            yield Event(start, end, _summary(one), tuple(_emails(one)))


def _check_rules(component: Component, a: datetime) -> None:
    rules = component.get("RRULE") or []
    for rule in rules if isinstance(rules, list) else [rules]:
        frequency = str((rule.get("FREQ") or [""])[0]).upper()
        # An hourly rule from long ago is as much work as one of every second.
        start = getattr(component.get("DTSTART"), "dt", None)
        old = frequency == "HOURLY" and isinstance(start, date) and start.year < (a - HOURS_BACK).year
        if frequency in TOO_OFTEN or old or _many_in_an_hour(rule) or _stands_still(rule):
            raise BadCalendar(f"{_summary(component)!r} repeats too often to be a shift.")


def _stands_still(rule: Mapping[str, Any]) -> bool:
    """Every no days: counting those never ends."""
    return any(int(step) < 1 for step in rule.get("INTERVAL") or ())


def _many_in_an_hour(rule: Mapping[str, Any]) -> bool:
    return any(len(rule.get(part) or []) > 1 for part in ("BYMINUTE", "BYSECOND"))


def _instant(value: date, zone: ZoneInfo) -> datetime:
    """A date is its local midnight; a time without a zone is the wall clock of the calendar's."""
    if not isinstance(value, datetime):
        return to_instant(datetime.combine(value, time()), zone)
    return to_instant(value, zone) if value.tzinfo is None else value.astimezone(UTC)


def _summary(component: Component) -> str:
    return " ".join(str(component.get("SUMMARY") or "").split())[:LONGEST_TEXT]


def _emails(component: Component) -> Iterator[str]:
    attendees = component.get("ATTENDEE") or []
    for attendee in attendees if isinstance(attendees, list) else [attendees]:
        said = getattr(attendee, "params", {})
        declined = str(said.get("PARTSTAT", "")).upper() == "DECLINED"
        if not declined and str(said.get("CUTYPE", "")).upper() not in NOT_PEOPLE:
            yield str(attendee).strip().casefold().removeprefix("mailto:")[:LONGEST_TEXT]
