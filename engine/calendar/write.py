"""Entries as the bytes of an iCalendar file.

Pure. Never writes a local time: instants are written in UTC, which every calendar program shows in its
reader's own zone, so no definition of a zone can be wrong or missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from icalendar import Calendar, vDuration
from icalendar import Event as VEvent

from engine.calendar.feed import Entry

PRODUCT: Final = "-//Midwatch//Shifts//EN"
ASK_AGAIN: Final = timedelta(hours=1)


def write_calendar(name: str, entries: Iterable[Entry], changed_at: datetime) -> bytes:
    """The same entries always give the same bytes. `changed_at`: when they last became what they are."""
    calendar = Calendar()
    calendar.add("prodid", PRODUCT)
    calendar.add("version", "2.0")
    calendar.add("calscale", "GREGORIAN")
    calendar.add("method", "PUBLISH")
    calendar.add("name", name)
    calendar.add("x-wr-calname", name)  # what most programs read instead
    calendar.add("refresh-interval", vDuration(ASK_AGAIN), parameters={"VALUE": "DURATION"})
    calendar.add("x-published-ttl", vDuration(ASK_AGAIN))
    for entry in entries:
        calendar.add_component(_event(entry, changed_at.replace(microsecond=0)))
    return bytes(calendar.to_ical())


def _event(entry: Entry, changed_at: datetime) -> VEvent:
    event = VEvent()
    event.add("uid", entry.uid)
    event.add("dtstamp", changed_at)
    event.add("last-modified", changed_at)
    event.add("dtstart", entry.start)
    event.add("dtend", entry.end)
    event.add("summary", entry.summary)
    if entry.description:
        event.add("description", entry.description)
    event.add("transp", "TRANSPARENT")  # whoever is on call can still be invited
    return event
