"""Calendars in iCalendar's form: shifts written as one, and events read as shifts.

Pure but for `fetch` and `apart`. Never says who is on call: a calendar that is read only names people for
a while.
"""

from engine.calendar.feed import Entry, entries_of_person, entries_of_schedule, whole_shifts
from engine.calendar.match import Matched, match_events, matcher, spliced
from engine.calendar.read import Event, read_calendar
from engine.calendar.write import write_calendar

__all__ = [
    "Entry",
    "Event",
    "Matched",
    "entries_of_person",
    "entries_of_schedule",
    "match_events",
    "matcher",
    "read_calendar",
    "spliced",
    "whole_shifts",
    "write_calendar",
]
